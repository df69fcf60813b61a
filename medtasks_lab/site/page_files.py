"""Pages and what they share: one style, one script and the library of pictures, beside pages of data."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import write_text
from medtasks_ext.offline_page import data_in_page, title_in_page
from medtasks_ext.report import page as report_page
from medtasks_ext.report.pictures.spec import FONT, kinds, licences, themes, vendored

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json

_HERE = Path(__file__).parent / "page"
_REPORT = Path(report_page.__file__).parent
#: Of the report and of this site, in the order in which they build on each other.
_OWN = ("marks", "board", "facts", "front", "model", "dataset", "papers", "rules", "mine", "about", "main")
_SCRIPTS = (
    _HERE / "state.js",
    *(_REPORT / f"{name}.js" for name in report_page.SHARED),
    *(_HERE / f"{name}.js" for name in _OWN),
)
#: Characters of data beyond which a page holds it packed.
_LONGEST_PLAIN = 30_000
_STYLES = (_REPORT / "report.css", _HERE / "site.css")


def write_assets(folder: Path) -> None:
    """Write what all pages load from the folder `assets`, and from nowhere else."""
    folder.mkdir()
    pictures = json.dumps({"kinds": kinds(), "themes": themes(), "font": FONT}, separators=(",", ":"))
    write_text(folder / "site.js", "\n".join([_first(pictures), *map(_text, _SCRIPTS)]))
    write_text(folder / "site.css", "\n".join(map(_text, _STYLES)))
    write_text(folder / "pictures.js", "\n".join(map(_text, vendored())))
    write_text(folder / "pictures.LICENSES.txt", licences())


def _first(pictures: str) -> str:
    return f'"use strict";\nconst PICTURES = {pictures};'


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def put(folder: Path, name: str, frame: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Write a page.

    Args:
        folder: of the site.
        name: of the page, from there on.
        frame: what every page says.
        content: `kind` and `title` of the page, and what a page of this kind holds.

    Returns:
        Its name.
    """
    home = "../" * name.count("/")
    data: Json = {**frame, **content, "home": home, "page": name}
    said = data_in_page(data)
    packed = len(said) > _LONGEST_PLAIN
    page = Template(_text(_HERE / "site.html")).substitute(
        home=home,
        title=title_in_page(f"{content['title']} · medtasks"),
        form=" data-packed" if packed else "",
        data=b64encode(gzip.compress(said.encode(), mtime=0)).decode() if packed else said,
    )
    write_text(folder / name, page)
    return name


def file_name(words: str) -> str:
    """A name as a file is called: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:80]
