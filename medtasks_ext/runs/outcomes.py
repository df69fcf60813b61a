"""What became of requests: `RUN/responses/TASK.jsonl`.

One JSON object a line, each chained to the one before it, in the order in which they came. An answer has
`response`; a request without one has `fault`; an intent, written before a request that costs money is sent,
has `intent`. A line that ends such a request `settles` its intent. An intent that nothing settles counts as
spent: the process was killed, or no reply came.

The first line of a file says whose the outcomes are, in `of`: model and settings, rows and wording. Where a
later call asks about other rows or in other words, its first line says so again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks_ext.engines.records import Answer, Fault, FaultKind, Likelihood, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.runs.chain import ChainedFile, FollowedFile, Seal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "Binding",
    "Intent",
    "OutcomeLog",
    "Seal",
    "Stored",
    "read_file",
    "read_outcomes",
]


@dataclass(frozen=True, slots=True)
class Intent:
    """A request that is about to be sent and may be charged."""

    cost: float  # US dollars at most


Entry: TypeAlias = Answer | Fault | Intent


@dataclass(frozen=True, slots=True)
class Stored:
    """One line: what was asked, and what happened."""

    key: str  # identifies the request: model, prompt, document
    document: str  # key of the document within the task
    entry: Entry
    at: float = 0.0  # seconds since 1970
    #: US dollars of the intent that is settled, 0 where none is; None of lines that do not say
    settles: float | None = None
    of: Binding | None = None  # where this line and those after it are of something else than those before

    def record(self) -> Json:
        """What is empty is left out."""
        record: Json = {"key": self.key, "document": self.document}
        entry = self.entry
        if isinstance(entry, Intent):
            record["intent"] = entry.cost
        else:
            if isinstance(entry, Answer):
                record |= {"response": entry.text, **_filled(entry, "text", "usage")}
            else:
                record |= {"fault": entry.kind.value, **_filled(entry, "kind", "usage")}
            if entry.usage is not None:
                record["usage"] = _usage_record(entry.usage)
        if self.settles is not None:
            record["settles"] = self.settles
        if self.of is not None:
            record["of"] = self.of.record()
        return record | ({"at": self.at} if self.at else {})

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Stored:
        """ValueError, KeyError, TypeError or AttributeError where it is none."""
        texts = (record["key"], record["document"])
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("keys and names are texts")
        entry = _entry(record)
        of = Binding.read(record["of"]) if "of" in record else None
        return cls(texts[0], texts[1], entry, record.get("at", 0.0), record.get("settles"), of)


@dataclass(frozen=True, slots=True)
class Binding:
    """Whose the outcomes of a task's file are, from the line that says so to the next that does."""

    identity: str  # digest of model and settings (`Identity.whole`)
    model: str  # as the run's user named it
    origin: str = ""  # of the rows; this and what follows is empty where judges were asked about answers
    rows_hash: str = ""  # of the documents as rendered, and their gold
    prompt_hash: str = ""  # of the templates
    instruction: str = ""  # whose words

    def record(self) -> Json:
        return _filled(self)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Binding:
        """TypeError where it is none."""
        binding = cls(**_known(cls, record))
        if not all(isinstance(value, str) for value in asdict(binding).values()):
            raise TypeError("what a file is bound to is text")
        return binding


def _filled(item: DataclassInstance, *but: str) -> Json:
    values = {part.name: getattr(item, part.name) for part in fields(item) if part.name not in but}
    return {name: value for name, value in values.items() if value not in ("", None, {}, ())}


def _known(kind: type[DataclassInstance], record: Mapping[str, Any], *but: str) -> Json:
    names = [item.name for item in fields(kind) if item.name not in but]
    return {name: record[name] for name in names if name in record}


def _usage_record(usage: Usage) -> Json:
    usual = {"counted": True}
    return {
        name: value for name, value in asdict(usage).items() if value is not None and value != usual.get(name)
    }


def _entry(record: Mapping[str, Any]) -> Entry:
    if "intent" in record:
        return Intent(float(record["intent"]))
    usage = Usage(**record["usage"]) if record.get("usage") else None
    if "response" in record:
        if not isinstance(record["response"], str):
            raise TypeError("a response is a text")
        likelihoods = tuple(
            Likelihood(float(value), bool(greedy)) for value, greedy in record.get("likelihoods", ())
        )
        known = _known(Answer, record, "text", "usage", "likelihoods")
        return Answer(record["response"], usage=usage, likelihoods=likelihoods, **known)
    known = {"reason": "", **_known(Fault, record, "kind", "usage")}
    if not isinstance(known["reason"], str):
        raise TypeError("a reason is a text")
    return Fault(FaultKind(record["fault"]), usage=usage, **known)


