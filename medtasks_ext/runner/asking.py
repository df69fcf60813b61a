"""The tasks of a run: each is evaluated by lm-eval in a thread of its own, around one model that remembers.

One task is built at a time, long budgets first, and waits while enough requests do. So the engine is never
idle, and a task has its score when its last answer is there. The engine works in the caller's thread, so that
a signal reaches it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

from medtasks_ext.engines import Answer, Outcome, Prompt, Request
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.lm import StoredLM
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import LM, Instance
from medtasks_ext.privacy import public_rows
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.prompts.fit import shared_characters
from medtasks_ext.prompts.template import layout_template
from medtasks_ext.run.asker import AHEAD, Asker, Chat, Job
from medtasks_ext.run.charge import Budget, Charge
from medtasks_ext.run.store import Question
from medtasks_ext.runner.evaluate import RequestBuilder, Settings, evaluate_task, text_of
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


class Watcher(Protocol):
    """Sees what happens, as a `Tally` does. Outcomes are on the disk when they are shown here."""

    def began(self, task: str) -> None: ...
    def stored(self, task: str, n: int, unsure: float = 0.0) -> None: ...
    def ended(self, request: Request, outcome: Outcome) -> None: ...
    def finished(self, task: str, entry: TaskEntry) -> None: ...


class RunAsker(Asker):
    """Asks all tasks of a run, scores each, and shows what is on the disk.

    `run`: its folder, open. `model`: renders chat templates, counts tokens. `engine`: answers. `tasks`:
    built, those that are not done. `budget`: of the money that requests may cost. `say`: tells the user.
    `closes`: whether the engine is asked nothing afterwards.

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
        watcher: Watcher,
        *,
        charge: Charge | None = None,
        budget: Budget | None = None,
        say: Callable[[str], None] = lambda line: None,
        closes: bool = True,
    ) -> None:
        super().__init__(engine, run.answers, budget, charge, say)
        self.run, self.model, self.settings, self._watcher = run, model, settings, watcher
        lms = [TaskLM(self, task, run.places(task)) for task in tasks.values()]
        self.lms = {lm.name: lm for lm in sorted(lms, key=lambda lm: -lm.budget)}  # long answers first
        self._closes = closes
        self.trouble = Trouble(len(lms))
        self.showing, self.scoring, self._seeing = threading.RLock(), threading.Lock(), threading.Lock()
        self._fresh: deque[tuple[Request, Outcome]] = deque()
        self._ended_tasks: deque[tuple[TaskLM, TaskEntry, TaskEntry | None]] = deque()
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
                for name, lm in self.lms.items():
                    if self.run.state(name).state is TaskState.WAITING:
                        self.run.note(name, lm.entry(TaskState.WAITING))
                self.run.save()
        if self._keeper_error is not None:
            raise self._keeper_error

    # ------------------------------------------------------------------ tasks, in their threads

    def _tasks(self) -> None:
        threads: list[threading.Thread] = []
        try:
            for lms in self.together():
                if self.over:
                    break
                threads += self._begun(lms)
            self.queue.more = False  # an engine that answers in batches waits for nothing further
            self.queue.wake()
            while self._under_way and not self.over:
                time.sleep(_LOOK)
        except Exception as error:
            self.ended = error
        finally:
            self.stop()  # the engine's memory is free while scores are counted
        for thread in threads:
            thread.join()

    def _begun(self, lms: Sequence[TaskLM]) -> list[threading.Thread]:
        """Have tasks evaluated beside each other; their threads, once they are built."""
        if len(lms) > 1:
            turns = Turns([lm.name for lm in lms])
            for lm in lms:
                lm.turns = turns
        threads = [
            threading.Thread(target=self._evaluate, args=(lm,), name=f"task {lm.name}", daemon=True)
            for lm in lms
        ]
        for thread in threads:
            thread.start()
        for lm in lms:
            lm.built.wait()
        return threads

    def together(self) -> Iterator[list[TaskLM]]:
        """The tasks in their order, those together that are asked in turn."""
        lms = self.lms.values()
        return in_turn(lms) if self.engine.keeps_prefixes else ([lm] for lm in lms)

    def _evaluate(self, lm: TaskLM) -> None:
        entry, score = lm.entry(TaskState.WAITING), None
        try:
            with public_rows(lm.public):
                entry, score = self._scored(lm)
        except Exception as error:
            entry = failed(error)
        finally:
            lm.close()
            self._ended_tasks.append((lm, entry, score))

    def _scored(self, lm: TaskLM) -> tuple[TaskEntry, TaskEntry | None]:
        """What became of a task's requests, and of its score where they all have an answer."""
        try:
            lm.open()
            result = evaluate_task(lm, lm.task, self.settings, self.run.state(lm.name).choice)
            if self._all_ended.is_set():  # the user did not wait for it
                return lm.entry(TaskState.WAITING), None
            self.run.keep_scores(lm.task, result, lm.asked, lm.found)
            score = TaskEntry(state=TaskState.DONE, n=len(result.samples))
        except Exception as error:  # any fault of one task must not cost the others
            asked, built = lm.settled()
            if lm.job.unasked:
                return lm.entry(TaskState.WAITING), None
            if not built:  # what was built of its requests has its outcome
                entry = failed(error)
                said = {name: getattr(entry, name) for name in ("state", "error", "traceback")}
                return lm.entry(TaskState.FAILED).model_copy(update=said), None
            if not asked:
                return lm.entry(TaskState.INCOMPLETE), None
            score = failed(error)
        return lm.entry(TaskState.ANSWERED), score

    # ------------------------------------------------------------------ outcomes, in the engine's thread

    def sending(self, request: Request, intent: float | None) -> None:
        """Note the first request of a task, and what a request may cost."""
        super().sending(request, intent)
        lm = self.lms[request.task]
        if lm.began is None:
            lm.began = time.monotonic()
            with self.showing:
                self._watcher.began(lm.name)

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float | None:
        """Count an outcome, too, and look whether it says that no other request gets an answer."""
        cost = super().keep(request, outcome, settles)
        self.lms[request.task].generated += isinstance(outcome, Answer)
        self._fresh.append((request, outcome))
        with self._seeing:  # in a file of results, faults say nothing of what comes after them
            ends = self.engine.sends and self.trouble.see(request.task, outcome)
        if ends:
            self.stop()
        return cost

    def known_before(self, *what: Any) -> None:
        """Show that requests were answered by an earlier call, or sent; as `Tally.stored` takes it."""
        with self.showing:
            self._watcher.stored(*what)

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
        with self.showing:
            for request, outcome in fresh:
                self._watcher.ended(request, outcome)
            if fresh and self.met and not self.over and self._under_way and (why := self.met()):
                self.trouble.wish = why
                self.stop()
            for lm, entry, score in ended:
                self.run.note(lm.name, entry)
                if score is not None:
                    self.run.note_end(lm.name, score)
            if ended:
                self.run.keep_results()
                self.run.save()
            for lm, entry, _ in ended:
                if entry.state is not TaskState.WAITING:
                    lm.forget()
                    self._watcher.finished(lm.name, self.run.state(lm.name))


