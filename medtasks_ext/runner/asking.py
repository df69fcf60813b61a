"""The tasks of a run: each is evaluated by lm-eval in a thread of its own, around one model that remembers.

One task is built at a time, long budgets first, and waits while enough requests do. So the engine is never
idle, and a task has its score when its last answer is there. The engine works in the caller's thread, so that
a signal reaches it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any, Protocol

from medtasks_ext.atomic import atomic_file
from medtasks_ext.egress import Text
from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.records import Answer, Fault, Outcome, Prompt, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM, Instance, Task
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.run.asker import AHEAD, Asker, Job
from medtasks_ext.run.lm import Remembering
from medtasks_ext.runner.charge import Charge
from medtasks_ext.runner.evaluate import Settings, evaluate_task
from medtasks_ext.runner.requests import AskedPrompt, RequestBuilder, readable, text_of
from medtasks_ext.runner.run import Records, Run, failed, records_of
from medtasks_ext.runner.trouble import Trouble
from medtasks_ext.runner.turns import Turns, in_turn
from medtasks_ext.runner.work import RunWork, Work
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.runs.outcomes import Intent, read_outcomes
from medtasks_ext.task import MedicalTask

#: Seconds between two visits of the keeper: an answer is on the disk after that time at the latest.
KEEP_SECONDS = 0.5
#: Seconds between two looks at what is under way.
_LOOK = 0.02
#: Seconds that a score may take after the user has stopped the run.
PATIENCE = 2.0


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


class Outcomes:
    """The outcomes of tasks, each in the file of its task, by the methods of a store."""

    def __init__(self, works: Iterable[Work]) -> None:
        self.works = {work.name: work for work in works}
        self._task_of: dict[str, str] = {}  # key of a request that has an answer -> its task
        self._new: set[str] = set()  # tasks with outcomes that are not on the disk yet
        self._lock = threading.Lock()

    def load(self, work: Work) -> None:
        """Read what a task's file holds."""
        work.log.load()
        with self._lock:
            self._task_of.update(dict.fromkeys(work.log.answered, work.name))

    def __contains__(self, key: str) -> bool:
        """Whether a request has an answer."""
        return key in self._task_of

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Key -> answer, of those that have one."""
        wanted, found = set(keys), dict[str, Answer]()
        for name in {self._task_of[key] for key in wanted if key in self._task_of}:
            for stored in read_outcomes(self.works[name].log.path.parent, name):
                if stored.key in wanted and isinstance(stored.entry, Answer):
                    found[stored.key] = stored.entry
        return found

    def put(
        self, key: str, outcome: Outcome | Intent, task: str, document: str, settles: float | None = None
    ) -> None:
        """Keep an outcome, or what a request may cost that is about to be sent."""
        with self._lock:
            self.works[task].log.add(key, document, outcome, settles=settles)
            self._new.add(task)
            if isinstance(outcome, Answer):
                self._task_of[key] = task

    def flush(self) -> None:
        """Bring everything to the disk."""
        with self._lock:
            new, self._new = self._new, set()
        for name in new:
            self.works[name].log.sync()

    def check(self) -> None:
        """Nothing waits for the disk: whoever puts gets its error."""


class TaskAsker(Asker):
    """Asks for the documents of tasks: their outcomes are kept with what they cost.

    Args:
        charge: what requests cost; None where they cost nothing, or nobody knows.
    """

    def __init__(
        self,
        works: Iterable[Work],
        engine: Engine,
        charge: Charge | None = None,
        budget: Budget | None = None,
    ) -> None:
        held = list(works)
        self.works = {work.name: work for work in held}
        self.outcomes, self.charge = Outcomes(held), charge
        super().__init__(engine, self.outcomes, budget)

    def check(self, texts: set[Text]) -> None:
        """Looked at before the first request of all."""

    def most(self, request: Request) -> float | None:
        """US dollars that a request may cost at most."""
        return None if self.charge is None else self.charge.most(request)

    def sending(self, request: Request, intent: float | None) -> None:
        """Note what a request may cost."""
        work = self.works[request.task]
        work.log.guard()
        if intent is not None:
            self.outcomes.put(request.key, Intent(intent), work.name, request.document)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Store what became of a request."""
        work, cost = self.works[request.task], 0.0
        if self.charge is not None and isinstance(outcome, Answer):
            cost = self.charge.of(request, outcome)
            outcome = replace(outcome, cost=cost)
        priced = settles or 0.0 if self.charge is not None else None
        self.outcomes.put(request.key, outcome, work.name, request.document, priced)
        if isinstance(outcome, Answer):
            work.generated += 1
        else:
            work.faults[outcome.kind, outcome.in_words] += 1
        return cost


