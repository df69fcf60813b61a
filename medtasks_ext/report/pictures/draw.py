"""Specs as SVG and PNG, without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: of Vega-Lite, as in the page (`vendor/README.md`)
_VERSION = "6.4"
#: pixels of a PNG for each of the picture
SCALE = 2.0


def is_possible() -> bool:
    """Whether the extra `plots` is installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def svg(spec: Mapping[str, Any]) -> str:
    """A Vega-Lite spec as SVG.

    Raises:
        MedtasksError: the extra `plots` is not installed.
    """
    library, drawn = _compiled(spec)
    text: str = library.vega_to_svg(drawn)
    return text + "\n"


def png(spec: Mapping[str, Any]) -> bytes:
    """A Vega-Lite spec as PNG.

    Raises:
        MedtasksError: the extra `plots` is not installed.
    """
    library, drawn = _compiled(spec)
    image: bytes = library.vega_to_png(drawn, scale=SCALE)
    return image


def _compiled(spec: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    try:
        import vl_convert
    except ImportError:
        raise MedtasksError(
            "pictures need vl-convert-python", remedy='pip install "medtasks[plots]"'
        ) from None
    drawn: dict[str, Any] = vl_convert.vegalite_to_vega(dict(spec), vl_version=_VERSION)
    return vl_convert, drawn