class Turns:
    """Has threads that build tasks come one after another about each document.

    `names`: of the tasks in their order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.name = names[0]
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
        asked: document -> its request.
        found: document -> answer, once all are there.
        built: set when all requests are handed over.
        turns: of tasks that share records; None for one that is asked apart.
    """

    task: MedicalTask
    turns: Turns | None = None

    def __init__(self, asker: RunAsker, task: MedicalTask, places: Sequence[int]) -> None:
        self.found: dict[str, Answer] = {}
        super().__init__(self.found, {}, asker.run.files.answers)
        self.asker, self.task, self.name, self.places = asker, task, task.task_name, places
        self.public = loaded_record(task)["origin"] != "local"
        #: alike of tasks that may share records: dataset and number of examples
        self.asks = task.dataset_given.id, int(task.config.num_fewshot or 0)
        self.asked: dict[str, Request] = {}
        self.job, self.built = Job(), threading.Event()
        self.generated = 0  # answers that came to its own requests
        self.known = 0  # answers that were there before, or came to another task's
        self.began: float | None = None  # when the first request was taken, in seconds of the process's clock
        layout = asker.settings.layout
        self._template = layout_template(layout) if layout else asker.model.apply_chat_template
        #: whether turns go to the model as they are, in the JSON of lm-eval's class
        its_own = getattr(self._template, "__qualname__", "") == "TemplateAPI.apply_chat_template"
        self._as_turns = its_own and not getattr(asker.model, "tokenized_requests", True)
        self._scores = False

    @cached_property
    def _builder(self) -> RequestBuilder:
        asker = self.asker
        return RequestBuilder(asker.model, self.task, asker.settings, asker.run.manifest.identity.digest)

    @property
    def budget(self) -> int:
        """Tokens that an answer may have."""
        return int((self.task.config.generation_kwargs or {}).get("max_gen_toks") or 0)

    def prompt_at(self, place: int) -> Prompt:
        return self._builder.build(place).prompt

    def entry(self, state: TaskState) -> TaskEntry:
        """What the manifest says of the task now."""
        reasons = Counter(fault.in_words for fault in self.job.faults).most_common(1)
        return TaskEntry(
            state=state,
            generated=self.generated,
            seconds=None if self.began is None else round(time.monotonic() - self.began, 1),
            faults=dict(Counter(fault.kind.value for fault in self.job.faults)),
            reason=reasons[0][0] if reasons else "",
        )

    def open(self) -> None:
        """Take note of what is known of the task, and ask about each document from now on."""
        if unsure := self.asker.answers.unsettled.total(self.name):
            self.asker.known_before(self.name, 0, unsure)
        self._builder  # noqa: B018  cuts prompts from now on
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
        asker, asked = self.asker, self._builder.request(instances)
        if asked.document in self.asked:
            return
        if self.turns:
            place = self._place[asked.document]
            self.turns.wait(self.name, place)
            asked = replace(asked, record=f"{self.turns.name} {place}")
        again = (self._builder.request(instances, draw) for draw in range(1, self.task.repeats))
        requests = [asked, *(replace(one, record=asked.record) for one in again)]
        for one in requests:
            self.asked[one.document] = replace(one, prompt="")  # which the document and the engine have
        if known := sum(one.key in asker.answers for one in requests):
            self._known(known)
        asker.add(self.job, requests, AHEAD * asker.engine.window)

    def _known(self, n: int) -> None:
        """Show that so many more requests were answered before, or for another task meanwhile."""
        self.known += n
        self.asker.known_before(self.name, n)

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
        self.found |= {item.document: answers[item.key] for item in self.asked.values()}
        if not self._scores:  # lm-eval asks once for each kind of request
            self.asker.scoring.acquire()
            self._scores = True
        return super().answers_to(requests)

    def _awaited(self) -> Mapping[str, Answer]:
        """Key -> answer, once all requests have their outcome; what stands under others is noted."""
        answers = self.asker.answers
        try:
            return self.asker.wait(self.job, [self.name])
        finally:
            mine, engine = answers.asked.get(self.name, {}), self.asker.engine
            for item in self.asked.values():
                stands = item.key in answers or not engine.sends
                noted = item.document in mine and mine[item.document].key == item.key
                out = "" if item.key in answers else engine.file
                if stands and (not noted or (out and out != answers.out.get(item.key))):
                    answers.put(item.key, Question(item.cut, out), self.name, item.document)
            answered = sum(item.key in answers for item in self.asked.values())
            if (meanwhile := answered - self.known - self.generated) > 0:
                self._known(meanwhile)

    def settled(self) -> tuple[bool, bool]:
        """Whether every request has an answer, and whether all were built; what was built is waited for."""
        built = self.built.is_set()
        self._end_of_building()
        with suppress(MedtasksError):
            self._awaited()
        return not (self.job.faults or self.job.unasked), built

    def apply_chat_template(self, chat_history: list[dict[str, str]], *given: Any, **how: Any) -> Any:
        """The layout of the run, or as the model lays turns out."""
        return Chat(chat_history) if self._as_turns else self._template(chat_history, *given, **how)


