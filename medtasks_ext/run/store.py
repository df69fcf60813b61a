"""What became of each request: one line of JSON an outcome, appended as it comes, on the disk within half a
second.

A folder has one file for each process that wrote (`answers.jsonl`, and `answers-NAME.jsonl` beside it): runs
of one model on several machines are joined by putting their files into one folder. A line says by a hash of
itself that it is whole. A torn last line is dropped, and its request asked again; a damaged one in the middle
is named, and the rest is used.

Other lines are of what may be charged (`Intent`), of documents whose outcome stands under another one or
comes later (`Question`), and of hosts that get text (`Sent`).
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields
from hashlib import sha256
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
from medtasks_ext.engines import Answer, Fault, FaultKind, Likelihood, Outcome, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import json_bytes, parse_json
from medtasks_ext.keys import Secrets
from medtasks_ext.run.lock import DEAD, FolderLock
from medtasks_ext.runs.folder import hashed

FILES = "answers*.jsonl"
#: Seconds between two writes: an outcome is on the disk after that time.
WRITE_SECONDS = 0.5
#: Letters of a key, and of a line's hash.
KEY, HASH = 32, 16
_KEY_AT = len('{"key":"')
_KIND_AT = _KEY_AT + KEY + len('","outcome":"')
_END = len(',"hash":""}\n') + HASH


@dataclass(frozen=True, slots=True)
class Intent:
    """A request that is about to be sent, and may be charged."""

    cost: float  # US dollars at most


@dataclass(frozen=True, slots=True)
class Question:
    """What a document is asked, where the outcome stands under another document, or comes later."""

    cut: str = ""  # of the prompt, as `Request.cut`
    out: str = ""  # the file of a batch that holds the request


@dataclass(frozen=True, slots=True)
class Sent:
    """A host that gets text of a dataset, written before the first text leaves."""

    host: str  # name or address
    dataset: str
    open: bool  # whether everyone may read the text
    way: str  # why the host may receive text that is not open, or that it may not


class Asked(NamedTuple):
    """What a document was asked last."""

    key: str
    cut: str  # of its prompt, as `Request.cut`


Kept: TypeAlias = Outcome | Intent | Question | Sent
#: One line.
Row: TypeAlias = dict[str, Any]


class Answers:
    """The outcomes of a folder. Threads may use it; one process may write.

    `folder`: of the run. `write`: whether outcomes are added; a reader needs no right to write, and may read
    while another process writes. `command`: what the process does, for the message that others get. `see`:
    called with each line that is there, and each that is added. `rank`: of this process, where a launcher
    started several that share the folder; each writes a file of its own.

    Attributes:
        asked: task -> document -> its last question that was answered, or went into a file of a batch.
        faults: key of a request without an answer -> its last fault.
        out: key of a request that went into a file of a batch, and did not come back -> the file.
        unsettled: what calls that were killed may have spent.
        damaged: lines that were not used: file and number.
    """

    def __init__(
        self,
        folder: Path,
        *,
        write: bool = True,
        command: str = "another process",
        see: Callable[[Row], None] | None = None,
        rank: int = 0,
    ) -> None:
        self.folder, self.damaged, self._see = folder, list[str](), see
        self.asked: dict[str, dict[str, Asked]] = {}
        self.faults: dict[str, Fault] = {}
        self.out: dict[str, str] = {}
        self.unsettled = Unsettled()
        part = f"-rank{rank}" if rank else ""
        self._path = folder / f"answers{part}.jsonl"
        #: key -> file, place and length of its line
        self._index: dict[str, tuple[Path, int, int]] = {}
        self._lines: list[tuple[str, bytes]] = []  # key and line of what is not on the disk yet
        self._new: dict[str, Answer] = {}  # the answers among them
        self._lock, self._writing, self._syncing = (threading.Lock() for _ in range(3))
        self._error: MedtasksError | None = None
        self._unsynced = False  # whether something is written that a power cut would take
        self._secrets: Secrets | None = None  # known when the first outcome comes
        self._file: int | None = None
        self._follower = Follower(folder, self.damaged)
        self._noting = threading.Lock()
        self._noted: set[tuple[str, str, str]] = set()  # hosts, datasets and ways that this process has noted
        if write:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(folder, error) from None
            self.held = FolderLock(folder, command, f".writing{part}.lock")
        try:
            self.refresh()
            if write:
                self._open()
        except BaseException:
            if write:
                self.held.release()
            raise

    def refresh(self) -> None:
        """Take note of what another process has written since; for who does not write."""
        for path, start, line in self._follower.lines():
            if line.startswith(b"answer", _KIND_AT):
                key = line[_KEY_AT : _KEY_AT + KEY].decode()
                self._index.setdefault(key, (path, start, len(line)))
            self._take_note(json.loads(line))

    def _take_note(self, row: Row) -> None:
        key, kind = row["key"], row["outcome"]
        if kind in ("answer", "question"):
            self.asked.setdefault(row["task"], {})[row["document"]] = Asked(key, row.get("cut", ""))
        if kind in ("answer", "fault"):
            self.out.pop(key, None)
        elif row.get("out"):
            self.out[key] = row["out"]
        if kind == "answer":
            self.faults.pop(key, None)
        elif kind == "fault":
            fault = outcome_of(row)
            assert isinstance(fault, Fault)
            self.faults[key] = fault
        self.unsettled.see(row)
        if self._see is not None:
            self._see(row)

    def answered(self, task: str) -> dict[str, Asked]:
        """The documents of a task that have an answer, and what they were asked."""
        return {document: item for document, item in self.asked.get(task, {}).items() if item.key in self}

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Key -> answer, of those that have one."""
        found: dict[str, Answer] = {}
        places: dict[Path, list[tuple[int, int, str]]] = {}
        with self._lock:
            for key in set(keys):
                if key in self._new:
                    found[key] = self._new[key]
                elif key in self._index:
                    path, start, length = self._index[key]
                    places.setdefault(path, []).append((start, length, key))
        try:
            for path, lines in places.items():
                with path.open("rb") as file:
                    for start, length, key in sorted(lines):
                        file.seek(start)
                        answer = outcome_of(parse_json(file.read(length)))
                        assert isinstance(answer, Answer)
                        found[key] = answer
        except OSError as error:
            remedy = "put the file back"
            raise MedtasksError(f"cannot be read ({error.strerror})", where=path, remedy=remedy) from None
        return found

    def __contains__(self, key: str) -> bool:
        """Whether `known` has it, without a look at the disk."""
        return key in self._new or key in self._index

    def put(
        self, key: str, outcome: Kept, task: str, document: str, about: Mapping[str, Any] | None = None
    ) -> Kept:
        """Keep an outcome, and give it as the file has it, without secrets; a key's first answer counts.

        `task`, `document`: whose request it was. `about`: what else the line says.
        """
        kind = outcome.__class__.__name__.lower()
        record: Row = {"key": key, "outcome": kind, "task": task, "document": document, **_said(outcome)}
        record |= {**(about or {}), "at": round(time.time(), 3)}
        self._secrets = self._secrets or Secrets.known()
        body = json_bytes(record)
        if (hidden := self._secrets.hidden(body)) is not body:
            record = parse_json(hidden)
            outcome = outcome_of(record) if isinstance(outcome, Answer | Fault) else outcome
        line = _line(hidden)
        with self._lock:
            if key in self and not isinstance(outcome, Question | Sent):
                return outcome
            self._lines.append((key if isinstance(outcome, Answer) else "", line))
            if isinstance(outcome, Answer):
                self._new[key] = outcome
        # who is killed loses nothing: while another thread writes, it writes this, too, before it goes on
        while self._lines and self._error is None and self._writing.acquire(blocking=False):
            try:
                self._write()
            finally:
                self._writing.release()
        self._take_note(record)
        return outcome

    def sent(self, place: AskedServer, text: Text) -> None:
        """Note on the disk that a host gets text of a dataset; an error means that nothing may be sent."""
        note = (place.host, text.dataset, place.way.value)
        if note in self._noted or not text.dataset:
            return
        with self._noting:
            if note not in self._noted:
                sent = Sent(place.host, text.dataset, text.is_open, place.way.value)
                self.put(key_of(place.host, note), sent, "", "")
                self.flush()
                self._noted.add(note)

    def flush(self, *, sync: bool = True) -> None:
        """Bring everything to the disk; `sync`: so that it survives a power cut, too."""
        with self._writing:
            self._write()
        if sync:
            self._sync()
        self.check()

    def check(self) -> None:
        """Raise what keeps outcomes from the disk."""
        if self._error is not None:
            raise self._error

    def rows(self) -> Iterator[Row]:
        """All lines of the folder that are whole, those of faults too, in their order within each file."""
        return Follower(self.folder).rows()

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
        try:
            mode = 0o600 if is_private(self.folder) else 0o666
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR, mode)
            self._size = self._follower.whole(self._path)
            if os.lseek(self._file, 0, os.SEEK_END) > self._size:  # a torn line
                os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
        except OSError as error:
            raise cannot_write(self._path, error) from None
        sync_folder(self.folder)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="answers", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._over.wait(WRITE_SECONDS):
            with self._writing:
                self._write()
            self._sync()

    def _sync(self) -> None:
        """Make what is written survive a power cut; what comes meanwhile is written beside it."""
        assert self._file is not None
        with self._syncing:
            if self._unsynced:
                self._unsynced = False
                try:
                    os.fsync(self._file)
                except OSError as error:
                    self._unsynced, self._error = True, cannot_write(self._path, error)

    def _write(self) -> None:
        """Write what is new, so that it survives the end of this process."""
        with self._lock:
            new = list(self._lines)
        assert self._file is not None
        try:
            self.held.touch()
            if new:
                content = memoryview(b"".join(line for _, line in new))
                while content:
                    content = content[os.write(self._file, content) :]
                self._unsynced = True
        except (OSError, MedtasksError) as error:
            self._error = cannot_write(self._path, error) if isinstance(error, OSError) else error
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
                os.lseek(self._file, self._size, os.SEEK_SET)
            return
        self._error = None
        with self._lock:
            for key, line in new:
                if key in self._new:
                    self._index[key] = (self._path, self._size, len(line))
                    del self._new[key]
                self._size += len(line)
            del self._lines[: len(new)]


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


