"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from medtasks_ext.errors import MedtasksError
from medtasks_ext.secret_values import Secrets

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
        MedtasksError: the disk is full, the folder cannot be written, or the file would hold a secret.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = beside(path)
        with part.open("xb") as file:
            try:
                yield file
                file.flush()
                Secrets.known().check(part, path)
                os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    part.unlink()
                raise
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error, remedy) from None


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, whole or not at all.

    Raises:
        MedtasksError: as for `atomic_file`.
    """
    with atomic_file(path) as file:
        file.write(text.encode(errors="replace"))


def sync_folder(folder: Path) -> None:
    """Make names that were added to a folder survive a power cut, where the system offers it."""
    with suppress(OSError):  # Windows, and some network disks
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cannot_write(path: Path | str, error: OSError, remedy: str = _REMEDY) -> MedtasksError:
    """The error for a file that cannot be written."""
    return MedtasksError(f"cannot be written ({error.strerror or error})", where=path, remedy=remedy)


def beside(path: Path) -> Path:
    """A place of its own for what is made before it takes a place; no other process has the name."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def is_private(folder: Path) -> bool:
    """Whether a folder is its owner's alone."""
    try:
        return not folder.stat().st_mode & 0o077
    except OSError:
        return False


def make_private(folder: Path) -> None:
    """Make a folder, and all that it holds, its owner's alone.

    Raises:
        MedtasksError: the user may not change permissions there.
    """
    try:
        folder.chmod(0o700)
        for place, folders, files in os.walk(folder):
            for name in folders:
                Path(place, name).chmod(0o700)
            for name in files:
                Path(place, name).chmod(0o600)
    except OSError as error:
        raise cannot_write(folder, error, "name a folder of your own, since its texts are not open") from None


@contextmanager
def private_files(wanted: bool) -> Iterator[None]:
    """New files and folders of this process and those that it starts are the user's alone, if `wanted`."""
    mask = os.umask(0o077) if wanted else None
    try:
        yield
    finally:
        if mask is not None:
            os.umask(mask)
