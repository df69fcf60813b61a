"""What judges said about the answers of a task: `RUN/judgements/TASK.jsonl`.

One JSON object a line, each chained to the one before it, in the order in which they came. A judgement has
`ratings`, and the judge's own `verdict`; a failure has `fault` and `reason`; an intent, written before a
request that costs money is sent, has `intent`. A judgement or failure that ends such a request `settles` its
intent. An intent that nothing settles counts as spent: the process was killed, or no reply came.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from medtasks_ext.atomic import remove, sync_folder
from medtasks_ext.engines.records import FaultKind
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.runs.chain import ChainedFile, ChainedLog, known_fields
from medtasks_ext.runs.outcomes import Intent

__all__ = ["About", "Failure", "Intent", "Judgement", "JudgementLog", "Said", "Usage", "judged_files"]

#: How the names of files begin that hold what waits for a physician.
QUEUE = "disputed_"
#: Failures of an older version, which had a file of their own.
_OLD_FAILURES = ".failures"
_TIME = "%Y-%m-%dT%H:%M:%S"

#: Whose words a judge is asked in.
Wording: TypeAlias = Literal["own", "official"]
#: Why there is no verdict: no reply came, or one that holds none. Older versions did not always say.
FailureKind: TypeAlias = FaultKind | Literal["no_verdict", "unknown"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply took."""

    prompt_tokens: int = 0  # as the server counts them
    completion_tokens: int = 0  # likewise
    prompt_bytes: int = 0  # of the texts that were sent
    counted: bool = True  # False where the server gave no usage and the tokens are an estimate
    batch: bool = False  # the reply came from a batch, which may cost less
    cost: float | None = None  # US dollars, at the price of the jury file at the time; None where it had none

    def record(self) -> Json:
        """As it is stored."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: value for name, value in found.items() if value is not None and (value or name != "batch")
        }


@dataclass(frozen=True, slots=True)
class About:
    """Whose word on which answer."""

    key: str  # identifies judge, prompt, document and the texts shown
    judge: str  # its name in the jury file; `human` for a physician
    document: str  # key of the document within the task
    model: str = ""  # as the judge's server calls it
    protocol: str = ""  # under which it was asked
    prompt_version: str = ""  # of the prompt
    wording: Wording = "own"  # whose words it was asked in; older lines do not say, and are in ours
    run: str | None = None  # of the benchmark that the document belongs to, where it has several
    point: str | None = None  # the scoring point that was asked about alone
    response_hash: str = ""  # of the answer


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one answer."""

    ratings: Mapping[str, float]  # axis or point -> rating
    verdict: Mapping[str, Any] = field(default_factory=dict)  # the judge's object; empty for a physician
    usage: Usage | None = None  # None where nothing was charged here
    requests: int = 0  # that it took
    settles: float | None = None  # US dollars of the intent that is settled
    decisions: str = ""  # the file that a physician's decision came from
    served: str = ""  # model that answered, as its server calls it; empty where that is the one asked for


@dataclass(frozen=True, slots=True)
class Failure:
    """A request, or a reply, that gave no verdict."""

    kind: FailureKind
    reason: str  # in words, without text of the row
    usage: Usage | None = None  # None where nothing was charged here
    requests: int = 0  # that were sent
    settles: float | None = None  # US dollars of the intent that is settled
    request_id: str = ""  # of the server, in a batch


Entry: TypeAlias = Judgement | Failure | Intent


@dataclass(frozen=True, slots=True)
class Said:
    """One line: what was judged by whom, and what happened."""

    about: About
    entry: Entry
    at: float = 0.0  # seconds since 1970

    def record(self) -> Json:
        """As it is stored; what is empty is left out."""
        about = _filled(self.about)
        if isinstance(self.entry, Intent):
            what: Json = {"intent": self.entry.cost}
        else:
            what = _filled(self.entry, "kind", "ratings")
            if isinstance(self.entry, Failure):
                kind = self.entry.kind
                what = {"fault": kind.value if isinstance(kind, FaultKind) else kind, **what}
            else:
                what = {"ratings": dict(self.entry.ratings), **what}
            if self.entry.usage is not None:
                what["usage"] = self.entry.usage.record()
        return {**about, **what, **({"at": self.at} if self.at else {})}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Said:
        """From a stored line.

        Raises:
            ValueError, KeyError, TypeError: it is none.
        """
        about = About(**known_fields(About, record))
        if not all(isinstance(text, str) for text in (about.key, about.judge, about.document)):
            raise TypeError("key, judge and document are texts")
        return cls(about, _entry(record), record.get("at", 0.0))


def _filled(item: About | Judgement | Failure, *but: str) -> Json:
    values = {part.name: getattr(item, part.name) for part in fields(item) if part.name not in but}
    always = ("key", "judge", "document", "reason", "settles")
    return {
        name: value
        for name, value in values.items()
        if value is not None and (name in always or value not in ("", {}, 0))
    }


