"""The documents of a run as a planner of a stream: requests task by task, outcomes stored, tasks scored.

Where processes share the run (see `ranks`), each has its own stream and asks the blocks of documents that it
takes. The next block is taken when the engine waits for it. The first process closes the tasks.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from hashlib import sha256
from heapq import merge
from itertools import chain
from operator import itemgetter

from lm_eval.api.model import LM
from lm_eval.api.task import Task

from medtasks_ext.atomic import atomic_file, remove
from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.records import Prompt, Request
from medtasks_ext.engines.stream import KEEP_SECONDS, Stream
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runner.charge import Charge
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.planner import TaskPlanner, Watcher
from medtasks_ext.runner.ranks import Claims, FirstRankGoneError, Ranks, blocks
from medtasks_ext.runner.requests import RequestBuilder, text_of
from medtasks_ext.runner.run import Run, failed
from medtasks_ext.runner.scoring import Scorer
from medtasks_ext.runner.turns import in_turn
from medtasks_ext.runner.work import RunWork
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.task import MedicalTask


class RunPlanner(TaskPlanner[RunWork]):
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
        self._run, self._model, self._engine, self._settings = run, model, engine, settings
        self._ranks, self._say = ranks or Ranks(), say
        works = [RunWork(task, run.places(task), run.outcomes(name)) for name, task in tasks.items()]
        super().__init__(sorted(works, key=lambda work: -work.budget), watcher, charge)
        sizes = [len(work.places) for work in self._works.values()]
        self._blocks = blocks(sizes, self._ranks.size, engine.batch)
        self._given = True  # whether a request of the blocks that were taken last was given to the feed
        self._open = list(self._works.values()) if self._ranks.shared and self._ranks.first else []
        self._news = -1
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
        """The requests of all tasks: long budgets first, and for the prefix cache each task kept together.

        Tasks that share a long record are asked in turn about each (see `turns`).
        """
        self._claims = Claims(self._blocks, self._ranks, lambda: self._may_claim(rest))
        for works in self.together():
            with closing(self.merged([(work, self.counted(work)) for work in works])) as requests:
                yield from requests

    def together(self) -> Iterator[list[RunWork]]:
        """The tasks in their order, those together that are asked in turn."""
        if self._ranks.shared or not self._engine.keeps_prefixes:
            return ([work] for work in self._works.values())
        return in_turn(self._works.values(), self._prompt_at)

    def _prompt_at(self, work: RunWork, place: int) -> Prompt:
        return self.builder(work).build(place).prompt

    def builder(self, work: RunWork) -> RequestBuilder:
        """Builds the requests of a task."""
        return RequestBuilder(self._model, work.task, self._settings, self._run.manifest.identity.digest)

    def merged(
        self, tasks: Sequence[tuple[RunWork, Generator[Request, None, None]]]
    ) -> Generator[Request, None, None]:
        """The requests of several tasks, those about one document after another.

        Args:
            tasks: each with its requests, in the order of its documents.
        """
        if len(tasks) == 1:
            yield from tasks[0][1]
            return
        with ExitStack() as opened:
            placed = [_placed(work, opened.enter_context(closing(requests))) for work, requests in tasks]
            for place, request in merge(*placed, key=itemgetter(0)):
                yield replace(request, record=f"{tasks[0][0].name} {place}")

    def failed(self, work: RunWork, error: Exception) -> None:
        """Note what ended the building of a task's requests; where the first rank is gone, all is over."""
        if isinstance(error, FirstRankGoneError):
            raise error
        with public_rows(work.public):
            work.error = failed(error)
        if not self._ranks.first:
            self._say(f"✗ {work.name} (rank {self._ranks.rank}): {work.error.error}")

    def requests_of(self, work: RunWork) -> Generator[Request, None, None]:
        """The requests of the documents that this process asks."""
        claimed: Iterable[range] = (range(len(work.places)),)
        if self._ranks.shared:  # tasks are claimed in their order, and others may have taken all of this one
            taken = self._claims.of(list(self._works).index(work.name))
            if (one := next(taken, None)) is None:
                return
            claimed = chain((one,), taken)
        builder = self.builder(work)
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
                    self._given = True
                    yield builder.request(asked, place)
        self._count_stored(work, already)
        if not self._ranks.shared:
            for path in self._run.files.asked_files(work.name):
                if path != own:  # of a call in which several processes shared the run
                    remove(path)

    def _count_stored(self, work: RunWork, n: int) -> None:
        self._watcher.stored(work.name, n)
        if n and not self._ranks.first:
            self._ranks.tell(work.name, n)

    def _may_claim(self, rest: Callable[[], bool]) -> bool:
        """Wait until the engine wants more than it was given; False if nothing is wanted any more."""
        if not self._given:
            return True
        self._given = False
        return rest()

    def words(self, request: Request, error: Exception) -> str:
        """An error on the way of a request in words; they may quote rows that are public."""
        with public_rows(self._works[request.task].public):
            return failed(error).error

    # ------------------------------------------------------------------ the keeper

    def completed(self, work: RunWork) -> None:
        """Close a task, or hand in one's own part of it."""
        if self._ranks.shared:
            self._hand_in(work)
        else:
            self._close(work)

    def after_visit(self, fresh: list[Request]) -> None:
        """Tell the first rank what is new, hear of the others, and take note of scores."""
        if self._ranks.shared and not self._ranks.first:
            for task, n in Counter(request.task for request in fresh).items():
                self._ranks.tell(task, n)
            self._ranks.beat()
        self._hear()
        for name, entry in self._scorer.poll(generates=self._generates()):
            self._note(name, entry)

    def _generates(self) -> bool:
        """Whether a request of any task is still to be answered."""
        with self.lock:
            return not all(work.complete for work in self._works.values())

    def _close(self, work: RunWork) -> None:
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
            self._scorer.submit(work.name, len(work.places) if _is_closed(work) else None)
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
        self._ranks.connect(sha256(repr((self._engine.batch, plan)).encode()).hexdigest())

    def _hand_in(self, work: RunWork) -> None:
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
            if more := self._ranks.stored_elsewhere(work.name) - work.elsewhere:
                work.elsewhere += more
                self._watcher.elsewhere(work.name, more)
            if self._ranks.settled(work.name) >= len(work.places):
                self._open.remove(work)
                work.take_over(self._run.files)
                self._close(work)

    def wait_for_others(self) -> None:
        """The first rank ends last, since the others ask it for blocks; it closes their tasks meanwhile."""
        while self._ranks.first and self._stream.keeper_error is None and self._ranks.at_work():
            time.sleep(KEEP_SECONDS)
        for rank in self._ranks.silent:
            self._say(f"✗ rank {rank} of {self._ranks.size} has died; what it did not answer is missing")


def _is_closed(work: RunWork) -> bool:
    """Whether the answers to a question can be listed: scoring such a document takes next to nothing."""
    return isinstance(work.task, MedicalTask) and work.task.dataset_given.family.closed


def _placed(work: RunWork, requests: Iterable[Request]) -> Iterator[tuple[int, Request]]:
    """Requests of a task, each with the place of its document."""
    places = {document_key(work.task.eval_docs[place]): place for place in work.places}
    for request in requests:
        yield places[request.document], request
