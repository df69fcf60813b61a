"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from medtasks_ext.errors import MedtasksError

_REMEDY = "make room or give write access, then run the same command again; what is written is kept"
#: Folder -> refuses, by a MedtasksError, where this process may not write below it any more.
_checks: dict[Path, Callable[[], None]] = {}


@contextmanager
def checked(folder: Path, check: Callable[[], None]) -> Iterator[None]:
    """Within it, the check is made before this process writes anything below the folder."""
    _checks[folder.resolve()] = check
    try:
        yield
    finally:
        del _checks[folder.resolve()]


def _check_place(path: Path) -> None:
    """Make the checks of the folders that a file lies in, at any depth."""
    for folder in (path.parent.resolve() / path.name).parents:
        if folder in _checks:
            _checks[folder]()


@contextmanager
def atomic_file(path: Path, *, remedy: str = _REMEDY) -> Iterator[BinaryIO]:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        with part.open("xb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _check_place(path)
            except BaseException:
                with suppress(OSError):
                    part.unlink()
                raise
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error, remedy) from None


@contextmanager
def replaced_folder(folder: Path, *, remedy: str = _REMEDY) -> Iterator[Path]:
    """A new folder that takes the place of this one, as soon as all is written to it."""
    made = folder.with_name(f".{folder.name}.made")
    try:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        yield made
        if folder.exists():
            shutil.rmtree(folder)
        made.replace(folder)
    except OSError as error:
        raise cannot_write(folder, error, remedy) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def remove(path: Path) -> None:
    if path.is_file():
        _check_place(path)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from None


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode(errors="replace"))


def check_regular(path: Path) -> None:
    """Refuse a pipe or device, whose reading may never end, or a link in a circle; a missing name passes."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return
    except OSError as error:
        what, remedy = f"cannot be read ({error.strerror})", "put the file itself there"
        raise MedtasksError(what, where=str(path)[:200], remedy=remedy) from None
    if not stat.S_ISREG(mode):
        what = "is no plain file (a folder, pipe, device or socket)"
        raise MedtasksError(what, where=path, remedy="put the file itself there")


def check_all_regular(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            check_regular(Path(place, name))


def sync_folder(folder: Path) -> None:
    """Make names that were added to a folder survive a power cut, where the system offers it."""
    with suppress(OSError):  # Windows, and some network disks
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cannot_write(path: Path | str, error: OSError, remedy: str = _REMEDY) -> MedtasksError:
    return MedtasksError(f"cannot be written ({error.strerror or error})", where=path, remedy=remedy)


def is_private(folder: Path) -> bool:
    try:
        return not folder.stat().st_mode & 0o077
    except OSError:
        return False


def make_private(folder: Path) -> None:
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
def folder_for_files(folder: Path, *, private: bool = False) -> Iterator[None]:
    """Within it, what is written to a folder is its owner's alone, if the folder is, or is `private` now."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None
    if private and not is_private(folder):
        make_private(folder)
    with private_files(is_private(folder)):
        yield


@contextmanager
def private_files(wanted: bool) -> Iterator[None]:
    """New files and folders of this process and those that it starts are the user's alone, if `wanted`."""
    mask = os.umask(0o077) if wanted else None
    try:
        yield
    finally:
        if mask is not None:
            os.umask(mask)
