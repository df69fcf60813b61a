"""Pictures: one declarative spec a kind, filled alike by the page of a report and by the commands.

`kinds/KIND.yaml` is a Vega-Lite spec with places to fill, here and by `page/picture.js`: `$name` is replaced
by what is given under that name, or left out; a part with `$if: name` stands only where something is given.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.sax.saxutils import escape

from medtasks_ext.errors import MedtasksError
from medtasks_ext.strict import read_yaml
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.jsonfile import Json


Kind = Literal["heat", "dots", "scatter", "places", "percentiles", "bars"]
#: what a cell of a row may hold
Value = str | float | bool | None
_HERE = Path(__file__).parent
#: stands where a part of a spec is left out; None is a value of its own
_NOTHING = object()
FONT = '"Helvetica Neue", Arial, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", sans-serif'


@lru_cache(maxsize=1)
def kinds() -> Json:
    """Kind -> its spec with places to fill; `config` is what all of them share."""
    return {path.stem: read_yaml(path) for path in sorted((_HERE / "kinds").glob("*.yaml"))}


@lru_cache(maxsize=1)
def themes() -> Json:
    """Colours of the `light` and the `dark` theme, and `shapes` of series."""
    content: Json = json.loads((_HERE / "theme.json").read_text(encoding="utf-8"))
    return content


def looks_of(names: Sequence[str]) -> dict[str, list[str]]:
    """`colours` (light ones) and `shapes` of series: the theme's `groups` have the same ones everywhere."""
    series, known = themes()["light"]["series"], themes()["groups"]
    taken = {known[name] for name in names if name in known}
    free = cycle([place for place in range(len(series)) if place not in taken] or range(len(series)))
    places = [known[name] if name in known else next(free) for name in names]
    shapes = themes()["shapes"]
    return {"colours": [series[place] for place in places], "shapes": [shapes[place] for place in places]}


def vendored() -> list[Path]:
    return [_HERE / "vendor" / f"{name}.min.js" for name in ("vega", "vega-lite", "vega-interpreter")]


def licences() -> str:
    return (_HERE / "vendor" / "LICENSES.txt").read_text(encoding="utf-8")


def picture(kind: Kind, rows: Sequence[Mapping[str, Value]], **words: Any) -> Json:
    """In light colours; the rows and further words of a kind are at the head of its file."""
    colours = themes()["light"]
    known = {**colours, "background": colours["ground"], "own_ink": colours["own"], "font": FONT, "own": []}
    known |= {"shapes": themes()["shapes"], "colours": colours["series"], "own_columns": []}
    known |= {"beside": 12, "gradient": 180, **words}
    for name in ("line", "column"):
        known[f"{name}_places"] = [*range(len(known.get(f"{name}s", ())))]
    spec: Json = _filled({**kinds()["config"], **kinds()[kind]}, known)
    return {**spec, "datasets": {"rows": list(rows)}, "data": {"name": "rows"}}


def _filled(part: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(part, str) and part.startswith("$"):
        return words.get(part[1:], _NOTHING)
    if isinstance(part, list):
        return [found for item in part if (found := _filled(item, words)) is not _NOTHING]
    if not isinstance(part, dict):
        return part
    if "$if" in part and not words.get(part["$if"]):
        return _NOTHING
    filled = {name: _filled(value, words) for name, value in part.items() if name != "$if"}
    return {name: value for name, value in filled.items() if value is not _NOTHING}


# Specs as SVG and PNG, without a browser.

#: of Vega-Lite, as in the page (`vendor/README.md`)
_VERSION = "6.4"
#: pixels of a PNG for each of the picture
SCALE = 2.0


def is_possible() -> bool:
    return find_spec("vl_convert") is not None


def svg(spec: Mapping[str, Any], says: str = "") -> str:
    """A Vega-Lite spec as SVG; `says` is for readers of screens."""
    text: str = _library().vegalite_to_svg(dict(spec), vl_version=_VERSION)
    if says:
        text = text.replace(">", f' role="img"><desc>{escape(says)}</desc>', 1)
    return text + "\n"


def png(image: str) -> bytes:
    content: bytes = _library().svg_to_png(image, scale=SCALE)
    return content


def _library() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MedtasksError("pictures need vl-convert-python", remedy=install_words("plots")) from None
    return vl_convert
