"""Files that appear whole or not at all.

A folder may have a keeper, which hears of everything before it happens there: it may refuse it, and notes it.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from medtasks_ext.errors import MedtasksError
from medtasks_ext.secret_values import Secrets

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BLOCK = 1 << 18  # bytes that are gathered before they are hashed and written
_REMEDY = "make room or give write access, then run the same command again; what is written is kept"


class Keeper(Protocol):
    """Watches over what this process writes below a folder. Every method may refuse by a MedtasksError."""

    def writing(self) -> None:
        """Bytes are about to reach a file."""

    def taking(self, path: Path, size: int, digest: str) -> None:
        """A whole file is about to take its place.

        Args:
            size: of its content, in bytes.
            digest: SHA-256 of its content, in hexadecimal.
        """

    def removing(self, path: Path) -> None:
        """A file is about to be removed."""

    def appending(self, path: Path, state: Callable[[], tuple[int, str]]) -> None:
        """A chained file is opened to append to it.

        Args:
            state: gives its size in bytes and the chain of its last line, whenever it is called.
        """


_keepers: dict[Path, Keeper] = {}


@contextmanager
def kept(folder: Path, keeper: Keeper) -> Iterator[None]:
    place = folder.resolve()
    former = _keepers.get(place)
    _keepers[place] = keeper
    try:
        yield
    finally:
        if former is None:
            del _keepers[place]
        else:
            _keepers[place] = former


def keeper_of(path: Path) -> Keeper | None:
    if not _keepers:
        return None
    keepers = (_keepers.get(folder) for folder in path.parent.resolve().joinpath(path.name).parents)
    return next((keeper for keeper in keepers if keeper is not None), None)


class _Hashed(io.RawIOBase):
    """A new file, of which all that reaches it is hashed and counted: in the blocks of a buffer above it.

    It has no descriptor to give away, so that nobody writes past it, as NumPy does where it can.
    """

    def __init__(self, file: io.FileIO) -> None:
        self._file, self._digest, self.size = file, sha256(), 0

    def write(self, content: ReadableBuffer, /) -> int:
        size = self._file.write(content)
        self._digest.update(memoryview(content)[:size])
        self.size += size
        return size

    def writable(self) -> bool:
        return True

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


@contextmanager
def atomic_file(path: Path, *, remedy: str = _REMEDY) -> Iterator[BinaryIO]:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part.

    The content goes to a file of its own name beside the place, is brought to the disk, and takes the place;
    it is written from its beginning to its end. Where the body raises, the old content stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part, keeper = beside(path), keeper_of(path)
        with io.FileIO(part, "xb") as raw, io.BufferedWriter(hashed := _Hashed(raw), _BLOCK) as file:
            try:
                yield file
                file.flush()
                Secrets.known().check(part, path)
                os.fsync(raw.fileno())
                if keeper is not None:
                    keeper.taking(path, hashed.size, hashed.digest)
            except BaseException:
                with suppress(OSError):
                    part.unlink()
                raise
        part.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error, remedy) from None


def remove(path: Path) -> None:
    if not path.is_file():
        return
    if (keeper := keeper_of(path)) is not None:
        keeper.removing(path)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode(errors="replace"))


def check_regular(path: Path, *, folder_too: bool = False) -> None:
    """Refuse a pipe or device, whose reading may never end, or a link in a circle; a missing name passes."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return
    except OSError as error:
        raise MedtasksError(
            f"cannot be read ({error.strerror})", where=str(path)[:200], remedy="put the file itself there"
        ) from None
    if not (stat.S_ISREG(mode) or (folder_too and stat.S_ISDIR(mode))):
        raise MedtasksError(
            "is no plain file (a folder, pipe, device or socket)",
            where=path,
            remedy="put the file itself there",
        )


def check_all_regular(folder: Path) -> None:
    waiting = [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:  # no folder, or none that may be read: said by who reads it
            continue
        for item in entries:
            if item.is_dir(follow_symlinks=False):
                waiting.append(Path(item.path))
            elif not item.is_file(follow_symlinks=False):
                check_regular(Path(item.path), folder_too=True)


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


def beside(path: Path) -> Path:
    """A place of its own for what is made before it takes a place; no other process has the name."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


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
def private_files(wanted: bool) -> Iterator[None]:
    """New files and folders of this process and those that it starts are the user's alone, if `wanted`."""
    mask = os.umask(0o077) if wanted else None
    try:
        yield
    finally:
        if mask is not None:
            os.umask(mask)
