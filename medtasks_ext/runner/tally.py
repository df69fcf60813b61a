"""How far a run is: what came, how fast, what it cost, and how many answers can be read.

An outcome must cost microseconds here: thousands come in a second, and the thread that counts them shares the
interpreter with the engine's loop. Answers are therefore read in samples, within a share of the time.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from medtasks_ext.engines.records import CONTENT_FILTER, Fault, FaultKind

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Answer, Outcome, Request
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.runs.manifest import TaskEntry

#: Answers of a task that are read whatever it takes; that are all read if there is time; the step after.
READ_ALWAYS, READ_FIRST, READ_EVERY = 20, 100, 10
#: Share of the time that reading may take, after its first second.
READING_SHARE, READING_GRACE = 0.02, 1.0
#: Seconds over which the rate is taken that the time left follows from, and the rate that is shown as of now.
RATE_SECONDS, NOW_SECONDS = 600.0, 60.0
#: Seconds without an outcome that part two batches; between two moments at least; of a batch without an end.
_PAUSE, _STEP, _LONG_BATCH = 0.2, 1.0, 10.0


class Reads(Protocol):
    """Reads answers to one task."""

    def valid(self, row: Mapping[str, Any], text: str) -> bool:
        """Whether an answer can be read from a response to a document."""


@dataclass(slots=True)
class TaskTally:
    """One task, as far as this process has seen it."""

    name: str  # of the task
    asked: int  # requests that it has here
    stored: int = 0  # of them, those answered by an earlier call
    answers: int = 0  # that came
    faults: int = 0  # requests without an answer
    read: int = 0  # answers that were looked at
    readable: int = 0  # of them, those from which an answer could be read
    empty: int = 0  # answers without any text
    filtered: int = 0  # of these, those that the server's filter took away
    cut: int = 0  # answers that end at the budget
    begun: bool = False  # whether the engine has taken a request
    finished: bool = False  # whether it has its end: a score, a failure, faults

    @property
    def done(self) -> int:
        """Requests that have their outcome."""
        return self.stored + self.answers + self.faults

    @property
    def complete(self) -> bool:
        """Whether every request has its outcome."""
        return self.done >= self.asked

    @property
    def under_way(self) -> bool:
        """Whether some requests have an outcome, or will soon, and others have none."""
        return self.begun and not self.complete and not self.finished

    def takes_sample(self) -> bool:
        """Whether the answer that was counted last is one of those to read."""
        return self.answers <= READ_FIRST or self.answers % READ_EVERY == 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Outcomes and tokens up to a time."""

    at: float
    outcomes: int
    tokens: int


@dataclass(frozen=True)
class Speed:
    """What comes in a second."""

    of: str  # `tokens`, prompts and answers together; `answers` where nobody counts tokens
    now: float  # over the last minute
    since_start: float  # on average
    silent: float  # seconds since the last outcome


