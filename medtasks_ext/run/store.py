"""What became of each request: one line of JSON an outcome, appended as it comes, on the disk within half a
second.

A folder has one file for each process that wrote (`answers.jsonl`, and `answers-NAME.jsonl` beside it): runs
of one model on several machines are joined by putting their files into one folder. A line says by a hash of
itself that it is whole. A torn last line is dropped, and its request asked again; a damaged one in the middle
is named, and the rest is used.

`outcome` is `answer` or `fault`, or says what else a line is: `intent`, a request that is about to be sent,
and its `cost` in US dollars at most; `question`, what a document is asked whose outcome stands under another
one, or comes `out` of a batch's file; `sent`, a host that gets text of a dataset.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from medtasks_ext.atomic import (
    cannot_write,
    check_all_regular,
    check_regular,
    checked,
    folder_for_files,
    is_private,
    sync_folder,
)
from medtasks_ext.egress import AskedServer, Permission, Text
from medtasks_ext.engines import Answer, Fault, Likelihood, Outcome, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import json_bytes, parse_json
from medtasks_ext.keys import Secrets
from medtasks_ext.run.lock import DEAD, FolderLock
from medtasks_ext.runs.folder import hashed

FILES = "answers*.jsonl"
#: Seconds between two times at which what was written is made to survive a power cut.
WRITE_SECONDS = 0.5
#: Letters of a key, and of a line's hash.
KEY, HASH = 32, 16
_END = len(',"hash":""}\n') + HASH


class Asked(NamedTuple):
    """What a document was asked last."""

    key: str
    cut: str  # of its prompt, as `Request.cut`


#: One line.
Row: TypeAlias = dict[str, Any]


class Answers:
    """The outcomes of a folder. Threads may use it; one process may write.

    `folder`: of the run. `write`: whether outcomes are added; a reader needs no right to write, and may read
    while another process writes. `command`: what the process does, for the message that others get. `rank`:
    of this process, where a launcher started several that share the folder; each writes a file of its own.

    Attributes:
        asked: task -> document -> its last question that was answered, or went into a file of a batch.
        faults: task and document whose last request has no answer -> why.
        out: key of a request that went into a file of a batch, and did not come back -> the file.
        unsettled: what calls that were killed may have spent.
        damaged: lines that were not used: file and number.
    """

    def __init__(
        self, folder: Path, *, write: bool = True, command: str = "another process", rank: int = 0
    ) -> None:
        self.folder, self.damaged = folder, list[str]()
        self.asked: dict[str, dict[str, Asked]] = {}
        self.faults = dict[tuple[str, str], str]()
        self.out, self.unsettled = dict[str, str](), Unsettled()
        part = f"-rank{rank}" if rank else ""
        self._path = folder / f"answers{part}.jsonl"
        self._index: dict[str, tuple[Path, int, int]] = {}  # key -> file, place and length of its line
        self._read: dict[Path, tuple[int, int]] = {}  # file -> bytes and lines of it that are known
        self._file: int | None = None
        self._lines: list[bytes] = []  # that the disk has not taken yet
        self._lock, self._writing, self._noting = (threading.Lock() for _ in range(3))
        self._error: MedtasksError | None = None
        self._secrets: Secrets | None = None  # known when the first outcome comes
        self._noted: set[tuple[Any, ...]] = set()  # what this process has noted of hosts
        if not write:
            self.refresh()
            return
        self.held = FolderLock(folder, command, f".writing{part}.lock")
        try:
            self.refresh()
            self._open()
        except BaseException:
            self.held.release()
            raise

    def refresh(self) -> None:
        """Take note of what another process has written since; for who does not write."""
        for path, start, line in _lines_in(self.folder, self._read, self.damaged):
            row = json.loads(line)
            if row["outcome"] == "answer":
                self._index.setdefault(row["key"], (path, start, len(line)))
            self.see(row)

    def see(self, row: Row) -> None:
        """Take note of a line that is there, or is added."""
        key, kind = row["key"], row["outcome"]
        if kind in ("answer", "question"):
            self.asked.setdefault(row["task"], {})[row["document"]] = Asked(key, row.get("cut", ""))
        if kind in ("answer", "fault"):
            self.out.pop(key, None)
        elif row.get("out"):
            self.out[key] = row["out"]
        if kind in ("answer", "question"):
            self.faults.pop((row["task"], row["document"]), None)
        elif kind == "fault":
            self.faults[row["task"], row["document"]] = row["reason"] or row["kind"]
        self.unsettled.see(row)

    def answered(self, task: str) -> dict[str, Asked]:
        """The documents of a task that have an answer, and what they were asked."""
        return {document: item for document, item in self.asked.get(task, {}).items() if item.key in self}

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Key -> answer, of those that have one."""
        found: dict[str, Answer] = {}
        if self._file is not None:
            self._write(waits=True)
            self.check()
        with self._lock:
            places = sorted((*self._index[key], key) for key in set(keys) if key in self)
        try:
            for path, lines in groupby(places, lambda place: place[0]):
                with path.open("rb") as file:
                    for _, start, length, key in lines:
                        file.seek(start)
                        found[key] = answer_of(parse_json(file.read(length)))
        except OSError as error:
            remedy = "put the file back"
            raise MedtasksError(f"cannot be read ({error.strerror})", where=path, remedy=remedy) from None
        return found

    def __contains__(self, key: str) -> bool:
        """Whether `known` has it, without a look at the disk."""
        return key in self._index

    def put(
        self, key: str, outcome: Outcome, task: str, document: str, about: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Keep an outcome, and give an answer as the file has it, without secrets.

        `task`, `document`: whose request it was. `about`: what else the line says.
        """
        kind, said = outcome.__class__.__name__.lower(), {**_said(outcome), **(about or {})}
        hides = self.note(key, kind, task, document, said)
        return answer_of(hides) if hides and kind == "answer" else outcome

    def note(self, key: str, kind: str, task: str, document: str, said: Row) -> Row | None:
        """Add a line, and give what it says where it hides secrets; a key's first answer counts."""
        row: Row = {"key": key, "outcome": kind, "task": task, "document": document, **said}
        row["at"] = round(time.time(), 3)
        self._secrets, hides = self._secrets or Secrets.known(), None
        body = json_bytes(row)
        if (hidden := self._secrets.hidden(body)) != body:
            row = hides = parse_json(hidden)
        line = _line(hidden)
        with self._lock:
            if key in self and kind in ("answer", "fault", "intent"):
                return hides
            if kind == "answer":
                self._index[key] = (self._path, self._end, len(line))
            self._lines.append(line)
            self._end += len(line)
        if self._error is None:  # who is killed loses nothing; what may be charged is noted, then sent
            self._write(waits=kind == "intent")
        self.see(row)
        return hides

    def sent(self, place: AskedServer, text: Text) -> None:
        """Note on the disk that a host gets text of a dataset; an error means that nothing may be sent.

        `way`: why it may receive text that is not open, or that it may not.
        """
        whom = place.host, text.dataset, text.is_open, place.way
        if not text.dataset or whom in self._noted:
            return
        said = {"host": place.host, "dataset": text.dataset, "open": text.is_open, "way": place.way.value}
        with self._noting:
            if whom not in self._noted:
                self.note(key_of(place.host, tuple(said.values())), "sent", "", "", said)
                self.flush()
                self._noted.add(whom)

    def flush(self) -> None:
        """Bring everything to the disk, so that it survives a power cut, too."""
        self._sync()
        self.check()

    def check(self) -> None:
        """Raise what keeps outcomes from the disk."""
        if self._error is not None:
            raise self._error

    def rows(self) -> Iterator[Row]:
        """All lines of the folder that are whole, those of faults too, in their order within each file."""
        return rows_in(self.folder)

    def close(self) -> None:
        """Write the rest, and give the folder free."""
        if self._file is None:
            return
        self._over.set()
        self._thread.join()
        try:
            self.flush()
        finally:
            os.close(self._file)
            self._file = None
            self.held.release()

    def _open(self) -> None:
        #: bytes of the file, and with the lines that it has not taken yet
        self._size = self._end = self._read.get(self._path, (0, 0))[0]
        try:
            mode = 0o600 if is_private(self.folder) else 0o666
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND, mode)
            if os.fstat(self._file).st_size > self._size:  # a torn line
                os.ftruncate(self._file, self._size)
        except OSError as error:
            raise cannot_write(self._path, error) from None
        sync_folder(self.folder)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="answers", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._over.wait(WRITE_SECONDS):
            self._sync()

    def _sync(self) -> None:
        """Make all survive a power cut; what comes meanwhile is written beside it."""
        assert self._file is not None
        self._write(waits=True)
        try:
            os.fsync(self._file)
        except OSError as error:
            self._error = cannot_write(self._path, error)

    def _write(self, *, waits: bool = False) -> None:
        """Write what is new, so that it survives the end of this process. One thread writes for all, and what
        comes meanwhile, too; `waits`: for another thread that writes."""
        assert self._file is not None
        while self._writing.acquire(blocking=waits):
            try:
                with self._lock:
                    lines, n, end = [*self._lines], len(self._lines), self._end
                self.held.touch()
                content = memoryview(b"".join(lines))
                while content:
                    content = content[os.write(self._file, content) :]
                with self._lock:
                    self._size, self._error, self._lines[:n] = end, None, []
            except MedtasksError as error:
                self._error = error
            except BaseException as error:  # a signal strikes here, too: what it cut off is written anew
                with suppress(OSError):
                    os.ftruncate(self._file, self._size)
                if not isinstance(error, OSError):
                    raise
                self._error = cannot_write(self._path, error)
            finally:
                self._writing.release()
            if self._error is not None or not self._lines:
                return


