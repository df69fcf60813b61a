"""The page of `medtasks view`: drawn from questions to a server on loopback, or from data inside one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks_ext.offline_page import offline_page

_HERE = Path(__file__).parent
#: Colours, controls and tables are those of the report's page.
_REPORT = _HERE.parents[1] / "page"
_STYLES = (_REPORT / "report.css", _HERE / "view.css")
#: The page's script, in the order in which its parts build on each other.
_SCRIPTS = (
    _HERE / "source.js", _REPORT / "dom.js", _REPORT / "colours.js",
    *(_HERE / f"{name}.js" for name in ("state", "live", "overview", "list", "answer")),
    *(_HERE / f"{name}.js" for name in ("errors", "dataset", "start")),
)  # fmt: skip


def render(data: Mapping[str, Any], title: str) -> str:
    """With `{"live": …}` the page asks a server; else it holds the answers to all of its questions."""
    return offline_page(
        _HERE / "view.html",
        style=_STYLES,
        scripts=_SCRIPTS,
        data=data,
        language="en",
        title=title,
    )
