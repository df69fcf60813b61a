"""A run's requests as batch files, and the results taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from medtasks_ext.atomic import remove
from medtasks_ext.engines.batch import (
    CHAT,
    MESSAGES,
    TEXT,
    BatchEngine,
    BatchFiles,
    ImportedAs,
    Intake,
    Interface,
    WrittenCount,
)
from medtasks_ext.engines.faults import ServerNames
from medtasks_ext.engines.payload import after_thinking, payload, prepared, reader_of
from medtasks_ext.engines.records import Answer, Outcome
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import public_rows, shows_text
from medtasks_ext.runner.evaluate import Settings, build_task
from medtasks_ext.runner.requests import read_prompts, read_prompts_file
from medtasks_ext.runner.run import Run, failed, loaded_record
from medtasks_ext.runner.stream import RunPlanner
from medtasks_ext.runner.tally import Tally
from medtasks_ext.runner.work import Work
from medtasks_ext.runs.manifest import CHAINED, TaskState
from medtasks_ext.runs.outcomes import read_outcomes

if TYPE_CHECKING:
    from lm_eval.api.task import Task
    from lm_eval.models.api_models import TemplateAPI


def interface_of(model: str) -> Interface:
    """What batches of a type of model look like.

    Raises:
        MedtasksError: it is not asked over OpenAI's or Anthropic's interface.
    """
    import lm_eval.models  # noqa: F401  registers lm-eval's own models
    from lm_eval.api.registry import get_model

    try:
        read = reader_of(get_model(model))
    except (KeyError, ValueError, ImportError):
        read = None
    for interface in (CHAT, TEXT, MESSAGES):
        if interface.read is read:
            return interface
    raise MedtasksError(
        f"{model} is not asked in batches",
        where="--model",
        remedy="use local-chat-completions (for `vllm run-batch`, too), local-completions, "
        "openai-chat-completions or anthropic-chat",
    )


# ---------------------------------------------------------------------- requests out


def write_requests(
    run: Run, lm: TemplateAPI, tasks: Mapping[str, Task], settings: Settings, files: BatchFiles
) -> tuple[WrittenCount, Tally]:
    """Write the requests of all documents that have no answer yet; what cannot be put is counted.

    Args:
        run: its folder, open, its lease held.
        tasks: built, those that are not done.

    Raises:
        MedtasksError: the model is not asked in batches, or the disk takes no more.
    """
    interface = interface_of(run.manifest.identity.model["model"])
    engine = BatchEngine(files, interface, partial(payload, lm), partial(prepared, lm))
    tally = Tally({name: len(run.places(task)) for name, task in tasks.items()})
    RunPlanner(run, lm, engine, tasks, settings, tally, instant=True).go()
    return engine.amount, tally


# ---------------------------------------------------------------------- results in


@dataclass
class Left:
    """What is missing when all is taken."""

    without_result: int = 0  # requests that were written and have no outcome
    faults: Counter[str] = field(default_factory=Counter)  # the last outcomes of requests without an answer

    def __bool__(self) -> bool:
        return bool(self.without_result or self.faults)


class _Open(Work):
    """A task that waits for results."""

    def __init__(self, run: Run, name: str) -> None:
        super().__init__(name, run.outcomes(name))
        asked = {item.key: item.document for item in read_prompts(run.files, name)}
        #: keys of the requests that the task's result needs; none where it has its result
        self.asked = set(asked)
        #: key of each request -> its document; requests of former choices are among them
        self.documents = {**_earlier(run, name), **asked}
        self.taken = False  # whether a result of it was stored
        self.beyond = 0  # answers that were stored to requests that its result does not need
        self.log.load()

    def add(self, key: str, outcome: Outcome) -> None:
        """Store a result."""
        sent = 0.0 if key in self.log.unsettled else None  # by a call of `run`, and charged perhaps
        self.log.add(key, self.documents[key], outcome, settles=sent)
        self.generated += isinstance(outcome, Answer)
        self.beyond += isinstance(outcome, Answer) and key not in self.asked
        self.taken = True

    def settle(self) -> tuple[TaskState, int]:
        """The state that the outcomes make, and how many requests have none."""
        left = [key for key in self.asked if key not in self.log.answered]
        last = self.log.last
        self.faults = Counter((last[key].kind, last[key].reason) for key in left if key in last)
        missing = len(left) - sum(self.faults.values())
        if missing:
            return TaskState.WAITING, missing
        return TaskState.INCOMPLETE if left else TaskState.ANSWERED, 0


def _earlier(run: Run, task: str) -> dict[str, str]:
    """Key -> document of the requests that were written for a former choice of documents."""
    file = run.files.earlier_file(task)
    return {asked.key: asked.document for asked in read_prompts_file(file)} if file.is_file() else {}


class RunIntake:
    """The requests of a run that wait for results of batches; scores the tasks that they complete.

    Args:
        run: its folder, loaded, its lease held.

    Attributes:
        intake: takes files of results.

    Raises:
        MedtasksError: the run's model is not asked in batches, or a file of the run is damaged.
    """

    def __init__(self, run: Run) -> None:
        model = run.manifest.identity.model
        interface, arguments = interface_of(model["model"]), model["model_args"]
        self.intake = Intake(self, interface, f"the run in {run.folder}")
        self._run = run
        self._thinking = arguments.get("think_end_token") if interface is CHAT else None
        name = str(arguments.get("model") or arguments.get("pretrained") or "")
        self._asked = ServerNames("the server of the batch", name, "the key of the batch")
        names = [
            name
            for name in run.manifest.tasks
            if run.files.asked_file(name).is_file() or run.files.earlier_file(name).is_file()
        ]
        self._open = {name: _Open(run, name) for name in names}
        self._of = {key: task for task in self._open.values() for key in task.documents}
        self._finished: set[str] | None = None
        self._tasks: dict[str, Task | MedtasksError] = {}

    def knows(self, key: str) -> bool:
        """Whether it is a request of this run."""
        return key in self._of or key in self._of_finished()

    def waits(self, key: str) -> bool:
        """Whether it has no answer yet."""
        return key in self._of and key not in self._of[key].log.answered

    def about(self, key: str) -> tuple[ServerNames, bool]:
        """How messages name what was asked; they quote the server where rows may be quoted."""
        if shows_text():
            return self._asked, True
        task = self._task(self._of[key].name)
        return self._asked, not isinstance(task, MedtasksError) and loaded_record(task)["origin"] != "local"

    def store(self, key: str, outcome: Outcome) -> ImportedAs:
        """Append it to the outcomes of its task."""
        task = self._of[key]
        if task.log.last.get(key) == outcome:
            return ImportedAs.STORED_BEFORE
        if isinstance(outcome, Answer):
            task.add(key, replace(outcome, text=after_thinking(outcome.text, self._thinking)))
            return ImportedAs.ANSWER
        task.add(key, outcome)
        return ImportedAs.FAULT

    def _of_finished(self) -> set[str]:
        """Keys of the outcomes of tasks that wait for nothing; read when an id is none of the others."""
        if self._finished is None:
            folder, older = self._run.files.responses, self._run.manifest.schema_version < CHAINED
            names = [name for name in self._run.manifest.tasks if name not in self._open]
            self._finished = {
                stored.key for name in names for stored in read_outcomes(folder, name, older=older)
            }
        return self._finished

    def _task(self, name: str) -> Task | MedtasksError:
        if name not in self._run.registry.tasks:
            return MedtasksError("no such task here", where=name, remedy="score it where it was written")
        if name not in self._tasks:
            try:
                self._tasks[name] = build_task(self._run.registry, name, self._run.settings_of(name))
            except MedtasksError as error:
                self._tasks[name] = error
        return self._tasks[name]

    # ------------------------------------------------------------------ what follows

    def close(self) -> None:
        """Bring what was taken to the disk, and note where the tasks stand."""
        for task in self._open.values():
            task.log.close()
            state, _ = task.settle()
            if task.taken and task.asked:
                self._run.note(task.name, task.entry(state))
            if task.log.answered.issuperset(task.documents):  # nothing more can come for a former choice
                remove(self._run.files.earlier_file(task.name))
        self._run.save()

    def score(self, report: Callable[[str, str], None]) -> None:
        """Score the tasks whose answers are all there."""
        for name, task in self._open.items():
            if not task.asked or task.settle()[0] is not TaskState.ANSWERED:
                continue
            built = self._task(name)
            if isinstance(built, MedtasksError):
                entry = failed(built)
            else:
                with public_rows(loaded_record(built)["origin"] != "local"):
                    entry = self._run.finish_task(built)
            self._tasks.pop(name, None)  # its documents are not needed any more
            self._run.note_result(name, entry, report)

    @property
    def beyond(self) -> int:
        """Answers that were stored to documents which are not chosen now."""
        return sum(task.beyond for task in self._open.values())

    @property
    def left(self) -> Left:
        """What is missing now."""
        left = Left()
        for task in self._open.values():
            _, missing = task.settle()
            left.without_result += missing
            for (_, reason), n in task.faults.items():
                left.faults[reason] += n
        return left
