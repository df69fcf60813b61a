"""The documents of a run as a planner of a stream: requests task by task, outcomes stored, tasks scored."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from heapq import merge
from operator import itemgetter

from lm_eval.api.model import LM
from lm_eval.api.task import Task

from medtasks_ext.atomic import atomic_file
from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.records import Prompt, Request
from medtasks_ext.engines.stream import Stream
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.runner.charge import Charge
from medtasks_ext.runner.evaluate import Settings
from medtasks_ext.runner.planner import TaskPlanner, Watcher
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
        instant: whether the engine answers at once, so that no process is worth its start.
        charge: what requests cost; None where they cost nothing, or nobody knows.
        budget: of the money that they may cost.
        closes: whether the engine is asked nothing afterwards.
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
        instant: bool = False,
        charge: Charge | None = None,
        budget: Budget | None = None,
        say: Callable[[str], None] = lambda line: None,
        closes: bool = True,
    ) -> None:
        self._run, self._model, self._engine, self._settings = run, model, engine, settings
        works = [RunWork(task, run.places(task), run.outcomes(name)) for name, task in tasks.items()]
        super().__init__(sorted(works, key=lambda work: -work.budget), watcher, charge)
        self._scorer = Scorer(run.folder, run.registry, self._scored_here, alone=instant, say=say)
        self._stream = Stream([self], {"": engine}, budget=budget, say=say, closes=closes)

    def go(self) -> None:
        """Ask until every request has its outcome, and score what is complete.

        Raises:
            MedtasksError: the engine cannot work, a text may not be sent to its server, or the disk takes
                nothing more. What was stored stays.
            KeyboardInterrupt: the user wants to stop.
        """
        self._engine.check(text_of(work.task) for work in self._works.values() if work.places)
        try:
            self._stream.go()
        except BaseException:
            self._scorer.close()
            raise
        self.trouble.settle()
        for name, entry in self._scorer.drain():
            self._note(name, entry)

    # ------------------------------------------------------------------ requests, in the feed's thread

    def requests(self, engine: str) -> Generator[Request, None, None]:
        """The requests of all tasks: long budgets first, and for the prefix cache each task kept together.

        Tasks that share a long record are asked in turn about each (see `turns`).
        """
        for works in self.together():
            with closing(self.merged([(work, self.counted(work)) for work in works])) as requests:
                yield from requests

    def together(self) -> Iterator[list[RunWork]]:
        """The tasks in their order, those together that are asked in turn."""
        if not self._engine.keeps_prefixes:
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
        """Note what ended the building of a task's requests."""
        with public_rows(work.public):
            work.error = failed(error)

    def requests_of(self, work: RunWork) -> Generator[Request, None, None]:
        """The requests of the documents that are chosen."""
        builder = self.builder(work)
        work.log.load()
        if work.log.unsure:
            self._watcher.stored(work.name, 0, work.log.unsure)
        already = 0
        with atomic_file(self._run.files.asked_file(work.name)) as record:
            for place in work.places:
                asked = builder.build(place)
                record.write(asked.line())
                if asked.key in work.log.answered:
                    already += 1
                    continue
                if already:  # said before the engine has worked its way through the others
                    self._watcher.stored(work.name, already)
                    already = 0
                yield builder.request(asked, place)
        self._watcher.stored(work.name, already)

    def words(self, request: Request, error: Exception) -> str:
        """An error on the way of a request in words; they may quote rows that are public."""
        with public_rows(self._works[request.task].public):
            return failed(error).error

    # ------------------------------------------------------------------ the keeper

    def after_visit(self, fresh: list[Request]) -> None:
        """Take note of scores."""
        for name, entry in self._scorer.poll(generates=self._generates()):
            self._note(name, entry)

    def _generates(self) -> bool:
        """Whether a request of any task is still to be answered."""
        with self.lock:
            return not all(work.complete for work in self._works.values())

    def completed(self, work: RunWork) -> None:
        """Note that a task's last outcome is there, and have it scored if all are answers."""
        work.log.close()
        state = TaskState.INCOMPLETE if work.faults else TaskState.ANSWERED
        entry = work.entry(state)
        self._run.note(work.name, entry)
        self._run.save()
        work.log.forget()
        if entry.state is not TaskState.ANSWERED:
            self._watcher.finished(work.name, entry)
        else:
            self._scorer.submit(work.name, len(work.places) if _is_closed(work) else None)

    def close(self) -> None:
        """Note what came."""
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


def _is_closed(work: RunWork) -> bool:
    """Whether the answers to a question can be listed: scoring such a document takes next to nothing."""
    return isinstance(work.task, MedicalTask) and work.task.dataset_given.family.closed


def _placed(work: RunWork, requests: Iterable[Request]) -> Iterator[tuple[int, Request]]:
    """Requests of a task, each with the place of its document."""
    places = {document_key(work.task.eval_docs[place]): place for place in work.places}
    for request in requests:
        yield places[request.document], request
