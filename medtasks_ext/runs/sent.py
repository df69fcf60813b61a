"""Which hosts got text of which datasets: `RUN/sent.jsonl`, a line for each host and dataset.

A line is on the disk before the first text leaves. The file is written whole; one process at a time, since
those that have no lease in common may add lines as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medtasks_ext.atomic import cannot_write
from medtasks_ext.egress import AskedServer, Permission, Text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import numbered_lines, write_lines

FILE = "sent.jsonl"
_LOCK = ".sent.lock"
_RESTORE = "restore the file"


class Sent(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str  # name or address
    dataset: str  # whose text
    is_open: bool = Field(alias="open")  # whether everyone may read it
    way: Permission  # why the host may receive text that is not open, or that it may not
    #: local time of the first text
    since: str = Field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S"))


def read_sent(folder: Path) -> list[Sent]:
    """Oldest first; nothing where no text left."""
    path, sent = folder / FILE, []
    for number, line in numbered_lines(path, remedy=_RESTORE) if path.is_file() else ():
        try:
            sent.append(Sent.model_validate_json(line))
        except ValidationError:
            raise MedtasksError(f"line {number} is damaged", where=path, remedy=_RESTORE) from None
    return sent


_Key: TypeAlias = tuple[str, str, Permission]


class SentLog:
    """Threads may share it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._known: set[_Key] = set()

    def add(self, place: AskedServer, text: Text) -> None:
        """Once for each host and dataset; an error of the disk means that nothing may be sent."""
        self.join([Sent(host=place.host, dataset=text.dataset, open=text.is_open, way=place.way)])

    def join(self, records: Iterable[Sent]) -> None:
        with self._lock:
            known = self._known
            if new := {_key(item): item for item in records if item.dataset and _key(item) not in known}:
                with self._alone():
                    self._write(new)
                known |= new.keys()

    def _write(self, new: Mapping[_Key, Sent]) -> None:
        there = {_key(item): item for item in read_sent(self._path.parent)}
        if new.keys() <= there.keys():
            return
        items = [*there.values(), *(item for key, item in new.items() if key not in there)]
        ordered = sorted(items, key=lambda item: item.since)
        write_lines(self._path, (item.model_dump(mode="json", by_alias=True) for item in ordered))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Other processes neither read nor write the file meanwhile, where the disk has locks."""
        lock = FileLock(self._path.with_name(_LOCK), mode=0o600)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except NotImplementedError:  # a disk without locks
            pass
        except OSError as error:
            raise cannot_write(self._path, error) from None
        try:
            yield
        finally:
            lock.release()


def _key(item: Sent) -> _Key:
    return item.host, item.dataset, item.way