class Tally:
    """Counts the outcomes of this process: a `Watcher` that shows nothing.

    One thread at a time may call.

    `asked`: task -> requests that this process has for it. `readers`: task -> what reads its answers, where
    they can be read. `budget`: that they are paid from, where somebody charges and the price is known.
    `clock`: gives seconds; of what is counted later than it came, those at which it came.

    Attributes:
        prompt_tokens: of all prompts whose tokens were counted.
        completion_tokens: of all answers likewise.
        uncounted: answers without a count.
    """

    def __init__(
        self,
        asked: Mapping[str, int],
        readers: Mapping[str, Reads] | None = None,
        budget: Budget | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        #: by name, in the order of the run
        self.tasks = {name: TaskTally(name, n) for name, n in asked.items()}
        #: (kind, reason) -> requests that failed for it
        self.reasons: Counter[tuple[FaultKind, str]] = Counter()
        self.prompt_tokens = self.completion_tokens = self.uncounted = 0
        self._budget = budget
        self._before = (budget.spent, budget.unsure) if budget else (0.0, 0.0)
        self._unsure = 0.0  # of requests that an earlier call sent
        self._readers = dict(readers or {})
        self._begun: list[TaskTally] = []
        self._outcomes = 0
        self._reading = 0.0
        self._clock = clock or time.monotonic
        self.begin()

    # ------------------------------------------------------------------ what happens

    def begin(self) -> None:
        """The first request is sent now: what came before tells nothing of how fast it goes."""
        self.started = self._last = self._batch = self._clock()
        self._moments = deque([Snapshot(self.started, 0, 0)])

    def began(self, task: str) -> None:
        """The engine has taken the first request of a task."""
        self.tasks[task].begun = True
        self._begun.append(self.tasks[task])

    def stored(self, task: str, n: int, unsure: float = 0.0) -> None:
        """So many more requests of a task were answered before; others were sent and never settled."""
        self.tasks[task].stored += n
        self._unsure += unsure

    def ended(self, request: Request, outcome: Outcome) -> None:
        """Count an outcome; an answer is read if it is one of the sample."""
        self._moved()
        task = self._of(request.task)
        if isinstance(outcome, Fault):
            task.faults += 1
            self.reasons[outcome.kind, outcome.reason] += 1
        else:
            task.answers += 1
            self._count(task, outcome)
        task.asked = max(task.asked, task.done)
        if not isinstance(outcome, Fault) and task.takes_sample():
            self.read(request, outcome)

    def _count(self, task: TaskTally, answer: Answer) -> None:
        if not answer.text or answer.text.isspace():
            task.empty += 1
            task.filtered += answer.finish == CONTENT_FILTER
        if answer.finish == "length":
            task.cut += 1
        if answer.usage is None:
            self.uncounted += 1
        else:
            self.prompt_tokens += answer.usage.prompt
            self.completion_tokens += answer.usage.completion

    def _of(self, name: str) -> TaskTally:
        """The task of an outcome; one that nobody expected is one more that is asked."""
        task = self.tasks.setdefault(name, TaskTally(name, 0))
        if not task.begun:
            self.began(name)
        return task

    def finished(self, task: str, entry: TaskEntry | None = None) -> None:
        """A task has its end; its documents are not needed any more."""
        self._readers.pop(task, None)
        self.tasks[task].finished = True

    def _moved(self) -> None:
        """More outcomes. What came before a pause is kept as a moment; in a batch it would mislead."""
        now, former = self._clock(), self._moments[-1].at
        paused = now - self._last >= _PAUSE
        if paused:
            self._batch = now
        if self._last - former >= _STEP and (paused or now - max(self._batch, former) >= _LONG_BATCH):
            self._moments.append(Snapshot(self._last, self._outcomes, self.tokens))
            while len(self._moments) > 1 and self._moments[1].at <= now - RATE_SECONDS:
                self._moments.popleft()
        self._outcomes += 1
        self._last = now

    def reads(self, task: str, reader: Reads) -> None:
        """What reads the answers to a task from now on."""
        self._readers[task] = reader

    def read(self, request: Request, answer: Answer) -> None:
        """Read an answer that was counted, if there is what reads it, and time."""
        task, reader = self.tasks[request.task], self._readers.get(request.task)
        allowed = READING_GRACE + READING_SHARE * (self._last - self.started)
        if reader is None or request.row is None or (task.read >= READ_ALWAYS and self._reading > allowed):
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
        """Tasks under way in the order in which they began, so that those left behind stay in sight."""
        return [task for task in self._begun if task.under_way]

    @property
    def asked(self) -> int:
        """Requests of all tasks."""
        return sum(task.asked for task in self.tasks.values())

    @property
    def done(self) -> int:
        """Requests that have their outcome."""
        return sum(task.done for task in self.tasks.values())

    @property
    def tokens(self) -> int:
        """Of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def seconds(self) -> float:
        """Since the start."""
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
        the last outcome says how fast the model is. Long answers are asked for first, so the first hours say
        little of the last one.
        """
        left = max(0, self.asked - self.done)
        if not self._outcomes:
            return None if left else 0.0
        first = self._moments[0]
        return left * (self._last - first.at) / (self._outcomes - first.outcomes)

    def speed(self) -> Speed | None:
        """How fast it goes; None before the first outcome."""
        now = self._clock()
        if not self._outcomes or now <= self.started:
            return None
        tokens = bool(self.tokens)
        recent = next(
            (item for item in reversed(self._moments) if item.at <= now - NOW_SECONDS), self._moments[0]
        )
        come = self.tokens - recent.tokens if tokens else self._outcomes - recent.outcomes
        return Speed(
            "tokens" if tokens else "answers",
            come / (now - recent.at),
            (self.tokens if tokens else self._outcomes) / (now - self.started),
            now - self._last,
        )


def readable_share(tasks: Iterable[TaskTally]) -> tuple[int, int]:
    """Of answers that were looked at, those that can be read; and how many were looked at."""
    found = list(tasks)
    return sum(task.readable for task in found), sum(task.read for task in found)
