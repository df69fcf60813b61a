"""What judging a task's answers cost, and what it costs at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.engines import Usage
from medtasks_ext.judge.jury import Judge, Jury
from medtasks_ext.judge.protocol import Wording
from medtasks_ext.run.store import Answers, Follower, Row, key_of, outcome_of
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.prices import JudgePrice

#: Bytes per token where a server does not count: English and Chinese text come close to it.
BYTES_PER_TOKEN = 4


class Reply(NamedTuple):
    """What a reply took."""

    usage: Usage
    cost: float | None  # US dollars, at the price of the jury file at the time; None where it had none


def judging_cost(replies: Sequence[Reply], unsure: float) -> Json:
    """What judging cost: `usd` at the prices of the time, None where no reply had one.

    `unsure`: US dollars at most of requests whose reply never came. `replies`; `unpriced`, those of judges
    without a price; `estimated`, those whose tokens nobody counted believably, which count at the highest
    cost that they can have.
    """
    priced = [reply.cost for reply in replies if reply.cost is not None]
    return {
        "usd": sum(priced) if priced else None,
        "unsure": unsure,
        "replies": len(replies),
        "unpriced": len(replies) - len(priced),
        "estimated": sum(reply.cost is not None and not reply.usage.counted for reply in replies),
    }


def jury_cost_bound(
    judges: Sequence[JudgePrice], input_tokens: int, documents: int, answer_budget: int
) -> float:
    """Upper bound of judging answers by MedHELM's rule, in US dollars.

    Each judge reads the benchmark's input and a full answer, and fills its own reply budget; rubric and gold
    are not counted. The published jury costs follow from the published tokens by this rule.
    """
    read = input_tokens + documents * answer_budget
    return sum(judge.price.of(read, documents * judge.reply_budget) for judge in judges)


@dataclass(frozen=True)
class CostEstimate:
    judge: str
    requests: int  # to send
    prompt_tokens: int  # estimated
    completion_tokens: int  # at most
    cost: float | None  # USD at most, or None where no price is known
    measured: bool  # whether prompt tokens follow from this judge's own counts so far


def estimate(judge: Judge, prompt_bytes: Iterable[int], so_far: Iterable[Usage]) -> CostEstimate:
    """Estimate from the sizes of the prompts.

    Bytes become tokens at the rate that the server has counted for this judge; before it has counted
    any, four bytes are taken for a token.
    """
    sizes, counted = list(prompt_bytes), [usage for usage in so_far if usage.counted and usage.prompt_bytes]
    rate = 1 / BYTES_PER_TOKEN
    if counted:
        rate = sum(item.prompt for item in counted) / sum(item.prompt_bytes or 0 for item in counted)
    prompt, completion = round(sum(sizes) * rate), len(sizes) * judge.max_tokens
    cost = judge.cost(prompt, completion) if judge.price is not None else None
    return CostEstimate(judge.name, len(sizes), prompt, completion, cost, bool(counted))


#: What a line says of a reply besides the reply.
_ABOUT = ("judge", "point", "wording", "ratings", "verdict", "unreadable")


class Said(NamedTuple):
    """What was read in a reply, or a physician's decision."""

    ratings: Mapping[str, float] | None  # axis or point -> rating; None where the reply holds no verdict
    unreadable: str  # why it holds none, or empty
    row: Mapping[str, Any]  # its line


class JudgementStore(Answers):
    """The judgements of a run's folder, or of a study's.

    Raises:
        MedtasksError: another process writes there, or the folder cannot be read or written.

    Attributes:
        wording: task -> whose words its judges were asked in last.
    """

    def __init__(self, folder: Path, *, write: bool = True, command: str = "medtasks judge") -> None:
        self.wording: dict[str, Wording] = {}
        self.replies: dict[tuple[str, str], list[Reply]] = {}  # (task, judge) -> those that were charged here
        self.said: dict[str, Said] = {}  # key of a draw -> what was said
        self._why: dict[str, str] = {}  # key of a draw -> why the last try gave no reply
        self._served: dict[tuple[str, str], set[str]] = {}  # (task, judge) -> other models that answered
        where = RunFolder(folder).judgements
        super().__init__(where, write=write, command=command, see=self._remember)

    def _remember(self, row: Row) -> None:
        if row["outcome"] in ("intent", "sent"):
            return
        key, task, judge = row["key"], row["task"], row["judge"]
        self.wording[task] = row.get("wording", "own")
        if row["outcome"] == "fault":
            self._why[key] = row["reason"]
            return
        self.said.setdefault(key, Said(row.get("ratings"), row.get("unreadable", ""), row))
        if model := row.get("model"):
            self._served.setdefault((task, judge), set()).add(model)
        if usage := row.get("usage"):
            self.replies.setdefault((task, judge), []).append(Reply(Usage(**usage), row.get("cost")))

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
        return self._why.get(key) or (last.unreadable if last else unasked)

    def served_about(self, task: str) -> dict[str, list[str]]:
        """Judge -> other models than the one asked for that answered about a task, as servers call them."""
        return {judge: sorted(names) for (name, judge), names in sorted(self._served.items()) if name == task}

    def spent(self, task: str) -> Json:
        replies = [reply for (name, _), some in self.replies.items() if name == task for reply in some]
        return judging_cost(replies, self.unsettled.total(task))


def verdicts_in(folder: Path, task: str) -> Iterator[dict[str, Any]]:
    """The lines of a run's folder that hold ratings of answers of a task."""
    rows = Follower(RunFolder(folder).judgements).rows("answer")
    return (row for row in rows if row["task"] == task and row.get("ratings") is not None)


def paid(jury: Jury, stores: Iterable[JudgementStore]) -> tuple[list[float | None], float]:
    """What earlier calls spent, for `budget_of`; the jury's prices hold for replies without a cost."""
    judges = {judge.name: judge for judge in jury.models}
    costs, unsure = list[float | None](), 0.0
    for store in stores:
        unsure += store.unsettled.total()
        for (_, name), replies in store.replies.items():
            judge = judges.get(name)
            costs += [
                judge.spent(reply.usage) if reply.cost is None and judge else reply.cost for reply in replies
            ]
    return costs, unsure
