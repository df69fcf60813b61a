"""BRIDGE-Open: the official prompts of BRIDGE's openly published tasks, without gold answers.

Tasks read from it can be predicted and exported for the leaderboard, not scored. It is used only
when asked for (`--data bridge_open`), so that nobody spends hours on predictions by accident.
"""

from __future__ import annotations

import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.data.remote import hub_file
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.data.spec import Source

REPO = "YLab-Open/BRIDGE-Open"
#: The authors' files are not versioned by a published revision: the commit that was read is recorded.
REVISION = "main"
TEST, FEWSHOT = ("Dataset.zip", ".SFT.json"), ("Example.zip", ".example.json")


def test_file(source: Source) -> tuple[Path, str] | None:
    """Archive and member of a task's test inputs, or None where BRIDGE-Open does not hold the task.

    Raises:
        MedtasksError: the archive cannot be fetched or read.
    """
    return _find(source, *TEST)


def fewshot_file(source: Source) -> tuple[Path, str] | None:
    """Archive and member of a task's five examples, which have gold answers."""
    return _find(source, *FEWSHOT)


def commit(archive: Path) -> str:
    """The commit that the hub's cache holds the archive of."""
    return archive.parent.name


def _find(source: Source, archive_name: str, suffix: str) -> tuple[Path, str] | None:
    from medtasks_ext.data.sources import letters

    if not source.official_name:
        return None
    archive = hub_file(REPO, REVISION, archive_name)
    wanted = {letters(name) for name in (source.official_name, *source.other_names)}
    found = (
        name for name in _members(archive) if name.endswith(suffix) and letters(_stem(name, suffix)) in wanted
    )
    member = next(found, None)
    return (archive, Path(member).name) if member else None


def _stem(member: str, suffix: str) -> str:
    return Path(member).name.removesuffix(suffix)


@lru_cache(maxsize=2)
def _members(archive: Path) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(archive) as content:
            return tuple(content.namelist())
    except zipfile.BadZipFile:
        raise MedtasksError(
            "is not a zip archive", where=archive, remedy="delete it and run again to download it anew"
        ) from None
