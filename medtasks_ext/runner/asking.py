"""The tasks of a run: each is evaluated by lm-eval in a thread of its own, around one model that remembers.

One task is built at a time, long budgets first, and waits while enough requests do. So the engine is never
idle, and a task has its score when its last answer is there. The engine works in the caller's thread, so that
a signal reaches it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from medtasks_ext.egress import Text
from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.records import Answer, Fault, Outcome, Prompt, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM, Instance, Task
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.run.asker import AHEAD, Asker
from medtasks_ext.run.outcomes import Outcomes
from medtasks_ext.run.store import Intent, Question
from medtasks_ext.runner.charge import Charge
from medtasks_ext.runner.evaluate import Settings, evaluate_task
from medtasks_ext.runner.requests import RequestBuilder, text_of
from medtasks_ext.runner.run import Run, failed
from medtasks_ext.runner.stored import StoredLM
from medtasks_ext.runner.trouble import Trouble
from medtasks_ext.runner.turns import Turns, in_turn
from medtasks_ext.runner.work import Work
from medtasks_ext.runs.manifest import TaskEntry, TaskState
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

    def ended(self, request: Request, outcome: Outcome) -> None:
        """A request has its outcome."""

    def finished(self, task: str, entry: TaskEntry) -> None:
        """A task is scored, or failed, or has faults."""


class TaskAsker(Asker):
    """Asks for the documents of tasks: their outcomes are kept with what they cost.

    Args:
        charge: what requests cost; None where they cost nothing, or nobody knows.
    """

    def __init__(
        self, engine: Engine, outcomes: Outcomes, charge: Charge | None = None, budget: Budget | None = None
    ) -> None:
        self.outcomes, self.charge = outcomes, charge
        super().__init__(engine, outcomes, budget)

    def check(self, texts: set[Text]) -> None:
        """Looked at before the first request of all."""

    def most(self, request: Request) -> float | None:
        """US dollars that a request may cost at most."""
        return None if self.charge is None else self.charge.most(request)

    def sending(self, request: Request, intent: float | None) -> None:
        """Note what a request may cost."""
        self.outcomes.check()
        if intent is not None:
            self.outcomes.put(request.key, Intent(intent), request.task, request.document)
            self.outcomes.flush(sync=False)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Store what became of a request."""
        about: dict[str, Any] = {} if settles is None else {"settles": settles}
        if cut := self.cut_of(request):
            about["cut"] = cut
        if isinstance(outcome, Fault) and outcome.details:
            about["details"] = outcome.details  # beside texts of rows, which it may quote
        if self.charge is not None and isinstance(outcome, Answer):
            outcome = replace(outcome, cost=self.charge.of(request, outcome))
        self.outcomes.put(request.key, outcome, request.task, request.document, about)
        self.kept(request, outcome)
        return (outcome.cost if isinstance(outcome, Answer) else None) or 0.0

    def cut_of(self, request: Request) -> str:
        """What did not fit of a prompt, as `AskedPrompt.cut`."""
        return ""

    def kept(self, request: Request, outcome: Outcome) -> None:
        """An outcome was put into the store."""


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
        works = [Work(task, run.places(task)) for task in tasks.values()]
        self.ordered = sorted(works, key=lambda work: -work.budget)
        self.works = {work.name: work for work in works}
        super().__init__(engine, run.answers, charge, budget)
        self.run, self.model, self.settings, self._watcher = run, model, settings, watcher
        self._say, self._closes = say, closes
        self.trouble = Trouble(len(works))
        self.showing, self.scoring, self._seeing = threading.RLock(), threading.Lock(), threading.Lock()
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._ended_tasks: deque[tuple[Work, TaskEntry, TaskEntry | None]] = deque()
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

    def _begun(self, works: Sequence[Work]) -> list[threading.Thread]:
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

    def together(self) -> Iterator[list[Work]]:
        """The tasks in their order, those together that are asked in turn."""
        if not self.engine.keeps_prefixes:
            return ([work] for work in self.ordered)
        return in_turn(self.ordered, self._prompt_at)

    def _prompt_at(self, work: Work, place: int) -> Prompt:
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

    def _scored(self, work: Work, lm: _TaskLM) -> tuple[TaskEntry, TaskEntry | None]:
        """What became of a task's requests, and of its score where they all have an answer."""
        task, choice, score = work.task, self.run.state(work.name).choice, None
        assert task is not None
        try:
            lm.open()
            result = evaluate_task(lm, task, self.settings, choice)
            assert result is not None
            if self._all_ended.is_set():  # the user did not wait for it
                return work.entry(TaskState.WAITING), None
            self.run.keep_scores(task, result, work.asked, lm.found)
            score = TaskEntry(state=TaskState.DONE, n=len(result.samples))
        except Exception as error:  # any fault of one task must not cost the others
            asked, built = lm.settled()
            if work.job.unasked:
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
        with public_rows(self.works[request.task].public):
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

    def cut_of(self, request: Request) -> str:
        """As the task's own fitting says."""
        return self.works[request.task].asked[request.document].cut

    def kept(self, request: Request, outcome: Outcome) -> None:
        """Count an outcome, and look whether it says that no other request gets an answer."""
        self.works[request.task].generated += isinstance(outcome, Answer)
        self._fresh.append((request, outcome))
        with self._seeing:  # in a file of results, faults say nothing of what comes after them
            ends = self.engine.sends and self.trouble.see(request.task, outcome)
        if ends:
            self.stop()

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
                self._watcher.ended(request, outcome)
            if fresh and self.met and not self.over and self._under_way and (why := self.met()):
                self.trouble.wish = why
                self.stop()
            for work, entry, score in ended:
                self._note(work, entry, score)

    def _note(self, work: Work, entry: TaskEntry, score: TaskEntry | None) -> None:
        self.run.note(work.name, entry)
        if score is not None:
            self.run.note_end(work.name, score)
        self.run.save()
        if entry.state is not TaskState.WAITING:
            work.forget()
            self._watcher.finished(work.name, self.run.state(work.name))

    def _close(self) -> None:
        """Note what came."""
        for work in self.ordered:
            if self.run.state(work.name).state is TaskState.WAITING:
                self.run.note(work.name, work.entry(TaskState.WAITING))
        self.run.save()


