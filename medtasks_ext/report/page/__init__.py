"""The page of `medtasks report`: one HTML file with a leaderboard, charts and a page per task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks_ext.offline_page import offline_page

_HERE = Path(__file__).parent
#: The page's script, in the order in which its parts build on each other.
_SCRIPTS = (
    "data", "scores", "state", "dom", "colours", "table", "dot_plot", "grid", "filters", "columns",
    "standing", "overview", "leaderboard", "heat_map", "profile", "pairs", "cost", "strategies", "validity",
    "judges", "coverage", "tasks", "model", "main",
)  # fmt: skip


def render(payload: Mapping[str, Any]) -> str:
    """The page that shows a payload of `medtasks_ext.report.payload`.

    Raises:
        ValueError: a number of the payload is NaN or infinite.
    """
    return offline_page(
        _HERE / "report.html",
        style=_HERE / "report.css",
        scripts=[_HERE / f"{name}.js" for name in _SCRIPTS],
        data=payload,
        language="en",
        title=str(payload["title"]),
    )