def read_outcomes(folder: Path, task: str) -> Iterator[Stored]:
    """A last line that a crash cut short is left out."""
    return read_file(folder / f"{task}.jsonl")


def read_file(path: Path) -> Iterator[Stored]:
    return _lines(ChainedFile(path))


class FollowedOutcomes:
    """Each once, as a run under way adds them; nothing is written or locked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = FollowedFile(path)

    @property
    def has_more(self) -> bool:
        return self._file.has_more

    def further(self) -> Iterator[Stored]:
        return _stored(self.path, self._file.further(), self._file.seal.lines + 1)


def _lines(file: ChainedFile) -> Iterator[Stored]:
    return _stored(file.path, file.read())


def _stored(path: Path, records: Iterable[Json], first: int = 1) -> Iterator[Stored]:
    for number, record in enumerate(records, start=first):
        try:
            yield Stored.read(record)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise MedtasksError(
                f"line {number} is no outcome of a request",
                where=path,
                remedy="delete this line and those after it; only what they hold is asked for again",
            ) from None


class OutcomeLog:
    """The outcomes of one task as one process reads and writes them.

    Args:
        folder: `RUN/responses`.
        binding: whose outcomes are added; where the file says otherwise, or not, the first line says so.

    Attributes:
        answered: keys of requests that have an answer.
        last: key of a request without one -> its last fault.
        unsettled: key -> highest costs in US dollars of tries that were sent and never settled.
        spent: US dollars of the replies, as far as they carry a cost.
    """

    def __init__(
        self,
        folder: Path,
        task: str,
        *,
        binding: Binding | None = None,
    ) -> None:
        self._binding = binding
        self._bound: Binding | None = None  # by the last line of the file that says so
        self._file = ChainedFile(folder / f"{task}.jsonl")
        self.forget()

    @property
    def path(self) -> Path:
        return self._file.path

    def forget(self) -> None:
        self.answered: set[str] = set()
        self.last: dict[str, Fault] = {}
        self.unsettled: dict[str, list[float]] = {}
        self.spent = 0.0

    def read(self) -> Iterator[Stored]:
        """Read to its end before the first `add`; a last line that a crash cut short is left out."""
        for stored in _lines(self._file):
            if stored.of is not None:
                self._bound = stored.of
            self._remember(stored)
            yield stored

    def load(self) -> None:
        for _ in self.read():
            pass

    def _remember(self, stored: Stored) -> None:
        key, entry = stored.key, stored.entry
        if isinstance(entry, Intent):
            self.unsettled.setdefault(key, []).append(entry.cost)
            return
        self._settle(stored)
        self.spent += entry.cost or 0.0
        if not isinstance(entry, Fault):
            self.answered.add(key)
            self.last.pop(key, None)
        elif key not in self.answered:
            self.last[key] = entry

    def _settle(self, stored: Stored) -> None:
        """Let go of what a line settles. Those of older runs do not say: an answer settles one try, a fault
        all but those that may have been charged for nothing."""
        costs = self.unsettled.pop(stored.key, [])
        if stored.settles is not None:
            if stored.settles in costs:
                costs.remove(stored.settles)
        else:
            unsure = stored.entry.maybe_paid if isinstance(stored.entry, Fault) else len(costs) - 1
            costs = costs[: max(0, unsure)]
        if costs:
            self.unsettled[stored.key] = costs

    @property
    def unsure(self) -> float:
        return sum(cost for costs in self.unsettled.values() for cost in costs)

    def add(
        self,
        key: str,
        document: str,
        entry: Entry,
        *,
        settles: float | None = None,
    ) -> Stored:
        """`settles`: US dollars of the intent that it settles, 0 where none is."""
        return self.append(Stored(key, document, entry, round(time.time(), 3), settles))

    def append(self, stored: Stored) -> Stored:
        """A line reaches the operating system at once."""
        if self._binding is not None:
            stored = replace(stored, of=None if self._binding == self._bound else self._binding)
        self._file.add(stored.record())
        self._bound = stored.of or self._bound
        self._remember(stored)
        return stored

    def guard(self) -> None:
        self._file.guard()

    def sync(self) -> None:
        self._file.sync()

    @property
    def seal(self) -> Seal:
        return self._file.seal

    def close(self) -> None:
        self._file.close()
