"""Zip archives of sources, with limits that no source comes near: what is made to fill a disk is refused."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from pathlib import Path

_MEMBERS, _BYTES, _RATIO = 500_000, 16 << 30, 1000
_SMALL = 1 << 20  # bytes of a member whose ratio says nothing


def open_archive(path: Path) -> zipfile.ZipFile:
    """The archive, its members counted and measured by what its directory says.

    A member that unpacks to more than the directory says is an error when it is read.

    Raises:
        MedtasksError: it is no zip archive, or has too many members, or too large ones.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise MedtasksError("is not a zip archive", where=path, remedy="download it again") from None
    members = archive.infolist()
    large = [item for item in members if item.file_size > max(_SMALL, _RATIO * item.compress_size)]
    why = ""
    if len(members) > _MEMBERS:
        why = f"{len(members):,} members, more than {_MEMBERS:,}"
    elif (size := sum(item.file_size for item in members)) > _BYTES:
        why = f"{size / 1e9:,.0f} GB unpacked, more than {_BYTES / 1e9:,.0f}"
    elif large:
        why = f"a member that unpacks to more than {_RATIO:,} times its size"
    if why:
        archive.close()
        raise MedtasksError(
            f"is no archive of a source: {why}", where=path, remedy="get it from its owner again"
        )
    return archive