@contextmanager
def working_in(folder: Path, command: str, *, private: bool = False) -> Iterator[Answers]:
    """Within it, this process alone writes to a run's folder; at its end the hashes are written.

    A process that has lost the folder writes nothing more.

    `command`: for the message that others get. `private`: the folder is made its owner's alone, since it gets
    text that is not open.
    """
    check_all_regular(folder)
    with folder_for_files(folder, private=private):
        answers = Answers(folder, command=command)
        try:
            with checked(folder, answers.held.check):
                with suppress(OSError):
                    for part in folder.rglob(".*.part"):  # what killed processes left half written
                        if time.time() - part.stat().st_mtime > DEAD:
                            part.unlink()
                with hashed(folder):
                    try:
                        yield answers
                    finally:
                        with suppress(MedtasksError):  # what ended the call says it
                            answers.flush()
        finally:
            answers.close()


_PARTS = json.JSONEncoder(sort_keys=True, default=str)


def key_of(identity: str, parts: Sequence[Any]) -> str:
    return sha256(_PARTS.encode([identity, *parts]).encode()).hexdigest()[:KEY]


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob(FILES))


def rows_in(folder: Path, kind: str = "") -> Iterator[Row]:
    """The whole lines of a folder, which somebody else may be writing to; `kind`: all by default."""
    begin = f'"outcome":"{kind}'.encode()
    for _, _, line in _lines_in(folder, {}, []):
        if begin in line[: KEY + 50]:  # in front of what others wrote
            yield json.loads(line)


