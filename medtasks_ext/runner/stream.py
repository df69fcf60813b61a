"""The documents of a run as a planner of a stream: requests task by task, outcomes stored, tasks scored.

Where processes share the run (see `ranks`), each has its own stream and asks the blocks of documents that it
takes. The next block is taken when the engine waits for it. The first process closes the tasks.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import Protocol

from lm_eval.api.model import LM
from lm_eval.api.task import Task

from medtasks_ext.atomic import atomic_file, remove
from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.records import Answer, Fault, Outcome, Request
from medtasks_ext.engines.stream import KEEP_SECONDS, Planner, Settled, Stream
from medtasks_ext.privacy import public_rows
from medtasks_ext.runner.charge import Charge
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.ranks import Claims, FirstRankGoneError, Ranks, blocks
from medtasks_ext.runner.requests import RequestBuilder, text_of
from medtasks_ext.runner.run import Run, failed
from medtasks_ext.runner.scoring import Scorer
from medtasks_ext.runner.trouble import Trouble
from medtasks_ext.runner.work import Work
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.runs.outcomes import Intent, OutcomeLog


class Watcher(Protocol):
    """Sees what happens. Outcomes are on the disk when they are shown here."""

    def began(self, task: str) -> None:
        """The engine has taken the first request of a task."""

    def stored(self, task: str, n: int, unsure: float = 0.0) -> None:
        """So many more requests of a task were answered before.

        Args:
            unsure: US dollars at most of requests that an earlier call sent and whose reply never came.
        """

    def elsewhere(self, task: str, n: int) -> None:
        """So many more requests of a task have their outcome in other processes of the run."""

    def answered(self, request: Request, answer: Answer) -> None:
        """A request was answered."""

    def faulted(self, request: Request, fault: Fault) -> None:
        """A request has no answer."""

    def finished(self, task: str, entry: TaskEntry) -> None:
        """A task is scored, or failed, or has faults."""


class RunPlanner(Planner):
    """Asks all tasks of a run.

    Args:
        run: its folder, open.
        model: renders chat templates, counts tokens.
        engine: answers.
        tasks: built, those that are not done.
        ranks: the processes that share the run.
        instant: whether the engine answers at once, so that no process is worth its start.
        charge: what requests cost; None where they cost nothing, or nobody knows.
        budget: of the money that they may cost.
    """

    def __init__(
        self,
        run: Run,
        model: LM,
        engine: Engine,
        tasks: Mapping[str, Task],
        settings: Settings,
        watcher: Watcher,
        *,
        ranks: Ranks | None = None,
        instant: bool = False,
        charge: Charge | None = None,
        budget: Budget | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        super().__init__()
        self._run, self._model, self._engine, self._settings = run, model, engine, settings
        self._watcher, self._charge, self._say = watcher, charge, say
        self._ranks = ranks or Ranks()
        self.trouble = Trouble(len(tasks))  # what the outcomes say about the cause of failures
        works = [
            Work(task, run.places(task), OutcomeLog(run.files.responses, name, self._ranks.rank))
            for name, task in tasks.items()
        ]
        self._works = {work.name: work for work in sorted(works, key=lambda work: -work.budget)}
        sizes = [len(work.places) for work in self._works.values()]
        self._blocks = blocks(sizes, self._ranks.size, engine.batch)
        self._given = True  # whether a request of the blocks that were taken last was given to the feed
        self._open = list(self._works.values()) if self._ranks.shared and self._ranks.first else []
        self._news = -1
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._complete: deque[Work] = deque()
        self._scorer = Scorer(run.folder, run.registry, self._scored_here, alone=instant, say=say)
        self._stream = Stream([self], {"": engine}, budget=budget, say=say)

    def go(self) -> None:
        """Ask until every request has its outcome, and score what is complete.

        Raises:
            MedtasksError: the engine cannot work, a text may not be sent to its server, or the disk takes
                nothing more. What was stored stays.
            KeyboardInterrupt: the user wants to stop.
        """
        self._engine.check(text_of(work.task) for work in self._works.values() if work.places)
        self._meet()
        try:
            self._stream.go()
        except BaseException:
            self._scorer.close()
            if (n := len(self._open)) and self._stream.keeper_error is None:
                # a launcher ends all ranks when one has died
                self._say(f"tasks not answered to the end: {n}; the same command asks for the rest")
            raise
        self.trouble.settle()
        for name, entry in self._scorer.drain():
            self._note(name, entry)

    # ------------------------------------------------------------------ requests, in the feed's thread

    def requests(self, engine: str, rest: Callable[[], bool]) -> Generator[Request, None, None]:
        """The requests of all tasks: long budgets first, each task kept together for the prefix cache."""
        claims = Claims(self._blocks, self._ranks, lambda: self._may_claim(rest))
        for number, work in enumerate(self._works.values()):
            try:
                yield from self._requests_of(work, claims.of(number))
            except (GeneratorExit, FirstRankGoneError):
                raise
            except Exception as error:  # any fault of one task must not cost the others
                with public_rows(work.public):
                    work.error = failed(error)
                if not self._ranks.first:
                    self._say(f"✗ {work.name} (rank {self._ranks.rank}): {work.error.error}")
            with self.lock:
                work.fed = True
                if work.complete:
                    self._complete.append(work)

    def _requests_of(self, work: Work, claimed: Iterator[range]) -> Generator[Request, None, None]:
        if self._ranks.shared:  # others may have taken all of it
            if (one := next(claimed, None)) is None:
                return
            claimed = chain((one,), claimed)
        identity = self._run.manifest.identity.digest
        builder = RequestBuilder(self._model, work.task, self._settings, identity)
        work.log.load()
        if work.log.unsure:
            self._watcher.stored(work.name, 0, work.log.unsure)
        already = 0
        own = self._run.files.asked_file(work.name, self._ranks.rank)
        with atomic_file(own) as record:
            for block in claimed:
                work.claimed += len(block)
                for index in block:
                    asked = builder.build(place := work.places[index])
                    record.write(asked.line())
                    if asked.key in work.log.answered:
                        already += 1
                        continue
                    if already:  # said before the engine has worked its way through the others
                        self._count_stored(work, already)
                        already = 0
                    with self.lock:
                        work.under_way += 1
                    self._given = True
                    yield builder.request(asked, place)
        self._count_stored(work, already)
        if not self._ranks.shared:
            for path in self._run.files.asked_files(work.name):
                if path != own:  # of a call in which several processes shared the run
                    remove(path)

    def _count_stored(self, work: Work, n: int) -> None:
        self._watcher.stored(work.name, n)
        if n and not self._ranks.first:
            self._ranks.tell(work.name, n)

    def _may_claim(self, rest: Callable[[], bool]) -> bool:
        """Wait until the engine wants more than it was given; False if nothing is wanted any more."""
        if not self._ranks.shared or not self._given:
            return True
        self._given = False
        return rest()

    def words(self, request: Request, error: Exception) -> str:
        """An error on the way of a request in words; they may quote rows that are public."""
        with public_rows(self._works[request.task].public):
            return failed(error).error

    # ------------------------------------------------------------------ outcomes, in the engine's thread

    def highest_cost(self, request: Request) -> float | None:
        """US dollars that a request may cost at most; None where requests cost nothing."""
        return None if self._charge is None else self._charge.most(request)

    def sending(self, request: Request, intent: float | None) -> None:
        """Note the first request of a task, and what a request may cost."""
        work = self._works[request.task]
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
        work.log.add(request.key, request.document, outcome)
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

    # ------------------------------------------------------------------ the keeper

    def visit(self) -> None:
        """Bring what is new to the disk, count it, close tasks, and take note of scores."""
        with self.lock:
            fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
            complete = [self._complete.popleft() for _ in range(len(self._complete))]
        for work in {self._works[request.task] for request, _ in fresh}:
            work.log.sync()
        for request, outcome in fresh:
            if isinstance(outcome, Answer):
                self._watcher.answered(request, outcome)
            else:
                self._watcher.faulted(request, outcome)
        for work in complete:
            if self._ranks.shared:
                self._hand_in(work)
            else:
                self._close(work)
        if self._ranks.shared and not self._ranks.first:
            for task, n in Counter(request.task for request, _ in fresh).items():
                self._ranks.tell(task, n)
            self._ranks.beat()
        self._hear()
        for name, entry in self._scorer.poll():
            self._note(name, entry)

    def _close(self, work: Work) -> None:
        """Seal a task whose last outcome is there, and have it scored if all are answers."""
        work.log.close()
        state = TaskState.INCOMPLETE if work.faults else TaskState.ANSWERED
        entry = work.entry(state)
        self._run.note(work.name, entry)
        self._run.save()
        work.log.forget()
        if entry.state is not TaskState.ANSWERED:
            self._watcher.finished(work.name, entry)
        elif self._run.scores:
            self._scorer.submit(work.name)
        else:
            self._note(work.name, self._scored_here(work.name))

    def close(self) -> None:
        """Seal what came."""
        if not self._ranks.first:
            with suppress(FirstRankGoneError):
                self._ranks.leave()
        for work in self._works.values():
            with suppress(Exception):
                work.log.close()
                if self._run.state(work.name).state is TaskState.WAITING:
                    self._run.note(work.name, work.entry(TaskState.WAITING))
        self._run.save()

    def _note(self, name: str, entry: TaskEntry) -> None:
        self._run.note_end(name, entry)
        self._run.save()
        self._works[name].task = None  # its documents are not needed any more
        self._watcher.finished(name, self._run.state(name))

    def _scored_here(self, name: str) -> TaskEntry:
        work = self._works[name]
        with public_rows(work.public):
            return self._run.finish_task(work.task)

    # ------------------------------------------------------------------ processes that share the run

    def _meet(self) -> None:
        """Wait for the other ranks; prompts of former calls are gone before one writes its own."""
        if not self._ranks.shared:
            return
        if self._ranks.first:
            for name in self._works:
                for path in self._run.files.asked_files(name):
                    remove(path)
        plan = [(name, list(work.places)) for name, work in self._works.items()]
        self._ranks.meet(sha256(repr((self._engine.batch, plan)).encode()).hexdigest())

    def _hand_in(self, work: Work) -> None:
        """Say that this rank has done its part of a task."""
        work.log.close()
        if work.error is None and work.claimed:
            self._ranks.settle(work.name, work.claimed)
        if not self._ranks.first:
            work.log.forget()
            work.task = None

    def _hear(self) -> None:
        """Count what the other ranks have stored, and close tasks that all ranks have done their part of."""
        if not self._open or (news := self._ranks.news()) == self._news:
            return
        self._news = news
        for work in list(self._open):
            if more := self._ranks.told(work.name) - work.elsewhere:
                work.elsewhere += more
                self._watcher.elsewhere(work.name, more)
            if self._ranks.settled(work.name) >= len(work.places):
                self._open.remove(work)
                work.take_over(self._run.files)
                self._close(work)

    def linger(self) -> None:
        """The first rank ends last, since the others ask it for blocks; it closes their tasks meanwhile."""
        while self._ranks.first and self._stream.keeper_error is None and self._ranks.at_work():
            time.sleep(KEEP_SECONDS)
        for rank in self._ranks.silent:
            self._say(f"✗ rank {rank} of {self._ranks.size} has died; what it did not answer is missing")
