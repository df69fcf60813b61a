"""Changes of a store that happen as a whole or not at all.

New files are written to `_staging/`. Then `_journal.json`, which lists what is to be moved into place and
what is to be deleted, appears in one step: from that moment the change has happened. Whoever opens the
store afterwards first completes what the journal lists, as often as it takes.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.results.store.layout import (
    COMMIT_LOCK,
    INGEST_LOCK,
    JOURNAL,
    SCHEMA,
    STAGING,
    check_folder,
    check_schema,
    is_store,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


class Change:
    """New and deleted files of a store, without effect until `commit`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._staging = f"{STAGING}/{uuid4().hex}"
        self._new: list[str] = []
        self._gone: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._new or self._gone)

    def new(self, path: str) -> Path:
        """Where to write what is going to be the file `path` of the store."""
        staging = self.folder / self._staging
        staging.mkdir(parents=True, exist_ok=True)
        self._new.append(path)
        return staging / _staged(len(self._new))

    def write_json(self, path: str, content: Any) -> None:
        """Write a new file."""
        self.new(path).write_text(json.dumps(content, ensure_ascii=False, default=str), encoding="utf-8")

    def delete(self, paths: Iterable[str]) -> None:
        """Files that are going to be deleted."""
        self._gone += paths

    def commit(self) -> None:
        """Let the change happen; what is on disk then survives a loss of power, too."""
        staging = self.folder / self._staging
        staging.mkdir(parents=True, exist_ok=True)
        plan = {"schema": SCHEMA, "staging": self._staging, "new": self._new, "gone": self._gone}
        journal = staging / JOURNAL
        journal.write_text(json.dumps(plan), encoding="utf-8")
        for written in (*staging.iterdir(), staging, staging.parent):
            _sync(written)
        with _lock(self.folder / COMMIT_LOCK):
            journal.replace(self.folder / JOURNAL)
            _sync(self.folder)
            _complete(self.folder)


def _staged(number: int) -> str:
    return f"{number}.new"


def _complete(folder: Path) -> None:
    """Do what the journal lists, from the beginning or from where it was interrupted."""
    journal = folder / JOURNAL
    if not journal.is_file():
        return
    plan = read_json(journal)
    touched = set()
    for number, path in enumerate(plan["new"], start=1):
        staged, place = folder / plan["staging"] / _staged(number), folder / path
        if staged.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(place)
        elif not place.is_file():
            raise MedtasksError(
                "a file that belongs to the store is gone",
                where=place,
                remedy="ingest the runs into a new store",
            )
        touched |= {parent for parent in place.parents if parent.is_relative_to(folder)}
    for path in plan["gone"]:
        (folder / path).unlink(missing_ok=True)
        touched.add((folder / path).parent)
    for changed in touched:
        if changed.is_dir():
            _sync(changed)
    journal.unlink()
    _discard(folder)


def _discard(folder: Path) -> None:
    """Remove staged files, unless a change that has happened still needs them."""
    if not (folder / JOURNAL).is_file():
        shutil.rmtree(folder / STAGING, ignore_errors=True)


def _sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a loss of power."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders, and keeps their names by itself
    descriptor = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def changing(folder: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[Change]:
    """Change a store, or make one. One process at a time; others wait.

    Args:
        folder: of the store.
        waiting: called if another process is at work.

    Raises:
        MedtasksError: the folder can be no store, is one of a newer version, or cannot be written to.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / INGEST_LOCK, waiting):
            with _lock(folder / COMMIT_LOCK):
                check_folder(folder)
                _complete(folder)
            _discard(folder)  # what a process left that was killed
            try:
                yield Change(folder)
            finally:
                _discard(folder)
    except OSError as error:  # no room, no permission
        raise MedtasksError(
            f"the ingest stopped: {error}", where=folder, remedy="mend that and ingest again; nothing is lost"
        ) from None


@contextmanager
def at_rest(folder: Path) -> Iterator[None]:
    """Read a store while nobody changes it; an interrupted change is completed first.

    Raises:
        MedtasksError: there is no store, it is of a newer version, or a change must be completed and may
            not be.
    """
    if not is_store(folder):
        raise MedtasksError(
            "holds no store", where=folder, remedy="medtasks ingest RUN... --store DIR makes one"
        )
    with ExitStack() as stack:
        try:
            stack.enter_context(_lock(folder / COMMIT_LOCK))
        except OSError:  # a folder that may only be read
            if (folder / JOURNAL).is_file():
                raise MedtasksError(
                    "an ingest was interrupted, and this account may not complete it",
                    where=folder,
                    remedy="open the store once with an account that may write to it",
                ) from None
        check_schema(folder)
        _complete(folder)
        yield


@contextmanager
def _lock(file: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(file)
    try:
        lock.acquire(timeout=0.5)
    except Timeout:
        waiting()
        lock.acquire()
    except NotImplementedError as error:  # a file system without locks
        raise OSError(str(error)) from None
    try:
        yield
    finally:
        lock.release()
