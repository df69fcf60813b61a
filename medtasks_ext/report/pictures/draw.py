"""Specs as SVG and PNG, without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: of Vega-Lite, as in the page (`vendor/README.md`)
_VERSION = "6.4"
#: pixels of a PNG for each of the picture
SCALE = 2.0


def is_possible() -> bool:
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


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
        raise MedtasksError(
            "pictures need vl-convert-python", remedy='pip install "medtasks[plots]"'
        ) from None
    return vl_convert
