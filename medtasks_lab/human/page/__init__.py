"""The page that an expert fills: one HTML file that needs nothing else and asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medtasks_ext.offline_page import offline_page

_HERE = Path(__file__).parent


def render_page(data: Mapping[str, Any]) -> str:
    """The page of one form.

    Args:
        data: as `page.js` describes it; needs `language` and `title`.
    """
    return offline_page(
        _HERE / "page.html",
        style=_HERE / "page.css",
        scripts=[_HERE / "page.js"],
        data=data,
        language="zh-Hans" if data["language"] == "zh" else "en",
        title=data["title"],
    )
