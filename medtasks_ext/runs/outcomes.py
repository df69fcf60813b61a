"""The outcomes of a task's requests on disk: `RUN/responses/TASK.jsonl`.

One JSON object a line, in the order in which they came. An answer has `response`; a fault has `fault`; an
intent, written before a request that costs money is sent, has `intent`. Processes that share a run (the ranks
of `accelerate`) write files of their own, `TASK.rank1.jsonl`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json
from medtasks_ext.runs.chain import ChainedFile, ChainedLog, Seal, known_fields

__all__ = ["Intent", "OutcomeLog", "Seal", "Stored", "outcome_files", "read_outcomes"]


@dataclass(frozen=True, slots=True)
class Intent:
    """A request that is about to be sent and may be charged."""

    cost: float  # US dollars at most


Entry: TypeAlias = Answer | Fault | Intent


@dataclass(frozen=True, slots=True)
class Stored:
    """One line: the keys of request and document, and what happened."""

    key: str
    document: str
    entry: Entry
    at: float = 0.0

    def record(self) -> Json:
        """As it is stored; what is empty is left out."""
        about: Json = {"key": self.key, "document": self.document}
        if isinstance(self.entry, Answer):
            about["response"] = self.entry.text
            rest = _filled(self.entry, "text", "usage")
            if self.entry.usage:
                rest["usage"] = _usage_record(self.entry.usage)
        elif isinstance(self.entry, Fault):
            about["fault"] = self.entry.kind.value
            rest = _filled(self.entry, "kind")
        else:
            about["intent"], rest = self.entry.cost, {}
        return {**about, **rest, **({"at": self.at} if self.at else {})}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Stored:
        """From a stored line.

        Raises:
            ValueError, KeyError, TypeError: it is none.
        """
        key, document, at = record["key"], record["document"], record.get("at", 0.0)
        if not isinstance(key, str) or not isinstance(document, str):
            raise TypeError("keys are texts")
        return cls(key, document, _entry(record), at)


def _filled(entry: Answer | Fault, *but: str) -> Json:
    values = {item.name: getattr(entry, item.name) for item in fields(entry) if item.name not in but}
    return {name: value for name, value in values.items() if value not in ("", None)}


def _usage_record(usage: Usage) -> Json:
    found = {name: value for name, value in asdict(usage).items() if value is not None}
    if found["counted"]:
        del found["counted"]
    return found


def _entry(record: Mapping[str, Any]) -> Entry:
    if "response" in record:
        text = record["response"]
        if not isinstance(text, str):
            raise TypeError("a response is a text")
        usage = record.get("usage")
        return Answer(
            text, usage=Usage(**usage) if usage else None, **known_fields(Answer, record, "text", "usage")
        )
    if "fault" in record:
        return Fault(FaultKind(record["fault"]), **{"reason": "", **known_fields(Fault, record, "kind")})
    return Intent(float(record["intent"]))


def outcome_files(folder: Path, task: str) -> list[Path]:
    """The files of one task, of all writers."""
    return sorted({*folder.glob(f"{task}.jsonl"), *folder.glob(f"{task}.rank*.jsonl")})


def read_outcomes(folder: Path, task: str, *, schema: int = 2) -> Iterator[Stored]:
    """The outcomes of one task, of all writers; a last line that a crash cut short is left out.

    Args:
        folder: `RUN/responses`.
        schema: of the run; lines of schema 1 carry no chain.

    Raises:
        MedtasksError: a line is damaged, or not the one that was written there.
    """
    for path in outcome_files(folder, task):
        if schema > 1:
            yield from OutcomeLog.lines(ChainedFile(path))
            continue
        for number, record in enumerate(_old_records(path), start=1):
            yield OutcomeLog.line(path, number, record)


def sealed_outcomes(path: Path) -> tuple[list[Stored], Seal]:
    """All of one file, and its state.

    Raises:
        MedtasksError: a line is damaged.
    """
    file = ChainedFile(path)
    found = list(OutcomeLog.lines(file))
    return found, file.seal


def _old_records(path: Path) -> Iterator[Any]:
    content = path.read_bytes()
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError:
            raise MedtasksError(
                f"line {number} is damaged", where=path, remedy="delete that line, then rescore"
            ) from None


class OutcomeLog(ChainedLog[Stored]):
    """The outcomes of one task as one process writes them.

    Attributes:
        answered: keys of requests that have an answer, of all writers.
        unsettled: key -> highest costs in US dollars of tries that were sent and never settled.
        spent: US dollars of the answers, as far as they carry a cost.
        faulty: keys of requests whose last outcome is a fault.
    """

    form, what, lost = Stored, "outcome of a request", "responses"

    def __init__(self, folder: Path, task: str, rank: int = 0) -> None:
        self._folder, self._task = folder, task
        super().__init__(ChainedFile(folder / (f"{task}.rank{rank}.jsonl" if rank else f"{task}.jsonl")))
        self.forget()

    def forget(self) -> None:
        """Drop the keys, which are needed no more."""
        self.answered: set[str] = set()
        self.faulty: set[str] = set()
        self.unsettled: dict[str, list[float]] = {}
        self.spent = 0.0

    def read(self) -> Iterator[Stored]:
        """What is there, of all writers; to be read to its end before the first `add`.

        Raises:
            MedtasksError: a line is damaged.
        """
        for path in sorted({*outcome_files(self._folder, self._task), self.path}):
            for stored in self.lines(self._file if path == self.path else ChainedFile(path)):
                self._remember(stored)
                yield stored

    def _remember(self, stored: Stored) -> None:
        if isinstance(stored.entry, Intent):
            self.unsettled.setdefault(stored.key, []).append(stored.entry.cost)
            return
        self._settle(stored.key, stored.entry)
        if isinstance(stored.entry, Answer):
            self.spent += stored.entry.cost or 0.0
            self.answered.add(stored.key)
            self.faulty.discard(stored.key)
        elif stored.key not in self.answered:
            self.faulty.add(stored.key)

    def _settle(self, key: str, outcome: Outcome) -> None:
        """Let go of the tries that an outcome settles; those stay that may have been charged for nothing."""
        costs = self.unsettled.pop(key, [])
        unsure = outcome.maybe_paid if isinstance(outcome, Fault) else len(costs) - 1
        if kept := costs[: max(0, unsure)]:
            self.unsettled[key] = kept

    @property
    def unsure(self) -> float:
        """US dollars at most of tries that were sent and never settled."""
        return sum(cost for costs in self.unsettled.values() for cost in costs)

    def add(self, key: str, document: str, entry: Outcome | Intent) -> Stored:
        """Append one outcome, or the intent to ask.

        Raises:
            MedtasksError: the disk does not take it.
        """
        return self.append(Stored(key, document, entry, round(time.time(), 3)))
