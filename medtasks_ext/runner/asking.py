"""The tasks of a run: each is evaluated by lm-eval in a thread of its own, around one model that remembers.

One task is built at a time, long budgets first, and waits while enough requests do. So the engine is never
idle, and a task has its score when its last answer is there. The engine works in the caller's thread, so that
a signal reaches it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from medtasks_ext.engines import Answer, Engine, Outcome, Request
from medtasks_ext.engines.lm import StoredLM
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM, Instance
from medtasks_ext.models import Baseline
from medtasks_ext.privacy import public_rows
from medtasks_ext.process import give_memory_back
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.fit import PromptFitter, shared_characters
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.run.asker import Asker, Chat, Job, request_of, size_of
from medtasks_ext.run.charge import Budget, Charge
from medtasks_ext.run.store import Asked
from medtasks_ext.runner.evaluate import Settings, answer_budget, evaluate_task, prompts_of, text_of
from medtasks_ext.runner.run import Run, failed, loaded_record
from medtasks_ext.runner.tally import Trouble
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.task import MedicalTask

#: Seconds between two visits of the keeper: an answer is on the disk after that time at the latest.
KEEP_SECONDS = 0.5
#: Seconds between two looks at what is under way.
_LOOK = 0.02
#: Characters of a record's own that the prompts of two tasks share, some 500 tokens.
LONG = 2000
#: Characters of prompts that have their answers, and wait for scores, at most before a further task is begun.
UNSCORED_SIZE = 16_000_000
#: Characters of a task's prompts from which on their memory goes back to the system once it is scored.
LARGE = 4_000_000
#: Seconds that a score may take after the user has stopped the run.
PATIENCE = 2.0


class RunAsker(Asker):
    """Asks all tasks of a run, scores each, and shows what is on the disk.

    `run`: its folder, open. `tasks`: built, those that are not done. `watcher`: sees what happens, as a
    `Tally` does, in any thread. `closes`: whether the engine is asked nothing afterwards.

    Attributes:
        trouble: what the outcomes say about the cause of failures; one that no request escapes ends it all.
        met: why a rule of the user's ends it all, looked at when outcomes were shown; None while it does not.
        first: looks at the first answer that comes; None where nobody does.
    """

    met: Callable[[], str | None] | None = None
    first: Callable[[Request, Answer], None] | None = None

    def __init__(
        self,
        run: Run,
        model: LM,
        engine: Engine,
        tasks: Mapping[str, MedicalTask],
        settings: Settings,
        watcher: Any,
        *,
        charge: Charge | None = None,
        budget: Budget | None = None,
        say: Callable[[str], None] = lambda line: None,
        closes: bool = True,
    ) -> None:
        super().__init__(engine, run.answers, budget, charge, say)
        self.run, self.model, self.settings, self.watcher = run, model, settings, watcher
        longest_first = sorted(tasks.values(), key=lambda task: -answer_budget(task))
        #: those that have no end yet
        self.lms = {task.task_name: TaskLM(self, task) for task in longest_first}
        self._closes, self.trouble = closes, Trouble(len(tasks))
        self.scoring, self._seeing = threading.Lock(), threading.Lock()
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._ended_tasks: deque[tuple[TaskLM, TaskEntry]] = deque()
        self._keeper_error: Exception | None = None
        self._all_ended = threading.Event()

    def go(self) -> None:
        """Ask until every request has its outcome, and score what is complete.

        Raises:
            MedtasksError: the engine cannot work, a text may not be sent to its server, or the disk takes
                nothing more. What was stored stays.
            KeyboardInterrupt: the user wants to stop.
        """
        self.check({text_of(lm.task) for lm in self.lms.values() if lm.places})
        tasks, keeper = _thread(self._tasks), _thread(self._keep)
        self.more = True
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
                for name, lm in self.lms.items():
                    if self.run.state(name).state is TaskState.WAITING:
                        self.run.note(name, lm.entry(TaskEntry()))
                self.run.save()
        if self._keeper_error is not None:
            raise self._keeper_error

    # ------------------------------------------------------------------ tasks, in their threads

    def _tasks(self) -> None:
        threads = list[threading.Thread]()
        try:
            for lms in self._together():
                while self._unscored > UNSCORED_SIZE and not self.over:
                    time.sleep(_LOOK)
                if self.over:
                    break
                turns = threading.Barrier(len(lms))
                for lm in lms:
                    lm.turns = turns
                    threads.append(_thread(self._evaluate, lm))
                    threads[-1].start()
                for lm in lms:
                    lm.built.wait()
            self.more = False  # an engine that answers in batches waits for nothing further
            self.wake()
            while self._under_way and not self.over:
                time.sleep(_LOOK)
        except Exception as error:
            self.ended = error
        finally:
            self.stop()  # the engine's memory is free while scores are counted
        for thread in threads:
            thread.join()

    @property
    def _unscored(self) -> int:
        """Characters of prompts that have all their answers, and stay in memory until a task is scored."""
        built = [lm for lm in list(self.lms.values()) if lm.built.is_set()]
        return sum(lm.size for lm in built if not lm.job.left)

    def _together(self) -> Iterator[list[TaskLM]]:
        """The tasks in their order; those that are asked in turn together, where the first of them stands.

        They are asked document by document, since their prompts begin with the same long text, and an engine
        keeps the beginnings of some hundred prompts that it has read. Tasks that share no more than what all
        their own documents begin with are kept apart: each is scored earlier so.
        """
        left = list(self.lms.values())
        while left:
            first, *others = left
            mates = [lm for lm in others if self.engine.keeps_prefixes and first.shares(lm)]
            left = [lm for lm in others if lm not in mates]
            yield [first, *mates]

    def _evaluate(self, lm: TaskLM) -> None:
        """Ask about a task's documents, and score it."""
        entry = TaskEntry()
        try:
            with public_rows(loaded_record(lm.task)["origin"] != "local"):
                try:
                    entry = self._scored(lm)
                except Exception as error:  # any fault of one task must not cost the others
                    built = lm.built.is_set()
                    lm.settle()  # what was built of its requests has its outcome
                    if not lm.job.unasked:
                        lacks = TaskEntry(state=TaskState.INCOMPLETE)
                        entry = lacks if built and lm.job.faults else failed(error)
        finally:
            lm.close()
            if lm.size > LARGE:
                give_memory_back()
            lm.size = 0  # it holds nothing up
            self._ended_tasks.append((lm, lm.entry(entry)))

    def _scored(self, lm: TaskLM) -> TaskEntry:
        lm.open()
        result = evaluate_task(lm, lm.task, self.settings, self.run.state(lm.name).choice)
        if self._all_ended.is_set():  # the user did not wait for it
            return TaskEntry()
        self.run.keep_scores(lm.task, result, lm.asked, lm.found)
        return TaskEntry(state=TaskState.DONE, n=len(result.samples))

    # ------------------------------------------------------------------ outcomes, in the engine's thread

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Have an outcome shown, too, and look whether it says that no other request gets an answer."""
        cost = super().keep(request, outcome, settles)
        self.lms[request.task].generated += isinstance(outcome, Answer)
        self._fresh.append((request, outcome))
        with self._seeing:  # in a file of results, faults say nothing of what comes after them
            ends = self.engine.sends and self.trouble.see(request.task, outcome)
        if ends:
            self.stop()
        return cost

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
        # tasks first: the outcomes of one that has ended are there by then, and are shown before its end
        ended = [self._ended_tasks.popleft() for _ in range(len(self._ended_tasks))]
        fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
        self.answers.flush()
        for request, outcome in fresh:
            self.watcher.ended(request, outcome)
            if self.first and isinstance(outcome, Answer):
                self.first(request, outcome)
                self.first = None
        if fresh and self.met and not self.over and self._under_way and (why := self.met()):
            self.trouble.wish = why
            self.stop()
        for lm, entry in ended:
            self.run.note(lm.name, entry)
        if ended:
            self.run.keep_results()
            self.run.save()
        for lm, entry in ended:
            if entry.state is not TaskState.WAITING:
                del self.lms[lm.name]
                self.watcher.finished(lm.name, self.run.state(lm.name))


class TaskLM(StoredLM):
    """One task of a run on its way to a score, as the model that lm-eval evaluates it with: each document is
    asked about as soon as it is built; one task at a time goes on to its score.

    Attributes:
        asked, found: document -> what it is asked, and its answer, once all are there.
        built: set when all requests are handed over.
        turns: where tasks that share records wait for each other before each document.
    """

    task: MedicalTask
    turns: threading.Barrier

    def __init__(self, asker: RunAsker, task: MedicalTask) -> None:
        self.found: dict[str, Answer] = {}
        super().__init__(self.found, {}, asker.run.files.answers)
        self.asker, self.task, self.name, self.places = asker, task, task.task_name, asker.run.places(task)
        self.asked: dict[str, Asked] = {}
        self.job, self.built = Job(), threading.Event()
        self.generated = 0  # answers that came to its own requests
        self.known = 0  # answers that were there before, or came to another task's
        self.size = 0  # characters of its prompts
        layout = asker.settings.layout
        self._template = layout_template(layout) if layout else asker.model.apply_chat_template
        #: whether turns go to the model as they are, in the JSON of lm-eval's class
        its_own = getattr(self._template, "__qualname__", "") == "TemplateAPI.apply_chat_template"
        self._as_turns = its_own and not getattr(asker.model, "tokenized_requests", True)
        self._identity, self._scores = asker.run.manifest.identity.digest, False

    def shares(self, other: TaskLM) -> bool:
        """Whether the prompts of two tasks about one document begin with a long text of this document's."""
        if self._asks != other._asks:
            return False
        how = self.asker.settings, self.apply_chat_template
        try:
            ends = self.places[0], self.places[-1]
            mine, theirs = (
                prompts_of(task, [task.eval_docs[place] for place in ends], *how)
                for task in (self.task, other.task)
            )
        except Exception:  # said when the task's own turn comes
            return False
        alike = shared_characters(*mine)
        return any(shared_characters(*pair) - alike >= LONG for pair in zip(mine, theirs, strict=True))

    @cached_property
    def _asks(self) -> tuple[Any, ...]:
        return self.task.dataset_given.id, int(self.task.config.num_fewshot or 0), self.places

    def entry(self, entry: TaskEntry) -> TaskEntry:
        """What the manifest says of the task now, with how it was asked."""
        reasons = Counter(fault.in_words for fault in self.job.faults).most_common(1)
        how = {
            "generated": self.generated,
            "faults": dict(Counter(fault.kind.value for fault in self.job.faults)),
            "reason": reasons[0][0] if reasons else "",
        }
        return entry.model_copy(update=how)

    def open(self) -> None:
        """Take note of what is known of the task, and ask about each document from now on."""
        self.task.fitter = PromptFitter(self.asker.model)
        self.task.hands_over = self.hand_over

    def close(self) -> None:
        """Let the next task go on."""
        self._end_of_building()
        if self._scores:
            self.asker.scoring.release()

    def _end_of_building(self) -> None:
        self.task.hands_over = self.task.fitter = None  # lm-eval copies what a task holds
        self.turns.abort()
        self.built.set()

    def hand_over(self, instances: list[Instance]) -> None:
        """Have a document asked about."""
        with suppress(threading.BrokenBarrierError):  # one of the others is at its end
            self.turns.wait()
        asker, document = self.asker, document_key(instances[0].doc)
        if document in self.asked:
            return
        requests = [
            request_of(
                instances,
                self._identity,
                document,
                draw=draw,
                seed=getattr(asker.model, "_seed", None),
                reads_document=isinstance(asker.model, Baseline),
                apart=True,
                cut=self.task.cuts.get(document, ""),
            )
            for draw in range(self.task.repeats)
        ]
        self.asked |= {one.document: Asked(one.key, one.cut) for one in requests}
        self.size += sum(map(size_of, requests))
        self._known(sum(one.key in asker.answers for one in requests))
        asker.add(self.job, requests, waits=True)

    def _known(self, n: int) -> None:
        """Show that so many more requests were answered before, or for another task meanwhile."""
        if n > 0:
            self.known += n
            self.asker.watcher.stored(self.name, n)

    def answers_to(self, requests: Sequence[Instance]) -> list[Answer]:
        """The answers to requests of lm-eval's, once all are there."""
        self._end_of_building()
        answers = self._awaited()
        self.found |= {document: answers[item.key] for document, item in self.asked.items()}
        if not self._scores:  # lm-eval asks once for each kind of request
            self.asker.scoring.acquire()
            self._scores = True
        return super().answers_to(requests)

    def _awaited(self) -> Mapping[str, Answer]:
        """Key -> answer, once all requests have their outcome; what stands under others is noted."""
        answers = self.asker.answers
        try:
            return self.asker.awaited(self.job, [self.name])
        finally:
            mine, engine = answers.asked.get(self.name, {}), self.asker.engine
            for document, item in self.asked.items():
                stands = item.key in answers or not engine.sends
                noted = document in mine and mine[document].key == item.key
                out = "" if item.key in answers else engine.file
                if stands and (not noted or (out and out != answers.out.get(item.key))):
                    answers.note(item.key, "question", self.name, document, {"cut": item.cut, "out": out})
            answered = sum(item.key in answers for item in self.asked.values())
            self._known(answered - self.known - self.generated)

    def settle(self) -> None:
        """Wait for what was built."""
        self._end_of_building()
        with suppress(MedtasksError):
            self._awaited()

    def apply_chat_template(self, chat_history: list[dict[str, str]], *given: Any, **how: Any) -> Any:
        """The layout of the run, or as the model lays turns out."""
        return Chat(chat_history) if self._as_turns else self._template(chat_history, *given, **how)


def _thread(target: Callable[..., None], *about: Any) -> threading.Thread:
    return threading.Thread(target=target, args=about, daemon=True)
