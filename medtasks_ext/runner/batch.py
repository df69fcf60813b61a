"""A run's requests as a batch file, and the results taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file
from medtasks_ext.engines.batch import BatchEngine, results_in
from medtasks_ext.engines.completion import Reader, chat_answer, text_answer
from medtasks_ext.engines.payload import after_thinking, payload, prepared, reader_of
from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.privacy import public_rows
from medtasks_ext.runner.evaluate import Settings, build_task
from medtasks_ext.runner.requests import read_prompts
from medtasks_ext.runner.run import Run, failed, loaded_record
from medtasks_ext.runner.stream import RunPlanner
from medtasks_ext.runner.tally import Tally
from medtasks_ext.runner.work import Work
from medtasks_ext.runs.manifest import Batch, TaskState

if TYPE_CHECKING:
    from lm_eval.api.task import Task
    from lm_eval.models.api_models import TemplateAPI

_URLS: Mapping[Reader, str] = {chat_answer: "/v1/chat/completions", text_answer: "/v1/completions"}


def interface_of(model: str) -> tuple[str, Reader]:
    """Address of each request to a type of model in a batch, and what reads the reply.

    Raises:
        MedtasksError: it is not asked over OpenAI's interface.
    """
    import lm_eval.models  # noqa: F401  registers lm-eval's own models
    from lm_eval.api.registry import get_model

    try:
        read = reader_of(get_model(model))
    except (KeyError, ValueError, ImportError):
        read = None
    if read is None or read not in _URLS:
        raise MedtasksError(
            f"{model} is not asked in batches",
            where="--model",
            remedy="use local-chat-completions (for `vllm run-batch`, too), local-completions or "
            "openai-chat-completions",
        )
    return _URLS[read], read


def write_requests(
    run: Run, lm: TemplateAPI, tasks: Mapping[str, Task], settings: Settings, file: Path
) -> tuple[int, Tally]:
    """Write the requests of all documents that have no answer yet; what cannot be put is counted.

    Args:
        run: its folder, open, its lease held.
        tasks: built, those that are not done.

    Raises:
        MedtasksError: the model is not asked in batches, or the disk takes no more.
    """
    url, _ = interface_of(run.manifest.identity.model["model"])
    tally = Tally({name: len(run.places(task)) for name, task in tasks.items()})
    with atomic_file(file) as lines:
        engine = BatchEngine(lines, url, partial(payload, lm), partial(prepared, lm))
        RunPlanner(run, lm, engine, tasks, settings, tally, instant=True).go()
        if engine.written:  # noted before the file is there, so that the folder keeps its settings
            run.manifest.batches.append(Batch(file=str(file), requests=engine.written))
            run.save()
    return engine.written, tally


class _Open(Work):
    """A task that waits for results."""

    def __init__(self, run: Run, name: str) -> None:
        super().__init__(name, run.outcomes(name))
        self.documents = {item.key: item.document for item in read_prompts(run.files, name)}
        self.log.load()

    def settle(self) -> TaskState:
        """The state that the outcomes make."""
        left = [key for key in self.documents if key not in self.log.answered]
        last = self.log.last
        self.faults = Counter((last[key].kind, last[key].reason) for key in left if key in last)
        if len(left) > sum(self.faults.values()):
            return TaskState.WAITING
        return TaskState.INCOMPLETE if left else TaskState.ANSWERED


def take_results(run: Run, paths: Iterable[Path], say: Callable[[str], None]) -> bool:
    """Store the results in files, each once, and score the tasks whose answers are all there.

    Args:
        run: its folder, loaded, its lease held.

    Returns:
        Whether every line was a result of this run.

    Raises:
        MedtasksError: the run's model is not asked in batches, or a file is missing or damaged.
    """
    model = run.manifest.identity.model
    _, read = interface_of(model["model"])
    thinking = model["model_args"].get("think_end_token") if read is chat_answer else None
    waiting = {name: _Open(run, name) for name in run.manifest.tasks if run.files.asked_file(name).is_file()}
    of = {key: task for task in waiting.values() for key in task.documents}
    sound = True
    try:
        for path in paths:
            new, there, unknown, broken = 0, 0, list[str](), list[str]()
            for item in results_in(path, read):
                if isinstance(item, str):
                    broken.append(item)
                    continue
                key, outcome = item
                if (task := of.get(key)) is None:
                    unknown.append(key)
                elif key in task.log.answered or task.log.last.get(key) == outcome:
                    there += 1
                else:
                    if isinstance(outcome, Answer):
                        outcome = replace(outcome, text=after_thinking(outcome.text, thinking))
                        task.generated += 1
                    # an intent of `run` that nobody settled may have been charged
                    sent = 0.0 if key in task.log.unsettled else None
                    task.log.add(key, task.documents[key], outcome, settles=sent)
                    new += 1
            say(f"{path}: {new:,} new results, {there:,} stored before")
            for what, lines in (("results of other requests", unknown), ("lines without a result", broken)):
                if lines:
                    sound = False
                    say(f"✗ {path}: {len(lines):,} {what}: {some(lines)}")
    finally:
        for task in waiting.values():
            task.log.close()
            run.note(task.name, task.entry(task.settle()))
        run.save()
    for name, task in waiting.items():
        if task.settle() is TaskState.ANSWERED:
            _score(run, name, say)
    return sound


def _score(run: Run, name: str, say: Callable[[str], None]) -> None:
    try:
        built = build_task(run.registry, name, run.settings_of(name))
    except MedtasksError as error:
        entry = failed(error)
    else:
        with public_rows(loaded_record(built)["origin"] != "local"):
            entry = run.finish_task(built)
    run.note_result(name, entry, lambda task, what: say(f"{task}: {what}"))
