"""Terms that a user accepts once before a download: shown, asked for, and recorded."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.folders import cache_dir

if TYPE_CHECKING:
    from medtasks_ext.rows.spec import Terms


def record_file() -> Path:
    return cache_dir() / "accepted.json"


def are_accepted(terms: Terms) -> bool:
    """Whether the user accepted these terms, in these words."""
    file = record_file()
    return file.is_file() and _key(terms) in read_json(file)


def accept(terms: Terms) -> None:
    """They hold for all datasets that have the same."""
    file = record_file()
    kept = read_json(file) if file.is_file() else {}
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    write_json(file, {**kept, _key(terms): {**terms.model_dump(), "accepted": now}})


def shown(terms: Terms) -> str:
    lines = [f"Owner: {terms.owner}", f"Terms: {terms.asks}", f"       {terms.url}"]
    if terms.copy_by:
        lines.append(
            f"The files are a public copy by {terms.copy_by}, not the owner's. The owner's terms apply to you"
            " whatever the copy says."
        )
    if terms.token:
        lines.append("The hub asks for your own account: accept there, too, and run `hf auth login`.")
    return "\n".join(lines)


def _key(terms: Terms) -> str:
    words = (terms.owner, terms.url, terms.asks, str(bool(terms.copy_by)))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
