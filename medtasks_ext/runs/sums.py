"""`RUN/sha256sums.txt`: what each file of a run's folder held when the last call ended.

The form is that of `sha256sum`. A call takes the file away when it begins and writes it when it ends: a
folder without it is interrupted. What somebody changed before a call, and the call did not write anew, keeps
the hash that it had, so that the change shows ever after. Whoever changes a folder can write this file, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from medtasks_ext.atomic import atomic_file, check_all_regular, remove
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.runs.manifest import FILE as MANIFEST

FILE = "sha256sums.txt"
#: What to do about files that were changed.
RESTORE = "bring them back from a copy; `medtasks rescore RUN` writes anew what follows from the answers"
_DIGITS = 64
#: Nanoseconds after which a file that changes gets another time, whatever the clock of its disk.
_SETTLED = 2_000_000_000


@dataclass(frozen=True, slots=True)
class FolderState:
    """How a run's folder stands against its hashes."""

    interrupted: bool = False  # whether a call is under way, or was cut off
    changed: tuple[str, ...] = ()  # files, below the folder, that are others, gone or new since the last call

    @property
    def mark(self) -> str:
        """What whoever reads the folder must know; empty where it is as a call left it."""
        if self.changed:
            return f"changed since the run ended: {some(list(self.changed))}"
        return "interrupted: a call is under way, or was cut off" if self.interrupted else ""


def state_of(folder: Path) -> FolderState:
    """Hold a run's folder against its hashes. Every file is read."""
    check_all_regular(folder)
    if (stated := _stated(folder)) is None:
        return FolderState(interrupted=True)
    there = _there(folder)
    names = stated.keys() | there.keys()
    return FolderState(changed=tuple(sorted(name for name in names if stated.get(name) != there.get(name))))


def refuse_changed(folder: Path) -> None:
    """Refuse to publish what a run did not write, or did not finish; what is no run's folder passes."""
    if (folder / MANIFEST).is_file() and (state := state_of(folder)).mark:
        remedy = "call the same command again" if state.interrupted else RESTORE
        raise MedtasksError(state.mark, where=folder, remedy=remedy)


@contextmanager
def hashed(folder: Path) -> Iterator[None]:
    """Within it, a run's folder changes; at its end the hashes are written."""
    stated = _stated(folder)
    before = {} if stated is None else _there(folder)
    remove(folder / FILE)
    try:
        yield
    finally:
        with suppress(MedtasksError):  # what ended the call says more; the folder is interrupted
            _write(folder, stated, before)


def _write(folder: Path, stated: Mapping[str, str] | None, before: Mapping[str, str]) -> None:
    if not (folder / MANIFEST).is_file():
        return
    sums = _there(folder)
    if stated is not None:
        for name in (stated.keys() | before.keys()) - {FILE}:
            if before.get(name) == sums.get(name):  # this call did not write it
                sums[name] = stated.get(name, "")
    with atomic_file(folder / FILE) as file:
        for name, digest in sorted(sums.items()):
            if digest and "\n" not in name:
                file.write(os.fsencode(f"{digest}  {name}\n"))


def _stated(folder: Path) -> dict[str, str] | None:
    """File -> its hash when the last call ended; None where it did not end."""
    try:
        lines = (folder / FILE).read_bytes().splitlines()
    except FileNotFoundError:
        return None
    found = {}
    for line in map(os.fsdecode, lines):
        digest, blanks, name = line[:_DIGITS], line[_DIGITS : _DIGITS + 2], line[_DIGITS + 2 :]
        whole = blanks == "  " and name not in found
        found[name if whole else FILE] = digest  # a damaged line: the file itself was changed
    return found


def _there(folder: Path) -> dict[str, str]:
    """File -> its hash now, empty where it cannot be read; without those that a dot hides, and the hashes."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "."]
        for path in (Path(place, name) for name in names if name[0] != "."):
            name = path.relative_to(folder).as_posix()
            try:
                found[name] = _digest(path)
            except FileNotFoundError:  # gone meanwhile
                continue
            except OSError:
                found[name] = ""
    found.pop(FILE, None)
    return found


def _digest(path: Path) -> str:
    """The hash of a file; in one process an unchanged file is read once."""
    state = path.stat()
    if time.time_ns() - state.st_ctime_ns < _SETTLED:
        return _read(path)
    return _digest_of(path, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@lru_cache(maxsize=1 << 16)
def _digest_of(path: Path, *state: int) -> str:
    return _read(path)


def _read(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
