"""One HTML file that needs nothing else and asks nobody: style, script and data are inside."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

#: halves of a pair: legal in a JSON escape, but no text that a file could hold
_SURROGATE = re.compile("[\ud800-\udfff]")


def offline_page(
    template: Path,
    *,
    style: Path | Sequence[Path],
    scripts: Sequence[Path],
    data: Mapping[str, Any],
    language: str,
    title: str,
) -> str:
    """The page, filled.

    Its content security policy allows the page's own style and script, by their hashes, and nothing else: no
    network, no inline handlers. `scripts` read the data as JSON and must show texts as text nodes.
    """
    css, script = (
        "\n" + "\n".join(file.read_text(encoding="utf-8") for file in files)
        for files in ([style] if isinstance(style, Path) else style, scripts)
    )
    return Template(template.read_text(encoding="utf-8")).substitute(
        language=language,
        title=title_in_page(title),
        style=css,
        style_hash=_hash(css),
        script=script,
        script_hash=_hash(script),
        data=data_in_page(data),
    )


def data_in_page(data: Mapping[str, Any]) -> str:
    """Data as a page's script element holds it: nothing in it can end the element. No number is infinite."""
    content = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # in a script element only < could end the data
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", content).replace("<", "\\u003c")


def title_in_page(title: str) -> str:
    return escape(_SURROGATE.sub("\ufffd", title))


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
