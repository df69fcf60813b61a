"""The page that an expert fills: one HTML file that needs nothing else and asks nobody."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = Path(__file__).parent


def render_page(data: Mapping[str, Any]) -> str:
    """The page of one form.

    Its content security policy allows the page's own style and script, by their hashes, and nothing
    else: no network, no inline handlers. The script shows texts as text nodes.

    Args:
        data: as `page.js` describes it; needs `language` and `title`.
    """
    style, script, page = (
        (_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    style, script = f"\n{style}", f"\n{script}"
    # in a script element only < could end the data
    content = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return Template(page).substitute(
        language="zh-Hans" if data["language"] == "zh" else "en",
        title=escape(data["title"]),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=content,
    )


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
