"""Judgements on disk: append-only, one line per finished judgement; failures apart from them.

RUN/judgements/TASK.jsonl            what judges said; read again by every later call
RUN/judgements/TASK.failures.jsonl   replies and requests that gave no verdict, and what they cost
RUN/judgements/TASK.json             who judged, and the score of each document
RUN/judgements/disputed_TASK.jsonl   what waits for a physician
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from medtasks_ext.engines.records import FaultKind
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: How the names of files begin that hold what waits for a physician.
QUEUE = "disputed_"


@dataclass(frozen=True)
class Usage:
    """What replies took: tokens as the server counts them, and bytes of the prompts.

    `counted` is False where the server gave no usage and the tokens are an estimate; `batch` says that the
    reply came from a batch, which may cost less.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_bytes: int = 0
    counted: bool = True
    batch: bool = False

    def record(self) -> dict[str, Any]:
        """As it is stored."""
        return {name: value for name, value in vars(self).items() if name != "batch" or value}


@dataclass(frozen=True)
class Judgement:
    """One judge's verdict on one response: axis -> rating, and what the reply took."""

    judge: str
    document: str
    ratings: Mapping[str, float]
    usage: Usage


class JudgementStore:
    """The judgements of one run folder.

    Attributes:
        by_key: what was judged.
        failed: key -> why the last try gave no verdict.
        refused: keys of requests in a batch that the server did not take.
        read_before: the server's numbers of replies in a batch that hold no verdict.
        usage: judge -> what its replies took.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "judgements"
        self.by_key: dict[str, Judgement] = {}
        self.failed: dict[str, str] = {}
        self.refused: set[str] = set()
        self.read_before: set[str] = set()
        self.usage: dict[str, list[Usage]] = {}
        self._files: dict[Path, int] = {}
        self._lock = FileLock(self.folder / ".lock", timeout=0)

    def open(self, *, lock: bool = True) -> None:
        """Read what is there. With `lock`, mend a file that a crash cut short and keep others out.

        Raises:
            MedtasksError: another process judges this run, or a line is damaged.
        """
        if lock:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise MedtasksError(
                    "another process judges this run",
                    where=self.folder,
                    remedy="wait for it to end; what it has judged is not asked for again",
                ) from None
        for path in sorted(self.folder.glob("*.jsonl")):
            if path.name.startswith(QUEUE):
                continue
            failures = path.name.endswith(".failures.jsonl")
            for number, line in enumerate(_lines(path, mend=lock), start=1):
                try:
                    record = json.loads(line)
                    self._remember_failure(record) if failures else self._remember(record)
                except (ValueError, KeyError, TypeError):
                    raise MedtasksError(
                        f"line {number} is damaged",
                        where=path,
                        remedy="delete that line; only its judgement is asked for again",
                    ) from None

    def _remember(self, record: Mapping[str, Any]) -> None:
        usage = Usage(**record["usage"])
        self.by_key[record["key"]] = Judgement(record["judge"], record["document"], record["ratings"], usage)
        self.failed.pop(record["key"], None)
        self.usage.setdefault(record["judge"], []).append(usage)

    def _remember_failure(self, record: Mapping[str, Any]) -> None:
        if record["key"] not in self.by_key:
            self.failed[record["key"]] = record["reason"]
        if record.get("fault") == FaultKind.REFUSED.value:
            self.refused.add(record["key"])
        if request := record.get("request_id"):
            self.read_before.add(request)
        self.usage.setdefault(record["judge"], []).append(Usage(**record["usage"]))

    def add(self, task: str, record: Mapping[str, Any]) -> None:
        """Append a judgement."""
        self._remember(record)
        self._append(self.folder / f"{task}.jsonl", record)

    def fail(self, task: str, record: Mapping[str, Any]) -> None:
        """Append a failure."""
        self._remember_failure(record)
        self._append(self.folder / f"{task}.failures.jsonl", record)

    def _append(self, path: Path, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False).encode(errors="replace") + b"\n"
        try:
            if path not in self._files:
                self._files[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            while line:  # unbuffered, so that a killed process has lost nothing
                line = line[os.write(self._files[path], line) :]
        except OSError as error:
            raise MedtasksError(
                f"cannot be written ({error.strerror})",
                where=path,
                remedy="make room, then run the same command again; nothing judged so far is lost",
            ) from None

    def sync(self) -> None:
        """Make everything added so far survive a power cut; a killed process loses nothing anyway."""
        try:
            for file in list(self._files.values()):
                os.fsync(file)
        except OSError as error:
            raise MedtasksError(
                f"the disk does not take what was written ({error.strerror})",
                where=self.folder,
                remedy="look after the disk, then run the same command again",
            ) from None

    def close(self) -> None:
        """Sync, close, and let others in."""
        self.sync()
        for file in self._files.values():
            os.close(file)
        self._files.clear()
        self._lock.release()


def _lines(path: Path, *, mend: bool) -> Iterator[bytes]:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if rest := content[whole:]:
        if _is_record(rest):  # only its line end is missing
            whole = len(content)
            if mend:
                with path.open("ab") as file:
                    file.write(b"\n")
        elif mend:
            os.truncate(path, whole)
    yield from content[:whole].splitlines()


def _is_record(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
