"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from medtasks_ext.errors import MedtasksError

_REMEDY = "make room or give write access, then run the same command again; what is written is kept"


@contextmanager
def atomic_file(path: Path, *, remedy: str = _REMEDY) -> Iterator[BinaryIO]:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part.

    The content goes to a file of its own name beside the place, is brought to the disk, and takes the place.
    Where the body raises, the old content stays.

    Args:
        path: of the file; missing folders are made.
        remedy: what the user can do where the place cannot be written.

    Raises:
        MedtasksError: the disk is full, or the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "wb", dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as part:
            try:
                yield cast("BinaryIO", part)
                part.flush()
                os.fsync(part.fileno())
            except BaseException:
                with suppress(OSError):
                    Path(part.name).unlink()
                raise
        Path(part.name).chmod(0o666 & ~umask())  # a temporary file is its owner's alone
        Path(part.name).replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error, remedy) from None


def sync_folder(folder: Path) -> None:
    """Make names that were added to a folder survive a power cut, where the system offers it."""
    with suppress(OSError):  # Windows, and some network disks
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cannot_write(path: Path, error: OSError, remedy: str = _REMEDY) -> MedtasksError:
    """The error for a file that cannot be written."""
    return MedtasksError(f"cannot be written ({error.strerror or error})", where=path, remedy=remedy)


def umask() -> int:
    """The permissions that the user's settings take from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