def _entry(record: Mapping[str, Any]) -> Entry:
    if "intent" in record:
        return Intent(float(record["intent"]))
    usage = Usage(**record["usage"]) if "usage" in record else None
    if "ratings" in record:
        ratings = {name: float(value) for name, value in record["ratings"].items()}
        return Judgement(ratings, usage=usage, **known_fields(Judgement, record, "ratings", "usage"))
    fault, reason = record["fault"], record["reason"]
    if not isinstance(reason, str):
        raise TypeError("a reason is a text")
    kind: FailureKind = fault if fault in ("no_verdict", "unknown") else FaultKind(fault)
    return Failure(kind, reason, usage=usage, **known_fields(Failure, record, "kind", "reason", "usage"))


def judged_files(folder: Path) -> list[str]:
    """The tasks that `RUN/judgements` holds a file of, old files among them."""
    names = {path.stem.removesuffix(_OLD_FAILURES) for path in folder.glob("*.jsonl")}
    return sorted(name for name in names if not name.startswith(QUEUE))


class JudgementLog(ChainedLog[Said]):
    """What judges said about one task, as one process reads and writes it."""

    form, what, lost = Said, "judgement, failure or intent", "judgements"

    def __init__(self, folder: Path, task: str, *, chained: bool = False) -> None:
        """Name a file.

        Args:
            folder: `RUN/judgements`.
            chained: the file is known to be of this version, so that lines without a chain are damaged ones.
        """
        self._chained = chained
        super().__init__(ChainedFile(folder / f"{task}.jsonl"))
        self._old_failures = folder / f"{task}{_OLD_FAILURES}.jsonl"
        #: the files are those of an older version, whose lines carry no chain. `renew` writes them anew
        self.is_old = False
        #: key -> highest costs in US dollars of requests that were sent and never settled
        self.unsettled: dict[str, list[float]] = {}

    def read(self) -> Iterator[Said]:
        """What is there; to be read to its end before the first `add`.

        A last line that a crash cut short is left out.

        Raises:
            MedtasksError: a line is damaged, or not the one that was written there.
        """
        self.is_old = not self._chained and _is_plain(self.path, self._old_failures)
        if self.is_old:
            said = [*_plain(self.path), *_plain(self._old_failures)]
            yield from sorted(said, key=lambda item: item.at)
            return
        for line in self.lines(self._file):
            self._remember(line)
            yield line

    def renew(self, said: Iterable[Said]) -> None:
        """Write the lines of older files into a chained one, which takes their place whole.

        Raises:
            MedtasksError: the disk does not take it.
        """
        beside = self.path.parent / f".{self.path.stem}.new"
        new = ChainedFile(beside / self.path.name)  # a chain begins with the name of the file
        for item in said:
            new.add(item.record())
        new.close()
        if new.path.is_file():
            new.path.replace(self.path)
            beside.rmdir()
            sync_folder(self.path.parent)
        remove(self._old_failures)
        self.is_old = False
        self.load()
        self._file.announce()

    def _remember(self, said: Said) -> None:
        key = said.about.key
        if isinstance(said.entry, Intent):
            self.unsettled.setdefault(key, []).append(said.entry.cost)
        elif said.entry.settles is not None and said.entry.settles in self.unsettled.get(key, ()):
            self.unsettled[key].remove(said.entry.settles)

    @property
    def unsure(self) -> float:
        """US dollars at most of requests that were sent and never settled."""
        return sum(cost for costs in self.unsettled.values() for cost in costs)

    def add(self, about: About, entry: Entry) -> Said:
        """Append a line, which reaches the operating system at once.

        Raises:
            MedtasksError: the disk does not take it.
        """
        return self.append(Said(about, entry, round(time.time(), 3)))


# ---------------------------------------------------------------------- files of older versions


def _is_plain(path: Path, failures: Path) -> bool:
    """Whether the files of a task are those of a version that knew no chain.

    A file of failures beside a chained file is what a crash left over when they were written anew.
    """
    try:
        with path.open("rb") as file:
            line = file.readline()
    except FileNotFoundError:
        line = b""
    if not line:
        return failures.is_file()
    try:
        return "chain" not in json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return False


def _plain(path: Path) -> Iterator[Said]:
    content = path.read_bytes() if path.is_file() else b""
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            yield Said.read(_renewed(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if number == len(lines):  # a crash cut it short
                return
            raise MedtasksError(
                f"line {number} is damaged",
                where=path,
                remedy="delete that line; only its judgement is asked for again",
            ) from None


def _renewed(record: Json) -> Json:
    """A line of an older version as this one has it."""
    if "chain" in record:
        raise ValueError("older versions wrote no chain")
    usage = Usage(**record.pop("usage"))
    replied = bool(usage.prompt_bytes or usage.prompt_tokens or usage.completion_tokens)
    said = time.mktime(time.strptime(record.pop("time"), _TIME)) if "time" in record else 0.0
    if "ratings" not in record:
        record.setdefault("fault", "no_verdict" if replied else "unknown")
    return {**record, **({"usage": usage.record()} if replied else {}), "at": said}
