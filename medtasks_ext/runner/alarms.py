"""Answers that are worth nothing, said while there is time to stop: cut at the budget, empty, unreadable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Request
    from medtasks_ext.runner.tally import Tally, TaskTally

#: What `model_configs` gives models that reason before they answer.
REASONING_BUDGET = 16_384
#: Answers that must have come before most of them mean anything, unless the task has fewer.
ENOUGH = 20
#: Tasks that are named one by one, of each kind.
SINGLY = 3


class Kind(str, Enum):
    """What may be wrong with most answers of a task. An earlier kind explains the later ones."""

    CUT = "fill the token budget"
    EMPTY = "are empty"
    UNREADABLE = "cannot be read"


#: What a user calls each kind.
STOP_WORDS = {"cut": Kind.CUT, "empty": Kind.EMPTY, "unreadable": Kind.UNREADABLE}
#: Answers that must have been looked at, over all tasks, before a rule ends a run.
STOP_AFTER = 50
_RULE = re.compile(r"(\w+)\s*>\s*(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True)
class StopRule:
    """Ends a run whose answers are worth nothing."""

    kind: Kind
    percent: float  # of the answers that were looked at; more of them end the run

    @classmethod
    def parse(cls, text: str) -> StopRule:
        """A rule as a user writes it, such as `unreadable>50%`."""
        match = _RULE.fullmatch(text.strip())
        if not match or match[1] not in STOP_WORDS or float(match[2]) >= 100:
            raise MedtasksError(
                f"{text!r} is no rule",
                where="--stop-if",
                remedy=f"write {', '.join(STOP_WORDS)} and a share below 100 %: --stop-if 'unreadable>50%'",
            )
        return cls(STOP_WORDS[match[1]], float(match[2]))

    def met(self, tally: Tally) -> str | None:
        """Why the run ends, from all answers of this call so far; None if it goes on."""
        of_tasks = {name: _figures(task)[self.kind] for name, task in tally.tasks.items()}
        n, of = (sum(figures[i] for figures in of_tasks.values()) for i in (0, 1))
        if of < STOP_AFTER or 100 * n <= self.percent * of:
            return None
        shares = {name: hits / looked for name, (hits, looked) in of_tasks.items() if hits}
        return f"{n} of {of} answers that were looked at {self.kind.value}, in {_named(shares)}"


class Alarms:
    """Says once per task and kind that most answers are worth nothing, and remembers what was so to the end.

    `chat_template`: whether one is applied.
    """

    def __init__(self, *, chat_template: bool) -> None:
        self._chat_template = chat_template
        self._said: dict[Kind, dict[str, TaskTally]] = {kind: {} for kind in Kind}
        self._held: dict[Kind, dict[str, float]] = {kind: {} for kind in Kind}

    def look(self, task: TaskTally, request: Request) -> str | None:
        """The line to say after an answer of a task; None if there is nothing new to say."""
        for kind, (n, of) in _figures(task).items():
            known = self._said[kind]
            if task.name in known:
                return None  # it explains the later kinds, too
            if 2 * n > of and (of >= ENOUGH or task.complete):
                known[task.name] = task
                return self._line(kind, task, n, of, request)
        return None

    def _line(self, kind: Kind, task: TaskTally, n: int, of: int, request: Request) -> str:
        budget = int(request.settings.get("max_gen_toks") or 0)
        what = f"! {task.name}: {n} of {of} answers {kind.value}" + f" of {budget:,}" * (kind is Kind.CUT)
        n_tasks = len(self._said[kind])
        if n_tasks == 1:
            return f"{what}: {self._remedy(kind, task, budget)}"
        if n_tasks <= SINGLY:
            return f"{what}, too"
        if n_tasks == SINGLY + 1:
            return f"{what}, too; further tasks are counted, and named at the end"
        return ""

    def _remedy(self, kind: Kind, task: TaskTally, budget: int) -> str:
        more = f"--gen_kwargs max_gen_toks={max(REASONING_BUDGET, 2 * budget)}"
        template = "chat template" if self._chat_template else "chat template: --apply_chat_template"
        if kind is Kind.CUT:
            return (
                "the suite's own budget is short, the model does not know where to stop (end token, "
                f"{template}), or it reasons and needs more ({more}, in another --output_path)"
            )
        if kind is Kind.EMPTY and 2 * task.filtered > task.empty:
            return "the server's filter takes them away: loosen it, or ask a server without one"
        if kind is Kind.EMPTY:
            return f"check the {template}; hidden reasoning may have used up the budget ({more})"
        shows = f"`medtasks preview {task.name}` shows how answers are read"
        if not self._chat_template:
            form = "an instruct model needs --apply_chat_template, a base model examples (--num_fewshot 5)"
            return f"{form}, one that reasons a larger budget ({more}); {shows}"
        # reasoning without an end fills its budget
        endless = f", or reasoning never ends ({more})" if task.cut else ""
        return f"they may have another form than is asked for{endless}; {shows}"

    def ended(self, task: TaskTally) -> None:
        """Remember what still holds at the end of a task."""
        for kind, (n, of) in _figures(task).items():
            if 2 * n > of and task.name in self._said[kind]:
                self._held[kind][task.name] = n / of

    def counts(self) -> dict[Kind, int]:
        """Kind -> tasks in which most answers are so, or were when it was said."""
        return {kind: len(tasks) for kind, tasks in self._said.items() if tasks}

    def notes(self) -> list[str]:
        """A line for each kind that held to the end of a task, the worst tasks named."""
        return [
            f"most answers {kind.value} in {_named(tasks)}" for kind, tasks in self._held.items() if tasks
        ]


def _figures(task: TaskTally) -> dict[Kind, tuple[int, int]]:
    """How many answers of a task are of each kind, and of how many."""
    return {
        Kind.CUT: (task.cut, task.answers),
        Kind.EMPTY: (task.empty, task.answers),
        Kind.UNREADABLE: (task.read - task.readable, task.read),
    }


def _named(tasks: dict[str, float]) -> str:
    worst = sorted(tasks, key=lambda name: (-tasks[name], name))
    shown, more = ", ".join(worst[:SINGLY]), len(worst) - SINGLY
    return f"{shown} and {more} more task{'s' if more > 1 else ''}" if more > 0 else shown
