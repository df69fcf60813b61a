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
from itertools import islice
from typing import Any

from medtasks_ext.engines import Answer, Engine, Outcome, Prompt, Request
from medtasks_ext.engines.lm import StoredLM
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM, Instance
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.fit import shared_characters
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.run.asker import Asker, Chat, Job
from medtasks_ext.run.charge import Budget, Charge
from medtasks_ext.run.store import Asked
from medtasks_ext.runner.evaluate import RequestBuilder, Settings, answer_budget, evaluate_task, text_of
from medtasks_ext.runner.run import Run, failed, loaded_record
from medtasks_ext.runner.tally import Trouble
from medtasks_ext.runs.manifest import TaskEntry, TaskState
from medtasks_ext.task import MedicalTask

#: Seconds between two visits of the keeper: an answer is on the disk after that time at the latest.
KEEP_SECONDS = 0.5
#: Seconds between two looks at what is under way.
_LOOK = 0.02
#: Characters of a record's own that the prompts of two tasks share, some 500 tokens, and documents that are
#: looked at.
LONG, LOOKED_AT = 2000, 2
#: Seconds that a score may take after the user has stopped the run.
PATIENCE = 2.0


class RunAsker(Asker):
    """Asks all tasks of a run, scores each, and shows what is on the disk.

    `run`: its folder, open. `tasks`: built, those that are not done. `watcher`: sees what happens, as a
    `Tally` does, in any thread. `closes`: whether the engine is asked nothing afterwards.

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
        lms = [TaskLM(self, task, run.places(task)) for task in longest_first]
        self.lms = {lm.name: lm for lm in lms}
        self._closes, self.trouble = closes, Trouble(len(lms))
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
                if self.over:
                    break
                turns = Turns([lm.name for lm in lms]) if len(lms) > 1 else None
                for lm in lms:
                    lm.turns = turns
                begun = [_thread(self._evaluate, lm) for lm in lms]
                for thread in begun:
                    thread.start()
                for lm in lms:
                    lm.built.wait()
                threads += begun
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

    def _together(self) -> Iterator[list[TaskLM]]:
        """The tasks in their order; those that are asked in turn together, where the first of them stands.

        They are asked document by document, since their prompts begin with the same long text, and an engine
        keeps the beginnings of some hundred prompts that it has read. Tasks that share no more than what all
        their own documents begin with are kept apart: each is scored earlier so.
        """
        left = list(self.lms.values())
        while left:
            first = left.pop(0)
            alike = (lm for lm in left if self.engine.keeps_prefixes and lm.asks == first.asks)
            mates = [lm for lm in alike if _share(first, lm)]
            left = [lm for lm in left if lm not in mates]
            yield [first, *mates]

    def _evaluate(self, lm: TaskLM) -> None:
        entry = TaskEntry()
        try:
            with public_rows(loaded_record(lm.task)["origin"] != "local"):
                entry = self._scored(lm)
        except Exception as error:
            entry = failed(error)
        finally:
            lm.close()
            self._ended_tasks.append((lm, lm.entry(entry)))

    def _scored(self, lm: TaskLM) -> TaskEntry:
        """What became of a task."""
        try:
            lm.open()
            result = evaluate_task(lm, lm.task, self.settings, self.run.state(lm.name).choice)
            if self._all_ended.is_set():  # the user did not wait for it
                return TaskEntry()
            self.run.keep_scores(lm.task, result, lm.asked, lm.found)
            return TaskEntry(state=TaskState.DONE, n=len(result.samples))
        except Exception as error:  # any fault of one task must not cost the others
            built = lm.built.is_set()
            lm.settle()  # what was built of its requests has its outcome
            if lm.job.unasked:
                return TaskEntry()
            return TaskEntry(state=TaskState.INCOMPLETE) if built and lm.job.faults else failed(error)

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
                lm.forget()
                self.watcher.finished(lm.name, self.run.state(lm.name))


class Turns:
    """Has threads that build tasks come one after another about each document.

    `names`: of the tasks in their order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._at: dict[str, tuple[int, int]] = {name: (-1, n) for n, name in enumerate(names)}
        self._moved = threading.Condition()

    def wait(self, name: str, place: int) -> None:
        """Wait until it is the turn of a task's document at this place."""
        with self._moved:
            self._at[name] = (place, self._at[name][1])
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._at[name] == min(self._at.values()))

    def leave(self, name: str) -> None:
        """Nothing more comes from a task."""
        with self._moved:
            self._at.pop(name, None)
            self._moved.notify_all()