class Follower:
    """Reads the lines of a folder that somebody else may be writing to: each once, as they come.

    `damaged`: gets the lines that are not used: file and number.
    """

    def __init__(self, folder: Path, damaged: list[str] | None = None) -> None:
        self.damaged = list[str]() if damaged is None else damaged
        self._folder, self._read = folder, dict[Path, tuple[int, int]]()  # bytes and lines of each file

    def rows(self, kind: str = "") -> Iterator[Row]:
        """What has come since the last call; `kind`: of the lines that are wanted, all by default."""
        begin = kind.encode()
        for _, _, line in self.lines():
            if line.startswith(begin, _KIND_AT):
                yield json.loads(line)

    def whole(self, path: Path) -> int:
        """Bytes up to the end of the last line that ends, of what was read of a file."""
        return self._read.get(path, (0, 0))[0]

    def lines(self) -> Iterator[tuple[Path, int, bytes]]:
        """File, place in it and line of what has come since the last call; a line that does not end may come
        still."""
        for path in files_of(self._folder):
            check_regular(path)
            start, number = self._read.get(path, (0, 0))
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < start:
                    self.damaged.append(f"{path.name} is shorter than it was")
                    start = number = 0
                file.seek(start)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    place, start, number = start, start + len(line), number + 1
                    self._read[path] = (start, number)
                    if line[-HASH - 3 : -3] == _hash(line[:-_END]):
                        yield path, place, line
                    else:
                        self.damaged.append(f"{path.name}, line {number}")


