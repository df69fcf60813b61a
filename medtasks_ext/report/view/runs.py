"""The runs that are looked at: which tasks they hold, and where the answers to each lie.

Nothing of the answers is read here, so that a run of any size opens at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.report.privacy import is_open
from medtasks_ext.results.entries import runs_below
from medtasks_ext.results.experiments import Entry, Experiment, Fault, Kind
from medtasks_ext.results.reading import (
    asked_task,
    choice_of,
    lm_eval_files,
    lm_eval_manifest,
    read_lm_eval,
    run_folder,
    samples_file,
    task_of_lm_eval,
    task_of_run,
    unknown_tasks,
)
from medtasks_ext.results.result_frame import result_parts
from medtasks_ext.run import store
from medtasks_ext.run.lock import holder_of
from medtasks_ext.run.store import files_of
from medtasks_ext.runs.conditions import run_conditions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState
from medtasks_ext.runs.sums import RESTORE, state_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.registry.tasks import Dataset
    from medtasks_ext.results.document_scores import DocumentScores

#: States of tasks that have no end yet.
GOING_ON = (TaskState.WAITING, TaskState.ANSWERED)
#: Columns of the frame `results` that the viewer shows.
_FIGURES = ["value", "interval_low", "interval_high", "interval_rough", "valid", "n"]
#: What writes the samples of plain lm_eval.
LOG_SAMPLES = "run lm_eval again with --log_samples"


@dataclass(frozen=True)
class Answers:
    """The answers of one run to one task: where they lie, and what the run says of them."""

    run: int  # place of the run among those that are looked at
    task: str  # as the run names it
    dataset: Dataset
    strategy: str
    samples: Path  # lm-eval's records; there is no such file before a task is scored
    folder: Path | None  # of the run; None of plain lm_eval
    state: str  # of the task (`runs.manifest.TaskState`)
    sample: bool = False  # whether its rows are synthetic
    #: the task's row of the frame `results` with its score; None where it has no result yet
    result: Mapping[str, Any] | None = None
    #: gives the task's frame `documents`; None where nothing has stored it
    documents: Callable[[], DocumentScores] | None = None

    @property
    def scored(self) -> bool:
        return self.samples.is_file()

    @property
    def score(self) -> float | None:
        return self.result["value"] if self.result else None

    @property
    def is_open(self) -> bool:
        return is_open(self.dataset, sample=self.sample)


@dataclass
class Viewed:
    label: str  # the model, and the folder where two runs have one model
    place: str  # folder or file, as the user named it
    answers: list[Answers]
    going_on: bool = False  # whether a task of it is not finished
    manifest: Manifest | None = None  # None of plain lm_eval


def open_runs(paths: Iterable[Path], registry: Registry, faults: list[Fault]) -> list[Viewed]:
    """MedtasksError where a path holds no results, or no run has an answer that could be shown."""
    found: list[Viewed] = []
    for path in paths:
        if not (several := runs_below(path)):
            found += _runs_of(path, len(found), registry, faults)
        for folder in several:
            try:
                found += _runs_of(folder, len(found), registry, faults)
            except MedtasksError as error:  # where one of several cannot be read, the others are
                faults.append(Fault(str(folder), error.what, error.remedy))
    _label(found)
    if not any(run.answers or (run.going_on and holder_of(Path(run.place))) for run in found):
        reason = next((fault for fault in faults), None)
        raise MedtasksError(
            reason.what if reason else "no task has answers yet",
            where=some([run.place for run in found]),
            remedy=reason.remedy if reason else "look again when the run has begun",
        )
    return found


def _runs_of(path: Path, place: int, registry: Registry, faults: list[Fault]) -> list[Viewed]:
    if (run := run_folder(path)) is not None:
        return [_medtasks_run(run, place, registry, faults)]
    files = enumerate(lm_eval_files(path), start=place)
    return [_lm_eval_run(file, number, registry, faults) for number, file in files]


def _medtasks_run(folder: Path, place: int, registry: Registry, faults: list[Fault]) -> Viewed:
    files = RunFolder(folder)
    manifest = _manifest(folder, _stamp(files.manifest))
    going_on = any(entry.state in GOING_ON for entry in manifest.tasks.values())
    if (state := state_of(folder)).changed:
        faults.append(Fault(str(folder), state.mark, RESTORE, skipped=False))
    known = {name: entry for name, entry in manifest.tasks.items() if name in registry.tasks}
    if chosen := [name for name in manifest.tasks if name not in known and registry.asked(name)]:
        faults.append(_no_texts(chosen, str(folder)))
    if unknown := [name for name in manifest.tasks if registry.asked(name) is None]:
        faults.append(unknown_tasks(unknown, str(folder)))
    answers, experiments = [], {}
    for name, entry in known.items():
        result = None
        try:
            if entry.state is TaskState.DONE and (stamp := _stamp(files.task_file(name))):
                result, noted = _experiment(folder, name, stamp, registry)
                faults += noted
        except (MedtasksError, KeyError, TypeError, ValueError) as error:
            what = error.what if isinstance(error, MedtasksError) else f"damaged ({type(error).__name__})"
            faults.append(Fault(str(files.task_file(name)), what, "medtasks rescore RUN"))
            continue
        dataset, strategy = (result.dataset, result.strategy) if result else asked_task(registry, name, {})
        # before it is scored, its rows are synthetic only if the run asked for such
        sample = result.sample if result else manifest.identity.settings.get("data") == "sample"
        file = files.samples_file(name)
        item = Answers(place, name, dataset, strategy, file, folder, entry.state.value, sample)
        if result:
            experiments[name] = result
        if item.scored or item.state != TaskState.DONE:
            if item.scored or name in outcomes_in(folder).asked:
                answers.append(item)
        else:
            remedy = f"medtasks rescore {folder}"
            what = f"{item.samples.name} is missing: its answers are not shown"
            faults.append(Fault(str(folder), what, remedy))
    answers = _with_results(answers, "medtasks", experiments, registry)
    return Viewed(manifest.identity.model_name, str(folder), answers, going_on, manifest)


def outcomes_in(folder: Path) -> store.Answers:
    """What a run's folder holds by now."""
    found = _outcomes_in(folder, tuple(path.stat().st_ino for path in files_of(folder)))
    found.refresh()
    return found


