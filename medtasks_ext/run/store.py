"""What became of each request: one line of JSON an outcome, appended as it comes, on the disk within half a
second.

A folder has one file for each process that wrote (`answers.jsonl`, and `answers-NAME.jsonl` beside it), so
that runs of one model on several machines are joined by putting their files into one folder. A line says by a
hash of itself that it is whole. A last line that is torn is dropped, and its request asked again; a damaged
one in the middle is named, and the rest is used.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import cannot_write, check_regular, sync_folder
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Likelihood, Outcome, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.lock import FolderLock
from medtasks_ext.secret_values import Secrets

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


class Answers:
    """The outcomes of a folder. Threads may use it; one process may write.

    Args:
        folder: of the run. write: whether outcomes are added; a reader needs no right to write, and may read
        while another writes. name: of the file of this process among those of several.

    Attributes:
        damaged: lines that were not used: file and number.

    Raises:
        MedtasksError: another process writes to the folder, or it cannot be read or written.
    """

    def __init__(self, folder: Path, *, write: bool = True, name: str = "") -> None:
        self.folder, self.damaged = folder, list[str]()
        self._path = folder / (f"answers-{name}.jsonl" if name else "answers.jsonl")
        #: key -> file, place and length of its line
        self._index: dict[str, tuple[Path, int, int]] = {}
        self._lines: list[tuple[str, bytes]] = []  # key and line of what is not on the disk yet
        self._new: dict[str, Answer] = {}  # the answers among them
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._error: MedtasksError | None = None
        self._unsynced = False  # whether something is written that a power cut would take
        self._secrets: Secrets | None = None  # known when the first outcome comes
        self._file: int | None = None
        if write:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = FolderLock(folder)
        try:
            for path in files_of(folder):
                self._read(path)
            if write:
                self._open()
        except BaseException:
            if write:
                self._held.release()
            raise

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Key -> answer, of those that have one.

        Raises:
            MedtasksError: a file is gone.
        """
        found: dict[str, Answer] = {}
        places: dict[Path, list[tuple[int, int, str]]] = {}
        with self._lock:
            for key in set(keys):
                if key in self._new:
                    found[key] = self._new[key]
                elif key in self._index:
                    path, start, length = self._index[key]
                    places.setdefault(path, []).append((start, length, key))
        for path, lines in places.items():
            try:
                with path.open("rb") as file:
                    for start, length, key in sorted(lines):
                        file.seek(start)
                        answer = outcome_of(json.loads(file.read(length)))
                        assert isinstance(answer, Answer)
                        found[key] = answer
            except OSError as error:
                raise MedtasksError(
                    f"cannot be read ({error.strerror})", where=path, remedy="put the file back"
                ) from None
        return found

    def __contains__(self, key: str) -> bool:
        """Whether `known` has it, without a look at the disk."""
        with self._lock:
            return key in self._index or key in self._new

    def put(
        self,
        key: str,
        outcome: Outcome | Intent,
        task: str,
        document: str,
        about: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Keep an outcome; of one key the first answer counts.

        Args:
            task, document: whose request it was, for people who read the file.
            about: what else the line says.

        Returns:
            The line, as `rows` gives it.
        """
        kind = outcome.__class__.__name__.lower()
        record = {"key": key, "outcome": kind, "task": task, "document": document}
        record |= {**_said(outcome), **(about or {})}
        self._secrets = self._secrets or Secrets.known()
        line = _line(record, self._secrets)
        with self._lock:
            if key in self._index or key in self._new:
                return record
            self._lines.append((key, line))
            if isinstance(outcome, Answer):
                self._new[key] = outcome
        # who is killed loses nothing; while the disk is busy or full, the thread that keeps does it
        if self._error is None and self._writing.acquire(blocking=False):
            try:
                self._write(sync=False)
            finally:
                self._writing.release()
        return record

    def flush(self) -> None:
        """Bring everything to the disk.

        Raises:
            MedtasksError: the disk takes nothing more. What is not written is kept, and tried again.
        """
        with self._writing:
            self._write()
        self.check()

    def check(self) -> None:
        """Raise what keeps outcomes from the disk."""
        if self._error is not None:
            raise self._error

    def rows(self) -> Iterator[dict[str, Any]]:
        """All lines of the folder that are whole, those of faults too, in their order within each file."""
        return rows_of(self.folder)

    def close(self) -> None:
        """Write the rest, and give the folder free.

        Raises:
            MedtasksError: the disk takes nothing more.
        """
        if self._file is None:
            return
        self._over.set()
        self._thread.join()
        try:
            self.flush()
        finally:
            os.close(self._file)
            self._file = None
            self._held.release()

    def _read(self, path: Path) -> None:
        check_regular(path)
        start, number = 0, 0
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not _is_whole(line):
                    if line.endswith(b"\n"):  # else it is torn, or is being written
                        self.damaged.append(f"{path.name}, line {number}")
                elif line[_KIND_AT : _KIND_AT + 1] == b"a":  # of an answer
                    self._index.setdefault(line[_KEY_AT : _KEY_AT + KEY].decode(), (path, start, len(line)))
                start += len(line)

    def _open(self) -> None:
        try:
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            self._size = _whole_size(self._file)
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

    def _write(self, *, sync: bool = True) -> None:
        """Write what is new. Whoever looks up or puts does not wait for the disk.

        Args:
            sync: make it survive a power cut.
        """
        with self._lock:
            new = list(self._lines)
        assert self._file is not None
        try:
            self._held.touch()
            if new:
                content = memoryview(b"".join(line for _, line in new))
                while content:
                    content = content[os.write(self._file, content) :]
                self._unsynced = True
            if sync and self._unsynced:
                os.fsync(self._file)
                self._unsynced = False
        except (OSError, MedtasksError) as error:
            self._error = cannot_write(self._path, error) if isinstance(error, OSError) else error
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
                os.lseek(self._file, self._size, os.SEEK_SET)
            return
        self._error = None
        with self._lock:
            for key, line in new:
                if self._new.pop(key, None):
                    self._index[key] = (self._path, self._size, len(line))
                self._size += len(line)
            del self._lines[: len(new)]


def key_of(identity: str, parts: Sequence[Any]) -> str:
    """Identifies a request."""
    text = json.dumps([identity, *parts], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:KEY]


def files_of(folder: Path) -> list[Path]:
    """The files of outcomes of a folder."""
    return sorted(folder.glob(FILES))


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    """`Answers.rows` of a folder that somebody else may be writing to."""
    for path in files_of(folder):
        with path.open("rb") as file:
            yield from (json.loads(line) for line in file if _is_whole(line))


def _line(record: Mapping[str, Any], secrets: Secrets) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    body = secrets.hidden(text.encode(errors="backslashreplace"))
    return b'%s,"hash":"%s"}\n' % (body[:-1], _hash(body[:-1]))


def _hash(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:HASH].encode()


def _is_whole(line: bytes) -> bool:
    return line[-HASH - 3 : -3] == _hash(line[:-_END])


def _whole_size(file: int) -> int:
    """Bytes up to the end of the last line that ends."""
    end = os.lseek(file, 0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        if (last := os.pread(file, end - start, start).rfind(b"\n")) >= 0:
            return start + last + 1
        end = start
    return 0


def _said(outcome: Outcome | Intent) -> dict[str, Any]:
    """What is not as ever; of a fault not its traceback, which may quote a row."""
    said: dict[str, Any] = {}
    for item in fields(outcome):
        value = getattr(outcome, item.name)
        if item.name == "details" or (item.default is not MISSING and value == item.default):
            continue
        if isinstance(value, Usage):
            value = {"prompt": value.prompt, "completion": value.completion, **_said(value)}  # type: ignore[arg-type]
        said[item.name] = value
    return said


def outcome_of(record: Mapping[str, Any]) -> Outcome:
    """The outcome of a line."""
    if record["outcome"] == "fault":
        names = {item.name for item in fields(Fault)} & record.keys()
        return Fault(**{**{name: record[name] for name in names}, "kind": FaultKind(record["kind"])})
    said = {item.name: record[item.name] for item in fields(Answer) if item.name in record}
    if usage := said.get("usage"):
        said["usage"] = Usage(**usage)
    if likelihoods := said.get("likelihoods"):
        said["likelihoods"] = tuple(Likelihood(*item) for item in likelihoods)
    return Answer(**said)
