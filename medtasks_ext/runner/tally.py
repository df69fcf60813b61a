"""How far a run is, and what its outcomes say while there is time to stop.

An outcome must cost microseconds here: thousands come in a second, and the thread that counts them shares the
interpreter with the engine's loop. After the first answers of a task, therefore, one in ten is read.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines import CONTENT_FILTER, Answer, Fault, FaultKind, Outcome
from medtasks_ext.errors import MedtasksError, some

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed
    from medtasks_ext.engines import Request
    from medtasks_ext.run.charge import Budget

#: Answers of a task that must have come before most of them mean anything, unless the task has fewer.
ENOUGH = 20
#: Answers of all tasks that a rule needs before it ends a run: so many of each are read, then one in ten.
STOP_AFTER, READ_EVERY = 50, 10
#: Moments at which outcomes came, over which the rate is taken, and seconds between two of them at least.
_MOMENTS, _STEP = 60, 1.0


@dataclass(slots=True)
class TaskTally:
    """One task, as far as this process has seen it."""

    name: str
    asked: int  # requests that it has here
    stored: int = 0  # of them, those answered by an earlier call
    answers: int = 0  # that came
    faults: int = 0  # requests without an answer
    read: int = 0  # answers that were looked at
    readable: int = 0  # of them, those from which an answer could be read
    empty: int = 0  # answers without any text
    cut: int = 0  # answers that end at the budget
    finished: bool = False  # whether it has its end: a score, a failure, faults

    @property
    def done(self) -> int:
        return self.stored + self.answers + self.faults


class Tally:
    """Counts the outcomes of this process, and shows nothing. One thread at a time may call.

    `asked`: task -> requests that this process has for it. `readers`: task -> what reads its answers, where
    they can be read. `budget`: that they are paid from, where somebody charges and the price is known.
    """

    def __init__(
        self,
        asked: Mapping[str, int],
        readers: Mapping[str, Callable[[Mapping[str, Any], str], Parsed]] | None = None,
        budget: Budget | None = None,
    ) -> None:
        #: by name, in the order of the run
        self.tasks = {name: TaskTally(name, n) for name, n in asked.items()}
        #: (kind, reason) -> requests that failed for it
        self.reasons: Counter[tuple[FaultKind, str]] = Counter()
        self.tokens = self.uncounted = self._outcomes = 0  # uncounted: answers whose tokens nobody counts
        self.budget, self.spent_before = budget, budget.spent if budget else 0.0
        self._readers = dict(readers or {})
        self.started = self.last = time.monotonic()  # of the last outcome
        self._moments = deque([(self.started, 0, 0)], maxlen=_MOMENTS)  # outcomes and tokens up to a time

    def stored(self, task: str, n: int) -> None:
        """So many more requests of a task were answered before."""
        self.tasks[task].stored += n

    def ended(self, request: Request, outcome: Outcome) -> None:
        """Count an outcome; an answer is read if it is one of the sample."""
        if self.last - self._moments[-1][0] >= _STEP:
            self._moments.append((self.last, self._outcomes, self.tokens))
        self._outcomes, self.last = self._outcomes + 1, time.monotonic()
        # one that nobody expected is one more that is asked
        task = self.tasks.setdefault(request.task, TaskTally(request.task, 0))
        if isinstance(outcome, Fault):
            task.faults += 1
            self.reasons[outcome.kind, outcome.reason] += 1
        else:
            task.answers += 1
            task.cut += outcome.finish == "length"
            filtered = outcome.finish == CONTENT_FILTER  # the end of a run names the server's filter
            task.empty += not filtered and not outcome.text.strip()
            if outcome.usage is None:
                self.uncounted += 1
            else:
                self.tokens += outcome.usage.prompt + outcome.usage.completion
            sampled = not filtered and (task.answers <= STOP_AFTER or task.answers % READ_EVERY == 0)
            if sampled and request.row is not None and (reader := self._readers.get(task.name)):
                with suppress(Exception):  # the score will say it; a display must not end a run
                    task.readable += bool(reader(request.row, outcome.text)["valid"])
                    task.read += 1
        task.asked = max(task.asked, task.done)

    def finished(self, task: str) -> None:
        """A task has its end; its documents are not needed any more."""
        self._readers.pop(task, None)
        self.tasks[task].finished = True

    @property
    def under_way(self) -> list[TaskTally]:
        """Tasks of which some requests have an outcome of this call, and others have none."""
        begun = (task for task in self.tasks.values() if task.answers or task.faults)
        return [task for task in begun if task.done < task.asked and not task.finished]

    @property
    def asked(self) -> int:
        return sum(task.asked for task in self.tasks.values())

    @property
    def done(self) -> int:
        return sum(task.done for task in self.tasks.values())

    def lately(self) -> tuple[float, int, int]:
        """Seconds, and the outcomes and tokens that came in them, lately.

        What was stored before took no time, and a model answers in batches, so neither it nor the time since
        the last outcome says how fast the model is.
        """
        at, outcomes, tokens = self._moments[0]
        return self.last - at, self._outcomes - outcomes, self.tokens - tokens

    def seconds_left(self) -> float | None:
        """At the rate of the last minutes; None before the first outcome, 0 at the end."""
        left, (seconds, outcomes, _) = max(0, self.asked - self.done), self.lately()
        return left * seconds / outcomes if outcomes else (None if left else 0.0)


#: What `model_configs` gives models that reason before they answer.
REASONING_BUDGET = 16_384
_RULE = re.compile(r"(cut|empty|unreadable)\s*>\s*(\d+(?:\.\d+)?)\s*%")


class Kind(str, Enum):
    """What may be wrong with most answers of a task. An earlier kind explains the later ones."""

    CUT = "are truncated at the token limit"
    EMPTY = "are empty"
    UNREADABLE = "cannot be read"

    def counted(self, task: TaskTally) -> tuple[int, int]:
        """How many answers of a task are of the kind, and of how many."""
        if self is Kind.UNREADABLE:
            return task.read - task.readable, task.read
        return task.cut if self is Kind.CUT else task.empty, task.answers


_WHAT_TO_DO = {
    Kind.CUT: "the suite's own budget is short, the model does not know where to stop (end token,"
    " {template}), or it reasons and needs more ({more}, in another --output_path)",
    Kind.EMPTY: "check the {template}; hidden reasoning may have used up the budget ({more})",
    Kind.UNREADABLE: "they may have another form than is asked for, or reasoning never ends ({more}); a base"
    " model needs examples (--num_fewshot 5), an instruct model its {template};"
    " `medtasks preview {task}` shows how answers are read",
}


@dataclass(frozen=True)
class StopRule:
    """Ends a run whose answers are worth nothing."""

    kind: Kind
    percent: float  # of the answers that were looked at; more of them end the run

    @classmethod
    def parse(cls, text: str) -> StopRule:
        """A rule as a user writes it."""
        match = _RULE.fullmatch(text.strip())
        if not match or float(match[2]) >= 100:
            remedy = "write cut, empty, unreadable and a share below 100 %: --stop-if 'unreadable>50%'"
            raise MedtasksError(f"{text!r} is no rule", where="--stop-if", remedy=remedy)
        return cls(Kind[match[1].upper()], float(match[2]))

    def met(self, tally: Tally) -> str | None:
        """Why the run ends, from all answers of this call so far; None if it goes on."""
        of_tasks = {name: self.kind.counted(task) for name, task in tally.tasks.items()}
        n, of = (sum(figures[i] for figures in of_tasks.values()) for i in (0, 1))
        if of < STOP_AFTER or 100 * n <= self.percent * of:
            return None
        return f"{n} of {of} answers that were looked at {self.kind.value}, in {_worst(of_tasks)}"


class Alarms:
    """Says once per kind that most answers of a task are worth nothing, and at the end what stayed so."""

    def __init__(self, *, chat_template: bool) -> None:
        self._template = "chat template" if chat_template else "chat template: --apply_chat_template"
        self._said: dict[Kind, dict[str, TaskTally]] = defaultdict(dict)

    def look(self, task: TaskTally, request: Request) -> str | None:
        """The line to say after an answer, if any; further tasks of a kind are named at the end."""
        for kind in Kind:
            (n, of), known = kind.counted(task), self._said[kind]
            if task.name in known:
                return None  # it explains the later kinds, too
            if 2 * n > of and (of >= ENOUGH or task.done >= task.asked):
                known[task.name] = task
                if len(known) > 1:
                    return None
                budget = int(request.settings.get("max_gen_toks") or 0)
                more = f"--gen_kwargs max_gen_toks={max(REASONING_BUDGET, 2 * budget)}"
                remedy = _WHAT_TO_DO[kind].format(template=self._template, more=more, task=task.name)
                limit = f" of {budget:,}" if kind is Kind.CUT else ""
                return f"! {task.name}: {n} of {of} answers {kind.value}{limit}: {remedy}"
        return None

    def notes(self) -> list[str]:
        """A line for each kind that held to the end of a task, the worst tasks named."""
        lines = []
        for kind in Kind:
            ended = {name: kind.counted(task) for name, task in self._said[kind].items() if task.finished}
            if held := {name: (n, of) for name, (n, of) in ended.items() if 2 * n > of}:
                lines.append(f"most answers {kind.value} in {_worst(held)}")
        return lines


def _worst(tasks: Mapping[str, tuple[int, int]]) -> str:
    """Names of tasks in which some of the answers are of a kind, the largest shares first."""
    shares = {name: n / of for name, (n, of) in tasks.items() if n}
    return some([name for _, name in sorted((-share, name) for name, share in shares.items())], 3)


#: Requests in a row that must fail for one cause before it is taken for the cause of all.
IN_A_ROW = 20
_NUMBER = re.compile(r"\d+")

#: For faults that do not say themselves what to do.
_REMEDIES = {
    FaultKind.UNREACHABLE: "start the server, or correct base_url",
    FaultKind.BUSY: "ask with fewer connections (num_concurrent), or later",
    FaultKind.MALFORMED: "look at what base_url serves; it ends in /v1/chat/completions or /v1/completions",
    FaultKind.REFUSED: "correct what the server names; --gen_kwargs sets the decoding",
}
_LOOK = "mend what the message names; `medtasks run … --limit 1` tries it quickly"


class Trouble:
    """Watches outcomes for a cause that ends the run.

    Every one of the first tens of requests fails for one cause, or as many in a row for a cause that lies
    with the server, or one fails for a cause that no request escapes (key, credit, model). A cause that may
    lie in the requests themselves must have failed those of two tasks: one bad task costs no other.
    """

    def __init__(self, n_tasks: int = 1) -> None:
        self.cause: Fault | None = None  # the fault that ends the run, once there is one
        self.wish: str | None = None  # why a rule of the user's ends it, once it does
        self._answered = False  # whether any request was answered
        self._last: Fault | None = None
        self._alike: tuple[FaultKind, str] | None = None  # what the last faults have in common
        self._in_a_row: Counter[str] = Counter()  # task -> faults of one cause
        self._needed = min(2, n_tasks)

    def see(self, task: str, outcome: Outcome) -> bool:
        """Take note of the outcome of a task's request; whether the run should stop."""
        if isinstance(outcome, Answer):
            self._answered, self._alike = True, None
        else:
            # a count of tokens or a time in a reason is another for each request
            before, self._alike = self._alike, (outcome.kind, _NUMBER.sub("#", outcome.reason))
            if before != self._alike:
                self._in_a_row.clear()
            self._in_a_row[task] += 1
            self._last = outcome
            # requests of other tasks would fail like the last ones
            of_all = outcome.kind.is_transient or (not self._answered and len(self._in_a_row) >= self._needed)
            if outcome.kind.ends_all or (of_all and self._in_a_row.total() >= IN_A_ROW):
                self.cause = self.cause or outcome
        return self.cause is not None or self.wish is not None

    @property
    def error(self) -> MedtasksError | None:
        """What ended the run before its time, in words; None if nothing did.

        Where nothing was answered, the one cause is the cause of all.
        """
        if cause := self.cause or (None if self._answered else self._last):
            what, kind = f"no request gets an answer: {cause.reason}", cause.kind
            remedy = f"{cause.remedy or _REMEDIES.get(kind, _LOOK)}; the same command continues"
            return MedtasksError(what, where=f"stopped ({kind.value})", remedy=remedy)
        remedy = "`medtasks view` shows the answers; without --stop-if the same command goes on, and nothing"
        remedy += " is asked twice"
        return MedtasksError(self.wish, where="stopped (--stop-if)", remedy=remedy) if self.wish else None
