"""Whether local files are those that the task's file pins: what `data check` says of their content."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from medtasks_ext.rows.digests import has_digest, sha256_of
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import remote_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.registry import Dataset

_HEX = 12  # digits of a hash that a note shows


class KnownContent(NamedTuple):
    """What is known of local files."""

    notes: list[str]  # one for each file whose content, or whose name alone, is that of a pinned file
    is_pinned: bool  # whether each of them has the content of a pinned file


def known_content(dataset: Dataset, files: Sequence[Path]) -> KnownContent:
    """Whether files are those that the task's file pins.

    A file is compared with every pinned file of the dataset, then with the one that has its name.

    Args:
        dataset: whose rows the files hold.
        files: what is read; of a folder, every file in it.
    """
    pinned = {
        PurePosixPath(file.name).name: (file.digest, file.members)
        for file in remote_files(source_of(dataset))
        if file.digest
    }
    notes, n_pinned, members = [], 0, [item for file in files for item in _members(file)] if pinned else []
    for path in members:
        same = next((name for name, (digest, read) in pinned.items() if has_digest(path, digest, read)), None)
        if same:
            n_pinned += 1
            notes.append(f"{path.name} is the pinned {same} ({_short(pinned[same][0])})")
        elif path.name in pinned:
            here, there = _short(f"sha256:{sha256_of(path)}"), _short(pinned[path.name][0])
            notes.append(f"{path.name} is not the pinned file of this name: {here} here, {there} pinned")
    return KnownContent(notes, 0 < n_pinned == len(members))


def _members(file: Path) -> list[Path]:
    return sorted(item for item in file.rglob("*") if item.is_file()) if file.is_dir() else [file]


def _short(digest: str) -> str:
    kind, _, value = digest.partition(":")
    return f"{kind}:{value[:_HEX]}…"