class RunAsker(TaskAsker):
    """Asks all tasks of a run, scores each, and shows what is on the disk.

    Args:
        run: its folder, open.
        model: renders chat templates, counts tokens.
        engine: answers.
        tasks: built, those that are not done.
        budget: of the money that requests may cost.
        say: tells the user.
        closes: whether the engine is asked nothing afterwards.

    Attributes:
        trouble: what the outcomes say about the cause of failures; one that no request escapes ends it all.
        met: why a rule of the user's ends it all, looked at when outcomes were shown; None while it does not.
    """

    met: Callable[[], str | None] | None = None

    def __init__(
        self,
        run: Run,
        model: LM,
        engine: Engine,
        tasks: Mapping[str, Task],
        settings: Settings,
        watcher: Watcher,
        *,
        charge: Charge | None = None,
        budget: Budget | None = None,
        say: Callable[[str], None] = lambda line: None,
        closes: bool = True,
    ) -> None:
        works = [RunWork(task, run.places(task), run.outcomes(name)) for name, task in tasks.items()]
        self.ordered = sorted(works, key=lambda work: -work.budget)
        super().__init__(self.ordered, engine, charge, budget)
        self.run, self.model, self.settings, self._watcher = run, model, settings, watcher
        self._say, self._closes = say, closes
        self.trouble = Trouble(len(works))
        self.showing, self.scoring, self._seeing = threading.RLock(), threading.Lock(), threading.Lock()
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._ended_tasks: deque[tuple[RunWork, TaskEntry, TaskEntry | None]] = deque()
        self._keeper_error: Exception | None = None
        self._all_ended = threading.Event()

    def go(self) -> None:
        """Ask until every request has its outcome, and score what is complete.

        Raises:
            MedtasksError: the engine cannot work, a text may not be sent to its server, or the disk takes
                nothing more. What was stored stays.
            KeyboardInterrupt: the user wants to stop.
        """
        self.engine.check(text_of(work.task) for work in self.ordered if work.places and work.task)
        tasks = threading.Thread(target=self._tasks, name="tasks", daemon=True)
        keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self.queue.more = True
        patience: float | None = PATIENCE
        try:
            tasks.start()
            keeper.start()
            self.serve()
            patience = None
        finally:
            try:
                with suppress(Exception):  # what the engine answered is stored
                    if self._closes:
                        self.engine.close()
                tasks.join(patience)
            finally:
                self._all_ended.set()
                keeper.join()
                self._close()
        self.trouble.settle()
        if self._keeper_error is not None:
            raise self._keeper_error

    # ------------------------------------------------------------------ tasks, in their threads

    def _tasks(self) -> None:
        threads: list[threading.Thread] = []
        try:
            for works in self.together():
                if self.over:
                    break
                threads += self._begun(works)
            self._ask_the_rest(more=False)
            while self._under_way and not self.over:
                time.sleep(_LOOK)
        except Exception as error:
            self.ended = error
        finally:
            self.stop()  # the engine's memory is free while scores are counted
        for thread in threads:
            thread.join()

    def _begun(self, works: Sequence[RunWork]) -> list[threading.Thread]:
        """Have tasks evaluated beside each other; their threads, once they are built."""
        turns = Turns(works) if len(works) > 1 else None
        begun = [_TaskLM(self, work, turns) for work in works]
        threads = [
            threading.Thread(target=self._evaluate, args=(lm,), name=f"task {lm.work.name}", daemon=True)
            for lm in begun
        ]
        for thread in threads:
            thread.start()
        for lm in begun:
            lm.built.wait()
        if not all(isinstance(work.task, MedicalTask) for work in works):
            # of another class nobody knows what it does beside others
            self._ask_the_rest(more=False)
            for thread in threads:
                thread.join()
            self._ask_the_rest(more=True)
        return threads

    def _ask_the_rest(self, *, more: bool) -> None:
        """Tell the engine whether it is worth while to wait for further requests."""
        self.queue.more = more
        self.queue.wake()

    def together(self) -> Iterator[list[RunWork]]:
        """The tasks in their order, those together that are asked in turn."""
        if not self.engine.keeps_prefixes:
            return ([work] for work in self.ordered)
        return in_turn(self.ordered, self._prompt_at)

    def _prompt_at(self, work: RunWork, place: int) -> Prompt:
        assert work.task is not None
        identity = self.run.manifest.identity.digest
        return RequestBuilder(self.model, work.task, self.settings, identity).build(place).prompt

    def _evaluate(self, lm: _TaskLM) -> None:
        entry, score = lm.work.entry(TaskState.WAITING), None
        try:
            with public_rows(lm.work.public):
                entry, score = self._scored(lm.work, lm)
        except Exception as error:
            entry = failed(error)
        finally:
            lm.close()
            self._ended_tasks.append((lm.work, entry, score))

    def _scored(self, work: RunWork, lm: _TaskLM) -> tuple[TaskEntry, TaskEntry | None]:
        """What became of a task's requests, and of its score where they all have an answer."""
        task, choice, score = work.task, self.run.state(work.name).choice, None
        assert task is not None
        try:
            lm.open()
            result = evaluate_task(lm, task, self.settings, choice)
            assert result is not None
            if self._all_ended.is_set():  # the user did not wait for it
                return work.entry(TaskState.WAITING), None
            self.run.keep_scores(task, result, lm.records())
            score = TaskEntry(state=TaskState.DONE, n=len(result.samples))
        except Exception as error:  # any fault of one task must not cost the others
            asked, built = lm.settled()
            if lm.job.unasked:
                return work.entry(TaskState.WAITING), None
            if not built:  # what was built of its requests has its outcome
                entry = failed(error)
                said = {name: getattr(entry, name) for name in ("state", "error", "traceback")}
                return work.entry(TaskState.FAILED).model_copy(update=said), None
            if not asked:
                return work.entry(TaskState.INCOMPLETE), None
            score = failed(error)
        return work.entry(TaskState.ANSWERED), score

    def words(self, request: Request, error: Exception) -> str:
        """An error on the way of a request in words; they may quote rows that are public."""
        work = self.works[request.task]
        assert isinstance(work, RunWork)
        with public_rows(work.public):
            return failed(error).error

    # ------------------------------------------------------------------ outcomes, in the engine's thread

    def sending(self, request: Request, intent: float | None) -> None:
        """Note the first request of a task, and what a request may cost."""
        super().sending(request, intent)
        work = self.works[request.task]
        if work.began is None:
            work.began = time.monotonic()
            with self.showing:
                self._watcher.began(work.name)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Store what became of a request, and look whether it says that no other gets an answer."""
        cost = super().keep(request, outcome, settles)
        if self.charge is not None and isinstance(outcome, Answer):
            outcome = replace(outcome, cost=cost)
        self._fresh.append((request, outcome))
        with self._seeing:
            ends = self.trouble.see(request.task, outcome)
        if ends:
            self.stop()
        return cost

    def known_before(self, *what: Any) -> None:
        """Show that requests were answered by an earlier call, or sent; as `Watcher.stored` takes it."""
        with self.showing:
            self._watcher.stored(*what)

    def say(self, line: str) -> None:
        """Tell the user."""
        self._say(line)

    # ------------------------------------------------------------------ the keeper

    def _keep(self) -> None:
        try:
            while not self._all_ended.wait(KEEP_SECONDS):
                self._visit()
            self._visit()
        except Exception as error:
            self._keeper_error = error
            self.stop()

    def _visit(self) -> None:
        """Bring what is new to the disk, show it, and note what became of tasks."""
        fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
        ended = [self._ended_tasks.popleft() for _ in range(len(self._ended_tasks))]
        self.outcomes.flush()
        with self.showing:
            for request, outcome in fresh:
                if isinstance(outcome, Answer):
                    self._watcher.answered(request, outcome)
                else:
                    self._watcher.faulted(request, outcome)
            if fresh and self.met and not self.over and self._under_way and (why := self.met()):
                self.trouble.wish = why
                self.stop()
            for work, entry, score in ended:
                self._note(work, entry, score)

    def _note(self, work: RunWork, entry: TaskEntry, score: TaskEntry | None) -> None:
        work.log.close()
        self.run.note(work.name, entry)
        if score is not None:
            self.run.note_end(work.name, score)
        self.run.save()
        work.log.forget()
        if entry.state is not TaskState.WAITING:
            work.task = None
            self._watcher.finished(work.name, self.run.state(work.name))

    def _close(self) -> None:
        """Note what came."""
        for work in self.ordered:
            with suppress(Exception):
                work.log.close()
                if self.run.state(work.name).state is TaskState.WAITING:
                    self.run.note(work.name, work.entry(TaskState.WAITING))
        self.run.save()


class _TaskLM(Remembering):
    """What lm-eval evaluates a task of a run with: each document is asked about once, as soon as it is built.

    The prompts are kept as they are sent; one task at a time goes on to its score.

    Args:
        turns: of tasks that share records; None for one that is asked apart.

    Attributes:
        job: what the task waits for.
        built: set when all of its requests are handed over.
    """

    def __init__(self, asker: RunAsker, work: RunWork, turns: Turns | None) -> None:
        LM.__init__(self)
        assert work.task is not None
        self.model, self.asker = asker.model, asker
        self.work, self.job, self.built = work, Job(), threading.Event()
        self._run_asker, self._turns = asker, turns
        self._places = {document_key(work.task.eval_docs[n]): n for n in work.places} if turns else {}
        settings, identity = asker.settings, asker.run.manifest.identity.digest
        self._template = (
            layout_template(settings.layout) if settings.layout else self.model.apply_chat_template
        )
        self._builder = RequestBuilder(self.model, work.task, settings, identity)
        self._asked: dict[str, AskedPrompt] = {}  # document -> its request
        self._found: Mapping[str, Answer] = {}
        self._already, self._scores = 0, False
        self._prompts: Any = None
        self._lines: IO[bytes] | None = None

    def open(self) -> None:
        """Take note of what is known of the task."""
        work, asker = self.work, self._run_asker
        asker.outcomes.load(work)
        if work.log.unsure:
            asker.known_before(work.name, 0, work.log.unsure)
        if isinstance(work.task, MedicalTask):
            work.task.hands_over = self.hand_over
        self._prompts = atomic_file(asker.run.files.asked_file(work.name))
        self._lines = self._prompts.__enter__()

    def close(self) -> None:
        """Let the next task go on."""
        self._end_of_building()
        if self._scores:
            self._run_asker.scoring.release()

    def _end_of_building(self) -> None:
        prompts, self._prompts = self._prompts, None
        try:
            if prompts is not None:
                self._tell_known()
                prompts.__exit__(None, None, None)
        finally:
            if isinstance(self.work.task, MedicalTask):  # lm-eval copies what a task holds
                self.work.task.hands_over = self.work.task.fitter = None
            if self._turns:
                self._turns.leave(self.work.name)
            self.built.set()

    def _tell_known(self) -> None:
        if self._already:
            self._run_asker.known_before(self.work.name, self._already)
            self._already = 0

    def hand_over(self, instances: list[Instance]) -> None:
        """Have a document asked about."""
        asked, record = self._builder.asked(instances), ""
        if asked.document in self._asked:
            return
        if self._turns:
            place = self._places[asked.document]
            self._turns.wait(self.work.name, place)
            record = f"{self._turns.name} {place}"
        self._asked[asked.document] = asked
        assert self._lines is not None
        self._lines.write(asked.line())
        if asked.key in self.asker.answers:
            self._already += 1
        else:
            self._tell_known()  # said before the engine has worked its way through the others
        request = replace(self._builder.request(asked, instances[0].doc), record=record)
        self.asker.add(self.job, [request], AHEAD * self.asker.engine.window)

    def _answers(self, requests: Sequence[Instance]) -> list[Answer]:
        """The answers to requests of lm-eval's; what was not handed over yet is asked now."""
        by_document: dict[str, list[Instance]] = {}
        for instance in requests:
            by_document.setdefault(document_key(instance.doc), []).append(instance)
        for document, instances in by_document.items():
            if document not in self._asked:
                self.hand_over(instances)
        self._end_of_building()
        self._found = self.asker.wait(self.job, [self.work.name])
        if not self._scores:  # lm-eval asks once for each kind of request
            self._run_asker.scoring.acquire()
            self._scores = True
        return [self._found[self._asked[document_key(instance.doc)].key] for instance in requests]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The answers."""
        return [readable(answer.text) for answer in self._answers(requests)]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The likelihoods of options."""
        found = self._answers(requests)
        return [tuple(answer.likelihoods[one.idx]) for answer, one in zip(found, requests, strict=True)]

    def apply_chat_template(self, *turns: Any, **how: Any) -> Any:
        """The layout of the run, or as the model lays turns out."""
        return self._template(*turns, **how)

    @property
    def tokenizer_name(self) -> str:
        """Not needed: nothing is kept by it."""
        return ""

    def settled(self) -> tuple[bool, bool]:
        """Whether every request has an answer, and whether all were built; what was built is waited for."""
        built = self._prompts is None
        self._end_of_building()
        with suppress(MedtasksError):
            self.asker.wait(self.job, [self.work.name])
        return not (self.job.faults or self.job.unasked), built

    def records(self) -> Records:
        """What the task is scored from."""
        shots = bool(self.work.task and self.work.task.config.num_fewshot)
        return records_of(list(self._asked.values()), self._found, with_shots=shots)
