"""The page of `medtasks report`: a leaderboard, charts, a page per task, and answers from files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks_ext.offline_page import offline_page
from medtasks_ext.report.pictures.spec import FONT, kinds, licences, themes, vendored

_HERE = Path(__file__).parent
#: Of the page's script what other pages build on, too: address, controls, tables, pictures, filters, frame.
SHARED = ("address", "dom", "colours", "table", "picture", "frontier", "filters", "frame")
#: The page's script, in the order in which its parts build on each other. `data` stands before the library:
#: its first line makes the whole script strict.
_SCRIPTS = (
    *SHARED, "scores", "state", "columns", "standing", "scatter", "heat_map", "published",
    "live", "overview", "leaderboard", "profile", "pairs", "strategies", "labels", "validity",
    "calibration", "judges", "coverage", "tasks", "answers", "list", "answer", "errors", "model", "parts",
    "main",
)  # fmt: skip


def render(payload: Mapping[str, Any]) -> str:
    pictures = {"kinds": kinds(), "themes": themes(), "font": FONT, "licences": licences()}
    return offline_page(
        _HERE / "report.html",
        style=[_HERE / "report.css", _HERE / "answers.css"],
        scripts=[_HERE / "data.js", *vendored(), *(_HERE / f"{name}.js" for name in _SCRIPTS)],
        data={"answers": {"held": [], "withheld": []}, **payload, "pictures": pictures},
        language="en",
        title=str(payload["title"]),
    )