class _TaskLM(StoredLM):
    """What lm-eval evaluates a task of a run with: each document is asked about once, as soon as it is built;
    one task at a time goes on to its score.

    Args:
        turns: of tasks that share records; None for one that is asked apart.

    Attributes:
        built: set when all of its requests are handed over.
        found: document -> answer, once all are there.
    """

    def __init__(self, asker: RunAsker, work: Work, turns: Turns | None) -> None:
        super().__init__({}, {}, asker.run.files.answers)
        assert work.task is not None
        self.asker, self.work, self.built = asker, work, threading.Event()
        self.found: dict[str, Answer] = {}
        self._turns = turns
        self._places = {document_key(work.task.eval_docs[n]): n for n in work.places} if turns else {}
        settings, identity = asker.settings, asker.run.manifest.identity.digest
        self._template = (
            layout_template(settings.layout) if settings.layout else asker.model.apply_chat_template
        )
        self._builder = RequestBuilder(asker.model, work.task, settings, identity)
        self._already, self._scores, self._building = 0, False, True

    def open(self) -> None:
        """Take note of what is known of the task."""
        if unsure := self.asker.outcomes.unsettled.total(self.work.name):
            self.asker.known_before(self.work.name, 0, unsure)
        if isinstance(self.work.task, MedicalTask):
            self.work.task.hands_over = self.hand_over

    def close(self) -> None:
        """Let the next task go on."""
        self._end_of_building()
        if self._scores:
            self.asker.scoring.release()

    def _end_of_building(self) -> None:
        self._building = False
        self._tell_known()
        if isinstance(self.work.task, MedicalTask):  # lm-eval copies what a task holds
            self.work.task.hands_over = self.work.task.fitter = None
        if self._turns:
            self._turns.leave(self.work.name)
        self.built.set()

    def _tell_known(self) -> None:
        if self._already > 0:
            self.asker.known_before(self.work.name, self._already)
            self.work.known += self._already
            self._already = 0

    def hand_over(self, instances: list[Instance]) -> None:
        """Have a document asked about."""
        asked, record = self._builder.asked(instances), ""
        if asked.document in self.work.asked:
            return
        if self._turns:
            place = self._places[asked.document]
            self._turns.wait(self.work.name, place)
            record = f"{self._turns.name} {place}"
        self.work.asked[asked.document] = asked
        if asked.key in self.asker.outcomes:
            self._already += 1
        else:
            self._tell_known()  # said before the engine has worked its way through the others
        request = replace(self._builder.request(asked, instances[0].doc), record=record)
        self.asker.add(self.work.job, [request], AHEAD * self.asker.engine.window)

    def answers_to(self, requests: Sequence[Instance]) -> list[Answer]:
        """The answers to requests of lm-eval's; what was not handed over yet is asked now."""
        by_document: dict[str, list[Instance]] = {}
        for instance in requests:
            by_document.setdefault(document_key(instance.doc), []).append(instance)
        for document, instances in by_document.items():
            if document not in self.work.asked:
                self.hand_over(instances)
        self._end_of_building()
        answers = self._awaited()
        self.found = {item.document: answers[item.key] for item in self.work.asked.values()}
        if not self._scores:  # lm-eval asks once for each kind of request
            self.asker.scoring.acquire()
            self._scores = True
        return [self.found[document_key(instance.doc)] for instance in requests]

    def _awaited(self) -> Mapping[str, Answer]:
        """Key -> answer, once all requests have their outcome; what stands under others is noted."""
        work, outcomes = self.work, self.asker.outcomes
        try:
            return self.asker.wait(work.job, [work.name])
        finally:
            mine = outcomes.asked.get(work.name, {})
            for item in work.asked.values():
                stands = item.key in outcomes or not self.asker.engine.sends
                noted = item.document in mine and mine[item.document].key == item.key
                out = "" if item.key in outcomes else self.asker.engine.file
                if stands and (not noted or (out and out != outcomes.out.get(item.key))):
                    outcomes.put(item.key, Question(item.cut, out), work.name, item.document)
            answered = sum(item.key in outcomes for item in work.asked.values())
            self._already = answered - work.known - work.generated  # asked for another task meanwhile
            self._tell_known()

    def settled(self) -> tuple[bool, bool]:
        """Whether every request has an answer, and whether all were built; what was built is waited for."""
        built = not self._building
        self._end_of_building()
        with suppress(MedtasksError):
            self._awaited()
        return not (self.work.job.faults or self.work.job.unasked), built

    def apply_chat_template(self, *turns: Any, **how: Any) -> Any:
        """The layout of the run, or as the model lays turns out."""
        return self._template(*turns, **how)
