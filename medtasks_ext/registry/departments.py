"""The departments by which MLB's documents are labelled (Table 2)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from medtasks_ext.privacy import excerpt

DEPARTMENTS_FILE = Path(__file__).parent / "departments.yaml"
#: label of documents that belong to no department
NO_DEPARTMENT = "No Department"
#: how many a document may have
MAX_DEPARTMENTS = 3


@lru_cache(maxsize=1)
def departments() -> dict[str, dict[str, Any]]:
    """Primary department -> `{zh, secondary: {name: Chinese name or None}}`."""
    read: dict[str, dict[str, Any]] = yaml.safe_load(DEPARTMENTS_FILE.read_text(encoding="utf-8"))
    return read


@lru_cache(maxsize=1)
def _by_name() -> dict[str, str]:
    """English or Chinese name of a secondary department -> its English name."""
    names = {NO_DEPARTMENT: NO_DEPARTMENT}
    for primary in departments().values():
        for name, chinese in primary["secondary"].items():
            names |= {name: name, **({chinese: name} if chinese else {})}
    return names


@lru_cache(maxsize=1)
def _primaries() -> dict[str, str]:
    return {name: title for title, primary in departments().items() for name in primary["secondary"]}


def primary_of(secondary: str) -> str:
    """The primary department of a secondary one; `No Department` of itself."""
    return NO_DEPARTMENT if secondary == NO_DEPARTMENT else _primaries()[secondary]


def read_departments(value: Any) -> list[str]:
    """The secondary departments that a row names, by their English names.

    Args:
        value: a name, English or Chinese, or a list of at most three; `No Department` stands alone.

    Raises:
        ValueError: it is nothing of the kind.
    """
    names = value if isinstance(value, list) else [value]
    if not 1 <= len(names) <= MAX_DEPARTMENTS:
        raise ValueError(f"{len(names)} departments; a row has one to {MAX_DEPARTMENTS}")
    known = _by_name()
    found = []
    for name in names:
        # the paper prints a typographic apostrophe
        plain = str(name).strip().replace("'", "’")
        if plain not in known:
            raise ValueError(f"{excerpt(name)} is no secondary department of MLB")
        found.append(known[plain])
    if len(set(found)) < len(found):
        raise ValueError("a department is named twice")
    if NO_DEPARTMENT in found and len(found) > 1:
        raise ValueError(f"{NO_DEPARTMENT!r} stands beside others")
    return found
