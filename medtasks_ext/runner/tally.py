"""How far a run is, and what its outcomes say while there is time to stop.

An outcome must cost microseconds here: thousands come in a second, and the thread that counts them shares the
interpreter with the engine's loop. Answers are therefore read in samples, within a share of the time.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from medtasks_ext.engines import CONTENT_FILTER, Answer, Fault, FaultKind, Outcome
from medtasks_ext.errors import MedtasksError, some

if TYPE_CHECKING:
    from medtasks_ext.engines import Request
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runner.evaluate import Reader

#: Answers of a task that are read whatever it takes; that are all read if there is time; the step after.
READ_ALWAYS, READ_FIRST, READ_EVERY = 20, 100, 10
#: Share of the time that reading may take, after its first second.
READING_SHARE, READING_GRACE = 0.02, 1.0
#: Seconds over which the rate is taken that the time left follows from, and the rate that is shown as of now;
#: between two moments at least.
RATE_SECONDS, NOW_SECONDS, _STEP = 600.0, 60.0, 1.0


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
    filtered: int = 0  # of these, those that the server's filter took away
    cut: int = 0  # answers that end at the budget
    finished: bool = False  # whether it has its end: a score, a failure, faults

    @property
    def done(self) -> int:
        return self.stored + self.answers + self.faults


@dataclass(frozen=True)
class Speed:
    """What comes in a second."""

    of: str  # `tokens`, prompts and answers together; `answers` where nobody counts tokens
    now: float  # over the last minute
    silent: float  # seconds since the last outcome


class Tally:
    """Counts the outcomes of this process, and shows nothing. One thread at a time may call.

    `asked`: task -> requests that this process has for it. `readers`: task -> what reads its answers, where
    they can be read. `budget`: that they are paid from, where somebody charges and the price is known.
    `clock`: gives seconds; of what is counted later than it came, those at which it came.

    Attributes:
        tokens: of all prompts and answers whose tokens were counted.
        uncounted: answers without a count.
    """

    def __init__(
        self,
        asked: Mapping[str, int],
        readers: Mapping[str, Reader] | None = None,
        budget: Budget | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        #: by name, in the order of the run
        self.tasks = {name: TaskTally(name, n) for name, n in asked.items()}
        #: (kind, reason) -> requests that failed for it
        self.reasons: Counter[tuple[FaultKind, str]] = Counter()
        self.tokens = self.uncounted = 0
        self._budget = budget
        self._before = (budget.spent, budget.unsure) if budget else (0.0, 0.0)
        self._unsure = 0.0  # of requests that an earlier call sent
        self._readers = dict(readers or {})
        self._outcomes = 0
        self._reading = 0.0
        self._clock = clock or time.monotonic
        self.begin()

    # ------------------------------------------------------------------ what happens

    def begin(self) -> None:
        """The first request is sent now: what came before tells nothing of how fast it goes."""
        self.started = self._last = self._clock()
        self._moments = deque([(self.started, 0, 0)])  # outcomes and tokens up to a time

    def stored(self, task: str, n: int, unsure: float = 0.0) -> None:
        """So many more requests of a task were answered before; others were sent and never settled."""
        self.tasks[task].stored += n
        self._unsure += unsure

    def ended(self, request: Request, outcome: Outcome) -> None:
        """Count an outcome; an answer is read if it is one of the sample."""
        now = self._clock()
        # up to the last outcome: what is under way since then would mislead
        if self._last - self._moments[-1][0] >= _STEP:
            self._moments.append((self._last, self._outcomes, self.tokens))
            while len(self._moments) > 1 and self._moments[1][0] <= now - RATE_SECONDS:
                self._moments.popleft()
        self._outcomes, self._last = self._outcomes + 1, now
        # one that nobody expected is one more that is asked
        task = self.tasks.setdefault(request.task, TaskTally(request.task, 0))
        if isinstance(outcome, Fault):
            task.faults += 1
            self.reasons[outcome.kind, outcome.reason] += 1
        else:
            task.answers += 1
            task.cut += outcome.finish == "length"
            if not outcome.text or outcome.text.isspace():
                task.empty += 1
                task.filtered += outcome.finish == CONTENT_FILTER
            if outcome.usage is None:
                self.uncounted += 1
            else:
                self.tokens += outcome.usage.prompt + outcome.usage.completion
            if task.answers <= READ_FIRST or task.answers % READ_EVERY == 0:
                self._read(task, request, outcome)
        task.asked = max(task.asked, task.done)

    def finished(self, task: str) -> None:
        """A task has its end; its documents are not needed any more."""
        self._readers.pop(task, None)
        self.tasks[task].finished = True

    def _read(self, task: TaskTally, request: Request, answer: Answer) -> None:
        reader, allowed = self._readers.get(task.name), self._last - self.started
        spent = self._reading > READING_GRACE + READING_SHARE * allowed
        if reader is None or request.row is None or (spent and task.read >= READ_ALWAYS):
            return
        began = time.monotonic()
        try:
            readable = reader.valid(request.row, answer.text)
        except Exception:  # the score will say it; a display must not end a run
            return
        task.read += 1
        task.readable += readable
        self._reading += time.monotonic() - began

    # ------------------------------------------------------------------ figures

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

    @property
    def seconds(self) -> float:
        return self._clock() - self.started

    @property
    def spent(self) -> float | None:
        """US dollars of the answers that came; None where no price is known."""
        return None if self._budget is None else self._budget.spent - self._before[0]

    @property
    def unsure(self) -> float:
        """US dollars at most of requests whose reply never came."""
        return self._unsure + (self._budget.unsure - self._before[1] if self._budget else 0.0)

    def seconds_left(self) -> float | None:
        """At the rate of the last minutes; None before the first outcome, 0 at the end.

        What was stored before took no time, and a model answers in batches, so neither it nor the time since
        the last outcome says how fast the model is.
        """
        left = max(0, self.asked - self.done)
        at, outcomes, _ = self._moments[0]
        if not self._outcomes:
            return None if left else 0.0
        return left * (self._last - at) / (self._outcomes - outcomes)

    def speed(self) -> Speed | None:
        """How fast it goes; None before the first outcome."""
        now = self._clock()
        if not self._outcomes or now <= self.started:
            return None
        before = (item for item in reversed(self._moments) if item[0] <= now - NOW_SECONDS)
        at, outcomes, tokens = next(before, self._moments[0])
        come = self.tokens - tokens if self.tokens else self._outcomes - outcomes
        return Speed("tokens" if self.tokens else "answers", come / (now - at), now - self._last)


#: What `model_configs` gives models that reason before they answer.
REASONING_BUDGET = 16_384
#: Answers that must have come before most of them mean anything, unless the task has fewer.
ENOUGH = 20


class Kind(str, Enum):
    """What may be wrong with most answers of a task. An earlier kind explains the later ones."""

    CUT = "are truncated at the token limit"
    EMPTY = "are empty"
    UNREADABLE = "cannot be read"


#: Answers that must have been looked at, over all tasks, before a rule ends a run.
STOP_AFTER = 50
_RULE = re.compile(r"(cut|empty|unreadable)\s*>\s*(\d+(?:\.\d+)?)\s*%")


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
        of_tasks = {name: _figures(task)[self.kind] for name, task in tally.tasks.items()}
        n, of = (sum(figures[i] for figures in of_tasks.values()) for i in (0, 1))
        if of < STOP_AFTER or 100 * n <= self.percent * of:
            return None
        shares = {name: hits / looked for name, (hits, looked) in of_tasks.items() if hits}
        return f"{n} of {of} answers that were looked at {self.kind.value}, in {_named(shares)}"


class Alarms:
    """Says once per kind that most answers of a task are worth nothing, and at the end what stayed so."""

    def __init__(self, *, chat_template: bool) -> None:
        self._chat_template = chat_template  # whether one is applied
        self._said: dict[Kind, dict[str, TaskTally]] = defaultdict(dict)

    def look(self, task: TaskTally, request: Request) -> str | None:
        """The line to say after an answer, if any; further tasks of a kind are named at the end."""
        for kind, (n, of) in _figures(task).items():
            known = self._said[kind]
            if task.name in known:
                return None  # it explains the later kinds, too
            if 2 * n > of and (of >= ENOUGH or task.done >= task.asked):
                known[task.name] = task
                budget = int(request.settings.get("max_gen_toks") or 0)
                limit = f" of {budget:,}" if kind is Kind.CUT else ""
                what = f"! {task.name}: {n} of {of} answers {kind.value}{limit}"
                return None if len(known) > 1 else f"{what}: {self._remedy(kind, task, budget)}"
        return None

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
        form = "they may have another form than is asked for, or reasoning never ends"
        if not self._chat_template:
            form = "an instruct model needs --apply_chat_template, a base model examples (--num_fewshot 5)"
            form += ", one that reasons a larger budget"
        return f"{form} ({more}); `medtasks preview {task.name}` shows how answers are read"

    def counts(self) -> dict[Kind, int]:
        """Kind -> tasks in which most answers are so, or were when it was said."""
        return {kind: len(self._said[kind]) for kind in Kind if self._said[kind]}

    def notes(self) -> list[str]:
        """A line for each kind that held to the end of a task, the worst tasks named."""
        lines = []
        for kind in Kind:
            figures = {name: _figures(task)[kind] for name, task in self._said[kind].items() if task.finished}
            if held := {name: n / of for name, (n, of) in figures.items() if 2 * n > of}:
                lines.append(f"most answers {kind.value} in {_named(held)}")
        return lines


def _figures(task: TaskTally) -> dict[Kind, tuple[int, int]]:
    """How many answers of a task are of each kind, and of how many."""
    return {
        Kind.CUT: (task.cut, task.answers),
        Kind.EMPTY: (task.empty, task.answers),
        Kind.UNREADABLE: (task.read - task.readable, task.read),
    }


def _named(tasks: dict[str, float]) -> str:
    worst = sorted(tasks, key=lambda name: (-tasks[name], name))
    return some(worst, 3)


#: Requests in a row that must fail for one cause before it is taken for the cause of all.
IN_A_ROW = 20
_NUMBER = re.compile(r"\d+")

#: For faults that do not say themselves what to do.
REMEDIES = {
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
        self.answered = False  # whether any request was answered
        self._last: Fault | None = None
        self._in_a_row = 0
        self._tasks: set[str] = set()
        self._needed = min(2, n_tasks)

    def see(self, task: str, outcome: Outcome) -> bool:
        """Take note of the outcome of a task's request; whether the run should stop."""
        if isinstance(outcome, Answer):
            self.answered, self._last = True, None
        else:
            if self._last is None or _cause(self._last) != _cause(outcome):
                self._in_a_row, self._tasks = 0, set()
            self._in_a_row += 1
            self._tasks.add(task)
            self._last = outcome
            # requests of other tasks would fail like the last ones
            of_all = outcome.kind.is_transient or (not self.answered and len(self._tasks) >= self._needed)
            if outcome.kind.ends_all or (self._in_a_row >= IN_A_ROW and of_all):
                self.cause = self.cause or outcome
        return self.cause is not None or self.wish is not None

    @property
    def error(self) -> MedtasksError | None:
        """What ended the run before its time, in words; None if nothing did.

        Where nothing was answered, the one cause is the cause of all.
        """
        if cause := self.cause or (None if self.answered else self._last):
            return stopped(cause)
        if self.wish is None:
            return None
        remedy = "`medtasks view` shows the answers; without --stop-if the same command goes on, and nothing "
        return MedtasksError(self.wish, where="stopped (--stop-if)", remedy=remedy + "is asked twice")


def _cause(fault: Fault) -> tuple[FaultKind, str]:
    """Kind and reason; a count of tokens or a time in it is another for each request."""
    return fault.kind, _NUMBER.sub("#", fault.reason)


def stopped(fault: Fault) -> MedtasksError:
    """The error of a run that a fault ended."""
    return MedtasksError(
        f"no request gets an answer: {fault.reason}",
        where=f"stopped ({fault.kind.value})",
        remedy=f"{fault.remedy or REMEDIES.get(fault.kind, _LOOK)}; the same command continues",
    )
