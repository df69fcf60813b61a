"""The page of `medtasks view`: drawn from questions to a server on loopback, or from data inside one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks_ext.offline_page import offline_page
from medtasks_ext.report import page as report_page

_HERE = Path(__file__).parent
#: Colours, controls, tables and frame are those of the report's page.
_REPORT = Path(report_page.__file__).parent
_STYLES = (_REPORT / "report.css", _HERE / "view.css")
_OWN = ("state", "live", "overview", "list", "answer", "errors", "dataset", "start")
#: The page's script, in the order in which its parts build on each other.
_SCRIPTS = (
    _HERE / "source.js",
    *(_REPORT / f"{name}.js" for name in report_page.SHARED),
    *(_HERE / f"{name}.js" for name in _OWN),
)


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