class TaskLM(StoredLM):
    """One task of a run on its way to a score, as the model that lm-eval evaluates it with: each document is
    asked about as soon as it is built; one task at a time goes on to its score.

    Attributes:
        asked, found: document -> what it is asked, and its answer, once all are there.
        built: set when all requests are handed over.
        turns: of tasks that share records; None for one that is asked apart.
    """

    task: MedicalTask
    turns: Turns | None = None

    def __init__(self, asker: RunAsker, task: MedicalTask, places: Sequence[int]) -> None:
        self.found: dict[str, Answer] = {}
        super().__init__(self.found, {}, asker.run.files.answers)
        self.asker, self.task, self.name, self.places = asker, task, task.task_name, places
        #: alike of tasks that may share records: dataset and number of examples
        self.asks = task.dataset_given.id, int(task.config.num_fewshot or 0)
        self.asked: dict[str, Asked] = {}
        self.job, self.built = Job(), threading.Event()
        self.generated = 0  # answers that came to its own requests
        self.known = 0  # answers that were there before, or came to another task's
        layout = asker.settings.layout
        self._template = layout_template(layout) if layout else asker.model.apply_chat_template
        #: whether turns go to the model as they are, in the JSON of lm-eval's class
        its_own = getattr(self._template, "__qualname__", "") == "TemplateAPI.apply_chat_template"
        self._as_turns = its_own and not getattr(asker.model, "tokenized_requests", True)
        self._scores = False

    @cached_property
    def builder(self) -> RequestBuilder:
        """Makes requests; it cuts prompts from now on."""
        asker = self.asker
        return RequestBuilder(asker.model, self.task, asker.settings, asker.run.manifest.identity.digest)

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
        self.builder  # noqa: B018
        self.task.hands_over = self.hand_over
        self._place = {document_key(self.task.eval_docs[n]): n for n in self.places} if self.turns else {}

    def close(self) -> None:
        """Let the next task go on."""
        self._end_of_building()
        if self._scores:
            self.asker.scoring.release()

    def forget(self) -> None:
        """Free what is not needed once the task has its end."""
        self.asked, self.found, self._answers, self.job = {}, {}, {}, Job()

    def _end_of_building(self) -> None:
        self.task.hands_over = self.task.fitter = None  # lm-eval copies what a task holds
        if self.turns:
            self.turns.leave(self.name)
        self.built.set()

    def hand_over(self, instances: list[Instance]) -> None:
        """Have a document asked about."""
        asker = self.asker
        requests = [self.builder.request(instances, draw) for draw in range(self.task.repeats)]
        if (document := requests[0].document) in self.asked:
            return
        if self.turns:
            self.turns.wait(self.name, self._place[document])
        self.asked |= {one.document: Asked(one.key, one.cut) for one in requests}
        self._known(sum(one.key in asker.answers for one in requests))
        asker.add(self.job, requests, waits=True)

    def _known(self, n: int) -> None:
        """Show that so many more requests were answered before, or for another task meanwhile."""
        if n > 0:
            self.known += n
            self.asker.watcher.stored(self.name, n)

    def answers_to(self, requests: Sequence[Instance]) -> list[Answer]:
        """The answers to requests of lm-eval's; what was not handed over yet is asked now."""
        by_document: dict[str, list[Instance]] = {}
        for instance in requests:
            by_document.setdefault(document_key(instance.doc), []).append(instance)
        for document, instances in by_document.items():
            if document not in self.asked:
                self.hand_over(instances)
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


def _text(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\x1e".join(f"{turn['role']}\x1f{turn['content']}" for turn in prompt)


def _share(one: TaskLM, other: TaskLM) -> bool:
    asked = set(other.places)
    places: Sequence[int] = list(islice((place for place in one.places if place in asked), LOOKED_AT))
    try:
        first = [_text(one.builder.build(place).prompt) for place in places]
        all_alike = shared_characters(first[0], first[1]) if len(first) > 1 else 0
        return any(
            shared_characters(prompt, _text(other.builder.build(place).prompt)) - all_alike >= LONG
            for prompt, place in zip(first, places, strict=True)
        )
    except Exception:  # said when the task's own turn comes
        return False