def closed_text_in(*folders: Path) -> dict[tuple[str, str], list[str]]:
    """Host other than this machine, and why it may -> datasets whose text it got that is not open."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in (row for folder in folders for row in Follower(folder).rows("sent")):
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
    return b'%s,"hash":"%s"}\n' % (body[:-1], _hash(body[:-1]))


def _hash(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:HASH].encode()


_KINDS = (Answer, Fault, Intent, Question, Sent, Usage)
#: class -> its fields and their defaults
_FIELDS = {kind: {one.name: one.default for one in fields(kind)} for kind in _KINDS}


def _said(outcome: Kept | Usage) -> dict[str, Any]:
    """What is not as ever."""
    said: dict[str, Any] = {}
    for name, default in _FIELDS[type(outcome)].items():
        value = getattr(outcome, name)
        if default is not MISSING and value == default:
            continue
        if isinstance(value, Usage):
            value = {"prompt": value.prompt, "completion": value.completion, **_said(value)}
        said[name] = value
    return said


def outcome_of(record: Mapping[str, Any]) -> Outcome:
    kind = Fault if record["outcome"] == "fault" else Answer
    said = {name: record[name] for name in _FIELDS[kind] if name in record}
    if kind is Fault:
        return Fault(**{**said, "kind": FaultKind(record["kind"])})
    if usage := said.get("usage"):
        said["usage"] = Usage(**usage)
    if likelihoods := said.get("likelihoods"):
        said["likelihoods"] = tuple(Likelihood(*item) for item in likelihoods)
    return Answer(**said)