@lru_cache(maxsize=8)
def _outcomes_in(folder: Path, files: tuple[int, ...]) -> store.Answers:
    return store.Answers(folder, write=False)


def _no_texts(tasks: list[str], where: str) -> Fault:
    what = f"{some(tasks)}: answers by likelihood are no texts, and not shown"
    return Fault(where, what, "medtasks report gives their scores", skipped=False)


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file is written anew; nothing where there is none."""
    try:
        state = path.stat()
    except OSError:
        return ()
    return state.st_mtime_ns, state.st_size, state.st_ino


@lru_cache(maxsize=64)
def _manifest(folder: Path, stamp: tuple[int, ...]) -> Manifest:
    return Manifest.read(folder)


@lru_cache(maxsize=4096)
def _experiment(
    folder: Path, name: str, stamp: tuple[int, ...], registry: Registry
) -> tuple[Experiment, list[Fault]]:
    files, faults = RunFolder(folder), list[Fault]()
    seen = _stamp(files.manifest)
    stored, entry = files.read_task(name), _manifest(folder, seen).tasks[name]
    return task_of_run(files, name, stored, entry, registry, faults), faults


def _with_results(
    answers: Sequence[Answers], kind: Kind, experiments: Mapping[str, Experiment], registry: Registry
) -> list[Answers]:
    entry = Entry(model="", label="", kind=kind, experiments=dict(experiments))
    rows = result_parts([entry], registry, metrics=("score",)).rows(_FIGURES)
    of_task = dict(zip(experiments, rows, strict=True))
    return [
        replace(item, result=of_task[item.task], documents=experiments[item.task].read_documents)
        if item.task in experiments
        else item
        for item in answers
    ]


def _lm_eval_run(file: Path, place: int, registry: Registry, faults: list[Fault]) -> Viewed:
    content, named = read_lm_eval(file, registry, faults)
    if chosen := [name for name in named if name not in registry.tasks]:
        faults.append(_no_texts(chosen, str(file)))
    known = [name for name in named if name in registry.tasks]
    bare = [name for name in known if not samples_file(file, name).is_file()]
    if bare:
        what = f"no answers of {len(bare)} of {len(known)} tasks were kept (first: {bare[0]})"
        faults.append(Fault(str(file), what, LOG_SAMPLES))
    recorded = lm_eval_manifest(content, known)
    shared = run_conditions(recorded)
    experiments = {
        # no samples: a file of any size opens at once
        name: task_of_lm_eval(file, name, content, shared, choice_of(recorded, name), registry, None, faults)
        for name in known
        if name not in bare
    }
    answers = [
        Answers(
            run=place,
            task=name,
            dataset=item.dataset,
            strategy=item.strategy,
            samples=samples_file(file, name),
            folder=None,
            state=TaskState.DONE.value,
            sample=item.sample,
        )
        for name, item in experiments.items()
    ]
    run = content.get("config") or {}
    model = str(content.get("model_name") or run.get("model") or file.parent.name)
    return Viewed(model, str(file), _with_results(answers, "lm_eval", experiments, registry))


def _label(runs: list[Viewed]) -> None:
    models = [run.label for run in runs]
    taken: dict[str, int] = {}
    for run in runs:
        if models.count(run.label) > 1:
            run.label = f"{run.label} ({Path(run.place).name})"
        taken[run.label] = taken.get(run.label, 0) + 1
        if taken[run.label] > 1:
            run.label = f"{run.label} #{taken[run.label]}"


def chosen_answers(runs: Iterable[Viewed], dataset: str) -> Iterator[Answers]:
    for run in runs:
        yield from (item for item in run.answers if item.dataset.id == dataset)
