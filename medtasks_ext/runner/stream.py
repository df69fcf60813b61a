"""One stream: the requests of all tasks go into an engine, and every outcome is stored as it comes.

Three threads: one builds requests ahead, task by task; the caller's runs the engine and appends outcomes; the
keeper brings them to the disk, counts them, and closes tasks whose last outcome is there.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from medtasks_ext.atomic import atomic_file
from medtasks_ext.engines.feed import ThreadedFeed
from medtasks_ext.engines.records import Answer, Fault, FaultKind
from medtasks_ext.privacy import public_rows
from medtasks_ext.runner.requests import RequestBuilder, read_asked
from medtasks_ext.runner.run import failed, loaded_record
from medtasks_ext.runner.scoring import Scorer
from medtasks_ext.runner.trouble import Trouble
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.runs.outcomes import Intent, OutcomeLog, outcome_files, sealed_outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from lm_eval.api.model import LM
    from lm_eval.api.task import Task

    from medtasks_ext.engines.engine import Engine
    from medtasks_ext.engines.records import Outcome, Request
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.chain import Seal
    from medtasks_ext.runs.folder import RunFolder

#: Seconds between two visits of the keeper: an answer is on the disk after that time at the latest.
KEEP_SECONDS = 0.5


class Watcher(Protocol):
    """Sees what happens. Outcomes are on the disk when they are shown here."""

    def began(self, task: str) -> None:
        """The engine has taken the first request of a task."""

    def stored(self, task: str, n: int, unsure: float = 0.0) -> None:
        """So many more requests of a task were answered before.

        Args:
            task: its name.
            n: how many.
            unsure: US dollars at most of requests that an earlier call sent and whose reply never came.
        """

    def answered(self, request: Request, answer: Answer) -> None:
        """A request was answered."""

    def faulted(self, request: Request, fault: Fault) -> None:
        """A request has no answer."""

    def finished(self, task: str, entry: TaskEntry) -> None:
        """A task is scored, or failed, or has faults."""


class TaskOutcomes:
    """What is known of one task's outcomes.

    Attributes:
        generated: answers that came.
        faults: requests without an answer, by cause.
        began: when the first request was taken, in seconds of the process's clock.
        sealed: name of a file of outcomes -> its state, of other writers.
    """

    def __init__(self, log: OutcomeLog) -> None:
        self.log = log
        self.generated = 0
        self.faults: Counter[tuple[FaultKind, str]] = Counter()
        self.began: float | None = None
        self.sealed: dict[str, Seal] = {}

    def entry(self, state: TaskState) -> TaskEntry:
        """What the manifest says of the task now."""
        (_, reason), _ = self.faults.most_common(1)[0] if self.faults else ((None, ""), 0)
        kinds = Counter[str]()
        for (kind, _), n in self.faults.items():
            kinds[kind.value] += n
        return TaskEntry(
            state=state,
            generated=self.generated,
            seconds=None if self.began is None else round(time.monotonic() - self.began, 1),
            faults=dict(kinds),
            reason=reason,
            sealed={**self.sealed, self.log.path.name: self.log.seal},
        )


class Work(TaskOutcomes):
    """One task on its way through the stream.

    Attributes:
        fed: whether all of its requests are built.
        under_way: requests that were built and have no outcome yet.
        error: what ended the building of requests.
    """

    def __init__(self, task: Task, places: Sequence[int], log: OutcomeLog) -> None:
        super().__init__(log)
        self.task, self.places = task, places
        self.name: str = task.task_name
        self.public = loaded_record(task)["origin"] != "local"
        self.fed = False
        self.under_way = 0
        self.error: TaskEntry | None = None

    @property
    def budget(self) -> int:
        """Tokens that an answer may have."""
        return int((self.task.config.generation_kwargs or {}).get("max_gen_toks") or 0)

    @property
    def complete(self) -> bool:
        """Whether every request has its outcome."""
        return self.fed and not self.under_way

    def take_over(self, files: RunFolder) -> None:
        """Count what the other processes of the run have stored, now that they have ended."""
        keys = {asked.key for asked in read_asked(files.asked_file(self.name))}
        last: dict[str, Fault] = {}
        self.generated = 0
        for path in outcome_files(files.responses, self.name):
            stored, self.sealed[path.name] = sealed_outcomes(path)
            for item in stored:
                if isinstance(item.entry, Answer):
                    self.generated += 1
                    keys.discard(item.key)
                elif isinstance(item.entry, Fault):
                    last[item.key] = item.entry
        self.faults = Counter((last[key].kind, last[key].reason) for key in keys if key in last)

    def entry(self, state: TaskState) -> TaskEntry:
        """What the manifest says of the task now; failed, if its requests could not all be built."""
        entry = super().entry(state)
        if self.error is None:
            return entry
        return entry.model_copy(
            update={name: getattr(self.error, name) for name in ("state", "error", "traceback")}
        )


class Stream:
    """Asks all tasks of a run.

    Args:
        run: its folder, open.
        model: renders chat templates, counts tokens, knows its rank among the processes of the run.
        engine: answers.
        tasks: built, those that are not done.
        settings: of the run.
        watcher: sees what happens.
        instant: whether the engine answers at once, so that no process is worth its start.
        highest_cost: US dollars that a request may cost at most; None where requests cost nothing.
        say: called with a line for the user.

    Attributes:
        trouble: what the outcomes say about the cause of failures.
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
        highest_cost: Callable[[Request], float] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._run, self._model, self._engine, self._settings = run, model, engine, settings
        self._watcher, self._cost, self._say = watcher, highest_cost, say
        self.trouble = Trouble(len(tasks))
        self._works = {
            name: Work(task, run.places(task, settings), OutcomeLog(run.files.responses, name, model.rank))
            for name, task in tasks.items()
        }
        self._lock = threading.Lock()  # of logs and counts
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._complete: deque[Work] = deque()
        self._scorer = Scorer(run.folder, run.registry, self._scored_here, alone=instant, say=say)
        self._feed = ThreadedFeed(self._requests(), engine.window, self._taken)
        self._ended = threading.Event()
        self._keeper_error: Exception | None = None

    def go(self) -> None:
        """Ask until every request has its outcome, and score what is complete.

        Raises:
            MedtasksError: the engine cannot work, or the disk takes nothing more. What was stored stays.
            KeyboardInterrupt: the user wants to stop.
        """
        keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
        keeper.start()
        try:
            with self._signals():
                self._feed.start()
                self._engine.run(self._feed, self._done)
                self._feed.close()
        except BaseException:
            self._end(keeper)
            self._scorer.close()
            raise
        finally:
            with suppress(Exception):  # what the engine answered is stored
                self._engine.close()
        self._end(keeper)
        if self._keeper_error is not None:
            self._scorer.close()
            raise self._keeper_error
        self.trouble.settle()
        self._join_ranks()
        for name, entry in self._scorer.drain():
            self._note(name, entry)

    # ------------------------------------------------------------------ requests, in the feed's thread

    def _requests(self) -> Generator[Request, None, None]:
        """The requests of all tasks: long budgets first, each task kept together for the prefix cache."""
        for work in sorted(self._works.values(), key=lambda item: -item.budget):
            try:
                yield from self._requests_of(work)
            except GeneratorExit:
                raise
            except Exception as error:  # any fault of one task must not cost the others
                with public_rows(work.public):
                    work.error = failed(error)
            with self._lock:
                work.fed = True
                if work.complete:
                    self._complete.append(work)

    def _requests_of(self, work: Work) -> Generator[Request, None, None]:
        identity = self._run.manifest.identity.digest
        builder = RequestBuilder(self._model, work.task, self._settings, identity)
        rank, ranks = self._model.rank, self._model.world_size
        work.log.load()
        if unsure := sum(work.log.open_intents.values()):
            self._watcher.stored(work.name, 0, unsure)
        already = 0
        with atomic_file(self._run.files.asked_file(work.name, rank)) as record:
            for index, place in enumerate(work.places):
                asked = builder.build(place)
                record.write(asked.line())
                if index % ranks != rank:
                    continue
                if asked.key in work.log.answered:
                    already += 1
                    continue
                if already:  # said before the engine has worked its way through the others
                    self._watcher.stored(work.name, already)
                    already = 0
                request = builder.request(asked, place)
                prepared = self._prepared(request)
                with self._lock:
                    work.under_way += 1
                if isinstance(prepared, Fault):
                    self._done(request, prepared)
                else:
                    yield prepared
        self._watcher.stored(work.name, already)

    def _prepared(self, request: Request) -> Request | Fault:
        try:
            return self._engine.prepare(request)
        except Exception as error:  # one prompt must not cost the others
            with public_rows(self._works[request.task].public):
                return Fault(FaultKind.ENGINE, failed(error).error)

    # ------------------------------------------------------------------ outcomes, in the engine's thread

    def _taken(self, request: Request) -> None:
        work = self._works[request.task]
        if work.began is None:
            work.began = time.monotonic()
            self._watcher.began(work.name)
        if self._cost is not None:
            with self._lock:
                work.log.add(request.key, request.document, Intent(self._cost(request)))

    def _done(self, request: Request, outcome: Outcome) -> None:
        work = self._works[request.task]
        with self._lock:
            work.log.add(request.key, request.document, outcome)
            work.under_way -= 1
            if isinstance(outcome, Answer):
                work.generated += 1
            else:
                work.faults[outcome.kind, outcome.reason] += 1
            self._fresh.append((request, outcome))
            if work.complete:
                self._complete.append(work)
            stop = self.trouble.see(request.task, outcome)
        if stop:
            self._feed.stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal lets requests that may be charged come home; the second, or the first of a model
        on this machine, does not."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(*_: object) -> None:
            waiting = sum(work.under_way for work in self._works.values())
            if self._engine.local or self._feed.over or not waiting:
                raise KeyboardInterrupt
            self._feed.stop()
            self._engine.stop()
            self._interrupted = True
            self._say("waiting for the answers that are under way (once more: stop at once)")

        former = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        self._interrupted = False
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
        if self._interrupted:
            raise KeyboardInterrupt

    # ------------------------------------------------------------------ the keeper

    def _keep(self) -> None:
        try:
            while not self._ended.wait(KEEP_SECONDS):
                self._visit()
            self._visit()
        except Exception as error:
            self._keeper_error = error
            self._feed.stop()

    def _visit(self) -> None:
        """Bring what is new to the disk, count it, close tasks, and take note of scores."""
        with self._lock:
            fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
            complete = [self._complete.popleft() for _ in range(len(self._complete))]
        for work in {self._works[request.task] for request, _ in fresh}:
            work.log.sync()
        for request, outcome in fresh:
            if isinstance(outcome, Answer):
                self._watcher.answered(request, outcome)
            else:
                self._watcher.faulted(request, outcome)
        if self._model.world_size == 1:
            for work in complete:
                self._close(work)
        for name, entry in self._scorer.poll():
            self._note(name, entry)

    def _close(self, work: Work) -> None:
        """Seal a task whose last outcome is there, and have it scored if all are answers."""
        work.log.close()
        state = TaskState.INCOMPLETE if work.faults else TaskState.ANSWERED
        entry = self._run.manifest.tasks[work.name] = work.entry(state)
        self._run.save()
        work.log.forget()
        if entry.state is not TaskState.ANSWERED:
            self._watcher.finished(work.name, entry)
        elif self._run.scores:
            self._scorer.submit(work.name)
        else:
            self._note(work.name, self._scored_here(work.name))

    def _end(self, keeper: threading.Thread) -> None:
        """Stop all threads; everything that came is on the disk and sealed then."""
        with suppress(Exception):  # the engine's own error says more
            self._feed.close()
        self._ended.set()
        keeper.join()
        for work in self._works.values():
            with suppress(Exception):
                work.log.close()
                if self._run.state(work.name).state is TaskState.WAITING:
                    self._run.manifest.tasks[work.name] = work.entry(TaskState.WAITING)
        self._run.save()

    def _note(self, name: str, entry: TaskEntry) -> None:
        known = self._run.state(name)
        self._run.manifest.tasks[name] = entry.model_copy(
            update={key: getattr(known, key) for key in ("generated", "seconds", "sealed")}
        )
        self._run.save()
        self._works[name].task = None  # its documents are not needed any more
        self._watcher.finished(name, self._run.state(name))

    def _scored_here(self, name: str) -> TaskEntry:
        work = self._works[name]
        with public_rows(work.public):
            return self._run.finish_task(work.task)

    def _join_ranks(self) -> None:
        """Where processes share the run, the first one closes the tasks when all have answered."""
        if self._model.world_size == 1:
            return
        self._model.barrier()
        if self._model.rank == 0:
            for work in self._works.values():
                if work.fed:
                    work.take_over(self._run.files)
                    self._close(work)
