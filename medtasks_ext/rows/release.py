"""A suite's public release on the hub: official prompts of its open tasks, without gold answers.

`release` in `suite.yaml` says where they are. Tasks read from there can be predicted and exported for the
leaderboard, not scored. They are read only when asked for (`--data release`), so that nobody spends hours on
predictions by accident.
"""

from __future__ import annotations

import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.remote import RemoteFile

if TYPE_CHECKING:
    from medtasks_ext.registry.suites import Release
    from medtasks_ext.rows.spec import Source

#: The authors' files are not versioned by a published revision: the commit that was read is recorded.
REVISION = "main"
TEST, FEWSHOT = ".SFT.json", ".example.json"


def test_file(release: Release, source: Source) -> tuple[Path, str] | None:
    """Archive and member of a task's test inputs, or None where the release does not hold the task.

    Raises:
        MedtasksError: the archive cannot be fetched or read.
    """
    return _find(release, release.rows, source, TEST)


def fewshot_file(release: Release, source: Source) -> tuple[Path, str] | None:
    """Archive and member of a task's five examples, which have gold answers."""
    return _find(release, release.examples, source, FEWSHOT)


def inputs(release: Release | None, source: Source) -> list[str]:
    """The inputs of a task's released test rows, if the release is on this machine; nothing is downloaded."""
    if release is None or RemoteFile(release.rows, REVISION, release.repo).here() is None:
        return []
    found = test_file(release, source)
    rows = read_rows(*found) if found else []
    return [str(row["input"]) for row in rows if row.get("split", "test") == "test" and row.get("input")]


def commit(archive: Path) -> str:
    """The commit that the hub's cache holds the archive of."""
    return archive.parent.name


def _find(release: Release, name: str, source: Source, suffix: str) -> tuple[Path, str] | None:
    from medtasks_ext.rows.sources import letters

    if not source.official_name:
        return None
    archive = RemoteFile(name, REVISION, release.repo).get()
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
