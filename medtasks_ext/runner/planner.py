"""Planners that ask about the documents of tasks: a log for each task, its price, what is shown of it."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from medtasks_ext.engines.records import Answer, Fault, Outcome, Request
from medtasks_ext.engines.stream import Planner, Settled
from medtasks_ext.runner.charge import Charge
from medtasks_ext.runner.trouble import Trouble
from medtasks_ext.runner.work import Work
from medtasks_ext.runs.manifest import TaskEntry
from medtasks_ext.runs.outcomes import Intent


class Watcher(Protocol):
    """Sees what happens. Outcomes are on the disk when they are shown here."""

    def began(self, task: str) -> None:
        """The engine has taken the first request of a task."""

    def stored(self, task: str, n: int, unsure: float = 0.0) -> None:
        """So many more requests of a task were answered before.

        Args:
            unsure: US dollars at most of requests that an earlier call sent and whose reply never came.
        """

    def answered(self, request: Request, answer: Answer) -> None:
        """A request was answered."""

    def faulted(self, request: Request, fault: Fault) -> None:
        """A request has no answer."""

    def finished(self, task: str, entry: TaskEntry) -> None:
        """A task is scored, or failed, or has faults."""


WorkT = TypeVar("WorkT", bound=Work)


class TaskPlanner(Planner, Generic[WorkT]):
    """Asks task by task, keeps each outcome in the log of its task, and shows what is on the disk.

    Args:
        works: what is known of each task, in the order in which they are asked.
        charge: what requests cost; None where they cost nothing, or nobody knows.

    Attributes:
        trouble: what the outcomes say about the cause of failures; one that no request escapes ends it all.
        met: why a rule of the user's ends it all, looked at when outcomes were shown; None while it does not.
    """

    met: Callable[[], str | None] | None = None

    def __init__(self, works: Iterable[WorkT], watcher: Watcher, charge: Charge | None = None) -> None:
        super().__init__()
        self._works = {work.name: work for work in works}
        self._watcher, self._charge = watcher, charge
        self.trouble = Trouble(len(self._works))
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._complete: deque[WorkT] = deque()

    @abstractmethod
    def requests_of(self, work: WorkT) -> Generator[Request, None, None]:
        """The requests of a task that have no answer yet. Each counts as under way when it is yielded."""

    @abstractmethod
    def failed(self, work: WorkT, error: Exception) -> None:
        """The requests of a task cannot all be built; what is built of them is asked."""

    @abstractmethod
    def completed(self, work: WorkT) -> None:
        """Every request of a task has its outcome on the disk; in the keeper's thread."""

    def requests(self, engine: str) -> Generator[Request, None, None]:
        """The requests of all tasks."""
        for work in self._works.values():
            with closing(self.counted(work)) as requests:
                yield from requests

    def counted(self, work: WorkT) -> Generator[Request, None, None]:
        """The requests of a task, each counted as under way; what ends them early is noted."""
        try:
            with closing(self.requests_of(work)) as requests:
                for request in requests:
                    with self.lock:
                        work.under_way += 1
                    yield request
        except Exception as error:  # any fault of one task must not cost the others
            self.failed(work, error)
        with self.lock:
            work.fed = True
            if work.complete:
                self._complete.append(work)

    def highest_cost(self, request: Request) -> float | None:
        """US dollars that a request may cost at most; None where requests cost nothing."""
        return None if self._charge is None else self._charge.most(request)

    def sending(self, request: Request, intent: float | None) -> None:
        """Note the first request of a task, and what a request may cost."""
        work = self._works[request.task]
        work.log.guard()
        if work.began is None:
            work.began = time.monotonic()
            self._watcher.began(work.name)
        if intent is not None:
            work.log.add(request.key, request.document, Intent(intent))

    def outcome(self, request: Request, outcome: Outcome, settles: float | None) -> Settled:
        """Store what became of a request."""
        work, cost = self._works[request.task], 0.0
        if self._charge is not None and isinstance(outcome, Answer):
            cost = self._charge.of(request, outcome)
            outcome = replace(outcome, cost=cost)
        priced = settles or 0.0 if self._charge is not None else None
        work.log.add(request.key, request.document, outcome, settles=priced)
        work.under_way -= 1
        if isinstance(outcome, Answer):
            work.generated += 1
        else:
            work.faults[outcome.kind, outcome.in_words] += 1
        self._fresh.append((request, outcome))
        if work.complete:
            self._complete.append(work)
        self.over = self.trouble.see(request.task, outcome)
        return Settled(cost)

    def visit(self) -> None:
        """Bring what is new to the disk, show it, and close the tasks that are complete."""
        with self.lock:
            fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
            complete = [self._complete.popleft() for _ in range(len(self._complete))]
        for work in {request.task: self._works[request.task] for request, _ in fresh}.values():
            work.log.sync()
        for request, outcome in fresh:
            if isinstance(outcome, Answer):
                self._watcher.answered(request, outcome)
            else:
                self._watcher.faulted(request, outcome)
        if fresh and self.met and (why := self.met()):
            with self.lock:
                if not all(work.complete for work in self._works.values()):
                    self.trouble.wish, self.over = why, True
        for work in complete:
            self.completed(work)
        self.after_visit([request for request, _ in fresh])

    def after_visit(self, fresh: list[Request]) -> None:
        """What else a visit does, given the requests whose outcomes are new."""