def in_turn(lms: Iterable[TaskLM]) -> Iterator[list[TaskLM]]:
    """Tasks in their order, those that are asked in turn together, where the first of them stands.

    They are asked document by document, since their prompts begin with the same long text. An engine keeps
    the beginnings of prompts that it has read. Zero-shot and chain of thought about one long record share it
    only if they come close to each other, since the cache holds some hundred records at most. Tasks that
    share no more than what all their own documents begin with are kept apart: each is scored earlier so.
    Prompts are built when a task's turn comes, not before.
    """
    left = list(lms)
    while left:
        first = left.pop(0)
        mates = [lm for lm in left if lm.asks == first.asks and _share(first, lm)]
        left = [lm for lm in left if lm not in mates]
        yield [first, *mates]


def _text(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\x1e".join(f"{turn['role']}\x1f{turn['content']}" for turn in prompt)


def _share(one: TaskLM, other: TaskLM) -> bool:
    asked = set(other.places)
    places: Sequence[int] = list(islice((place for place in one.places if place in asked), LOOKED_AT))
    try:
        first = [_text(one.prompt_at(place)) for place in places]
        all_alike = shared_characters(first[0], first[1]) if len(first) > 1 else 0
        return any(
            shared_characters(prompt, _text(other.prompt_at(place))) - all_alike >= LONG
            for prompt, place in zip(first, places, strict=True)
        )
    except Exception:  # said when the task's own turn comes
        return False