def _lines_in(
    folder: Path, read: dict[Path, tuple[int, int]], damaged: list[str]
) -> Iterator[tuple[Path, int, bytes]]:
    """File, place in it and line of what has come since `read`, which is kept up; a line that does not end
    may come still. `damaged` gets the lines that are not used: file and number."""
    for path in files_of(folder):
        check_regular(path)
        start, number = read.get(path, (0, 0))
        with path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                place, start, number = start, start + len(line), number + 1
                read[path] = (start, number)
                if line[-HASH - 3 : -3] == _hash(line[:-_END]):
                    yield path, place, line
                else:
                    damaged.append(f"{path.name}, line {number}")


def closed_text_in(*folders: Path) -> dict[tuple[str, str], list[str]]:
    """Host other than this machine, and why it may -> datasets whose text it got that is not open."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in (row for folder in folders for row in rows_in(folder, "sent")):
        names = found.setdefault((row["host"], row["way"]), [])
        if not row["open"] and row["dataset"] not in names:
            names.append(row["dataset"])
    here = Permission.LOOPBACK.value
    return {whom: names for whom, names in found.items() if names and whom[1] != here}


class Unsettled(dict[tuple[str, str], list[float]]):
    """Task and key -> US dollars at most of each try that was sent and whose end nobody knows."""

    def see(self, row: Row) -> None:
        costs = self.setdefault((row["task"], row["key"]), [])
        if row["outcome"] == "intent":
            costs.append(row["cost"])
        elif row.get("settles") in costs:
            costs.remove(row["settles"])
        if not costs:
            del self[row["task"], row["key"]]

    def total(self, task: str = "") -> float:
        """Of one task, or of all."""
        return sum(sum(costs) for (name, _), costs in self.items() if task in ("", name))


def _line(body: bytes) -> bytes:
    begin = body[:-1]
    return b'%s,"hash":"%s"}\n' % (begin, _hash(begin))


def _hash(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:HASH].encode()


#: Name of each field, and what it is as ever.
_FIELDS = {kind: [(one.name, one.default) for one in fields(kind)] for kind in (Answer, Fault, Usage)}


def _said(value: Outcome | Usage) -> Row:
    """The fields that are not as ever."""
    said = {name: item for name, ever in _FIELDS[type(value)] if (item := getattr(value, name)) != ever}
    if isinstance(usage := said.get("usage"), Usage):
        said["usage"] = _said(usage)
    return said


def answer_of(row: Mapping[str, Any]) -> Answer:
    """The answer that a line holds."""
    said = {name: row[name] for name, _ in _FIELDS[Answer] if name in row}
    if usage := said.get("usage"):
        said["usage"] = Usage(**usage)
    likelihoods = tuple(Likelihood(*item) for item in said.get("likelihoods", ()))
    return Answer(**{**said, "likelihoods": likelihoods})
