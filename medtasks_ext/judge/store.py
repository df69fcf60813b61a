"""What has been judged in a folder, over all of its tasks: what is there, what failed, what it cost.

`RUN/judgements/answers.jsonl` has a line for each request to a judge (`run.store`), with what was read in the
reply. A reply without a verdict is draw 1 of its question; the question that is asked again is draw 2 of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from medtasks_ext.engines.records import Outcome, Usage
from medtasks_ext.judge.cost import JudgingCost, Reply
from medtasks_ext.judge.jury import Jury
from medtasks_ext.judge.protocol import Wording
from medtasks_ext.run.store import Answers, Follower, Intent, Row, key_of, outcome_of
from medtasks_ext.runs.folder import RunFolder

#: What a line says of a reply besides the reply.
_ABOUT = ("judge", "point", "wording", "ratings", "verdict", "unreadable")


class Said(NamedTuple):
    """What was read in a reply, or a physician's decision."""

    ratings: Mapping[str, float] | None  # axis or point -> rating; None where the reply holds no verdict
    unreadable: str  # why it holds none, or empty
    row: Mapping[str, Any]  # its line


class JudgementStore:
    """The judgements of a run's folder, or of a study's.

    Raises:
        MedtasksError: another process writes there, or the folder cannot be read or written.

    Attributes:
        wording: task -> whose words its judges were asked in last.
        damaged: lines that were not used: file and number.
    """

    def __init__(self, folder: Path, *, write: bool = True, command: str = "medtasks judge") -> None:
        self.wording: dict[str, Wording] = {}
        self.replies: dict[tuple[str, str], list[Reply]] = {}  # (task, judge) -> those that were charged here
        self.said: dict[str, Said] = {}  # key of a draw -> what was said
        self._faults: dict[str, str] = {}  # key of a draw -> why the last try gave no reply
        self._served: dict[tuple[str, str], set[str]] = {}  # (task, judge) -> other models that answered
        where = RunFolder(folder).judgements
        self.answers = Answers(where, write=write, command=command, see=self._remember)
        self.damaged = self.answers.damaged

    def _remember(self, row: Row) -> None:
        if row["outcome"] in ("intent", "sent"):
            return
        key, task, judge = row["key"], row["task"], row["judge"]
        self.wording[task] = row.get("wording", "own")
        if row["outcome"] == "fault":
            self._faults[key] = row["reason"]
            return
        self.said.setdefault(key, Said(row.get("ratings"), row.get("unreadable", ""), row))
        if model := row.get("model"):
            self._served.setdefault((task, judge), set()).add(model)
        if usage := row.get("usage"):
            self.replies.setdefault((task, judge), []).append(Reply(Usage(**usage), row.get("cost")))

    def put(
        self, key: str, outcome: Outcome | Intent, task: str, document: str, about: Mapping[str, Any]
    ) -> None:
        """Keep an outcome.

        Args:
            about: `judge`, and what was read: `ratings` and `verdict`, or `unreadable`.
        """
        self.answers.put(key, outcome, task, document, about)

    def copy(self, said: Said) -> None:
        """Keep what was said about the same answer of another run, where it was paid for."""
        row, answer = said.row, outcome_of(said.row)
        about = {name: row[name] for name in _ABOUT if name in row}
        self.put(row["key"], replace(answer, usage=None, cost=None), row["task"], row["document"], about)

    def drawn(self, question: str) -> tuple[str, Said | None]:
        """The key of the next draw of a question, and what the last one said; None where there is none."""
        key, last, draw = question, None, 1
        while key in self.said:
            last, draw = self.said[key], draw + 1
            key = key_of(question, [draw])
        return key, last

    def why_not(self, question: str, unasked: str) -> str:
        """Why a question has no verdict; `unasked` is said of one that nobody was asked."""
        key, last = self.drawn(question)
        return self._faults.get(key) or (last.unreadable if last else unasked)

    def replies_of(self, judge: str) -> list[Reply]:
        return [reply for (_, name), some in self.replies.items() if name == judge for reply in some]

    def served_about(self, task: str) -> dict[str, list[str]]:
        """Judge -> other models than the one asked for that answered about a task, as servers call them."""
        return {judge: sorted(names) for (name, judge), names in sorted(self._served.items()) if name == task}

    def spent(self, task: str) -> JudgingCost:
        replies = (reply for (name, _), some in self.replies.items() if name == task for reply in some)
        return JudgingCost.of(replies, self.unsure(task))

    def unsure(self, task: str = "") -> float:
        """US dollars at most of requests, about one task or all, that were sent and never settled."""
        return self.answers.unsettled.total(task)

    def close(self) -> None:
        self.answers.close()


def verdicts_in(folder: Path, task: str) -> Iterator[dict[str, Any]]:
    """The lines of a run's folder that hold ratings of answers of a task."""
    rows = Follower(RunFolder(folder).judgements).rows("answer")
    return (row for row in rows if row["task"] == task and row.get("ratings") is not None)


def paid(jury: Jury, stores: Iterable[JudgementStore]) -> tuple[list[float | None], float]:
    """What earlier calls spent, for `budget_of`; the jury's prices hold for replies without a cost."""
    judges = {judge.name: judge for judge in jury.models}
    costs, unsure = list[float | None](), 0.0
    for store in stores:
        unsure += store.unsure()
        for (_, name), replies in store.replies.items():
            judge = judges.get(name)
            costs += [
                judge.spent(reply.usage) if reply.cost is None and judge else reply.cost for reply in replies
            ]
    return costs, unsure
