"""Difficulty levels from the runs of a panel of calibration models (MLB, section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import Dataset, Registry
from medtasks_ext.registry.functions import function_named
from medtasks_ext.registry.row_labels import LEVELS, Level
from medtasks_ext.results.run_files import RunResults, read_run
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.samples import RESCORE
from medtasks_ext.stats.counts import counts_of, question_of, statistic_of

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.runs.records import Sample

Method = Literal["right_or_wrong", "micro_f1", "judged"]
#: A response counts as right where its micro F1 is above this.
RIGHT_ABOVE = 0.8
#: Mean judged score: easy above the second, hard below the first.
MEDIUM = (0.6, 0.7)
SMALLEST_PANEL, PAPERS_PANEL = 2, 5
SCHEMA = 1
#: Means of scores such as 0.7 are compared after rounding, since sums of floats miss them by 1e-16.
_DIGITS = 9


@dataclass(frozen=True)
class Graded:
    """One question with its level."""

    id: str  # of the question
    #: places of its documents among the task's, from 0; several where it is asked several times
    documents: list[int]
    level: Level  # hard, medium or easy
    value: float  # panel models that are right, or the panel's mean score on 0-1
    department: list[str]  # secondary departments, where the documents carry them


@dataclass(frozen=True)
class Grading:
    """The levels of a task's questions."""

    task: str  # whose documents were graded
    method: Method  # how a model's response became right or wrong, or that judges scored it
    panel: list[dict[str, str]]  # folder and model of each run
    rows_hash: str  # identifies the documents
    origin: str  # of the rows; `sample` means synthetic
    same_documents: list[str]  # tasks with the same documents in the same order (other strategies)
    questions: list[Graded]  # in the order of the documents

    def counts(self) -> dict[Level, int]:
        """Level -> number of questions."""
        return {level: sum(item.level == level for item in self.questions) for level in LEVELS}


def level_by_votes(right: int, panel: int) -> Level:
    """The level of a question that `right` of `panel` models answer right.

    With the paper's five models: 5 easy, 4 medium, 3 or fewer hard. Panels of another size keep the rule
    in words: all, all but one, fewer.
    """
    return "easy" if right == panel else "medium" if right == panel - 1 else "hard"


def level_by_score(mean: float) -> Level:
    """The level of a question whose answers score `mean` (0-1) over the panel: 0.6 and 0.7 are medium."""
    mean = round(mean, _DIGITS)
    return "easy" if mean > MEDIUM[1] else "hard" if mean < MEDIUM[0] else "medium"


def grade(folders: Sequence[Path], registry: Registry, tasks: Sequence[str] | None = None) -> list[Grading]:
    """Grade the questions of tasks by the runs of a panel.

    Args:
        folders: run folders, one per model.
        tasks: names; by default every task that any of the runs has finished.

    Raises:
        MedtasksError: fewer than two runs, a run that lacks a task, documents or judged scores, runs on
            different rows, or a task whose score has no meaning for a single document.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise MedtasksError("a run is named twice", where="RUN...", remedy="name each panel model's run once")
    if len(folders) < SMALLEST_PANEL:
        raise MedtasksError(
            f"{len(folders)} run is no panel",
            where="RUN...",
            remedy=f"name the runs of at least {SMALLEST_PANEL} models; the paper has {PAPERS_PANEL}",
        )
    runs = [read_run(folder) for folder in folders]
    names = list(tasks or dict.fromkeys(name for run in runs for name in run.tasks))
    if not names:
        raise MedtasksError("no finished task", where=folders[0], remedy="`medtasks run` continues a run")
    return [_grade_task(name, runs, registry) for name in names]


def _grade_task(name: str, runs: Sequence[RunResults], registry: Registry) -> Grading:
    dataset, _ = registry.tasks[name]
    first = _check_alike(name, runs)
    method = _method(dataset)
    read = _judged_scores if method == "judged" else _own_scores
    by_run = [read(run, name, dataset, method) for run in runs]
    departments = _departments(runs[0], name)
    questions = []
    for unit, (documents, _) in by_run[0].items():
        values = [scores[unit][1] for scores in by_run]
        value: float
        if method == "judged":
            value = round(math.fsum(values) / len(values), _DIGITS)
            level = level_by_score(value)
        else:
            value = sum(value > RIGHT_ABOVE for value in values)
            level = level_by_votes(value, len(runs))
        questions.append(Graded(unit, documents, level, value, departments[documents[0]]))
    return Grading(
        task=name,
        method=method,
        panel=[{"run": str(run.folder), "model": run.model} for run in runs],
        rows_hash=first["rows_hash"],
        origin=first["origin"],
        same_documents=_same_documents(name, first, registry),
        questions=questions,
    )


# ---------------------------------------------------------------------- what the runs say


def _check_alike(task: str, runs: Sequence[RunResults]) -> LoadedRecord:
    """What the runs loaded for a task, after making sure that it is the same and complete."""
    for run in runs:
        if task not in run.tasks:
            raise MedtasksError(
                f"{task} is not finished in this run",
                where=run.folder,
                remedy="run it with every panel model, or name the tasks that all have (--tasks)",
            )
        loaded, n = run.tasks[task]["loaded"], run.tasks[task]["n"]
        if n < loaded["n_test"]:
            raise MedtasksError(
                f"{task} has {n} of {loaded['n_test']} documents in this run",
                where=run.folder,
                remedy="run the whole task with this model, without --limit and --samples",
            )
    first = runs[0].tasks[task]["loaded"]
    for run in runs[1:]:
        loaded = run.tasks[task]["loaded"]
        if loaded["rows_hash"] != first["rows_hash"]:
            raise MedtasksError(
                f"{task} was run on other documents than in {runs[0].folder} "
                f"(rows {loaded['rows_hash']}, there {first['rows_hash']})",
                where=run.folder,
                remedy="run all panel models on the same data, prompts and shots",
            )
    return first


def _same_documents(name: str, loaded: LoadedRecord, registry: Registry) -> list[str]:
    """Strategies with the same documents in the same order.

    Rows that are held out as shots are missing among the documents. Where the source has a pool, none are.
    """
    dataset, strategy = registry.tasks[name]
    if loaded["n_held_out"]:
        return [name]
    pooled = loaded["n_fewshot"] > 0
    own = dataset.strategies
    return [dataset.task(item) for item in own if pooled or item != "five_shot" or item == strategy]


def _score_entry(dataset: Dataset) -> Mapping[str, Any]:
    return next((item for item in dataset.metric_list if item["metric"] == "score"), {})


def _method(dataset: Dataset) -> Method:
    if dataset.blocks.get("judge"):
        return "judged"
    statistic = statistic_of(_aggregation(dataset))
    return "micro_f1" if statistic is not None and statistic.name == "micro_f1" else "right_or_wrong"


def _aggregation(dataset: Dataset) -> Any:
    named = str(_score_entry(dataset).get("aggregation", "mean"))
    if named == "mean":
        from medtasks_ext.stats.statistic import mean

        return mean
    return function_named(named, where=dataset.file)


#: question -> (places of its documents, its score on 0-1)
Scores = dict[str, tuple[list[int], float]]


def _own_scores(run: RunResults, task: str, dataset: Dataset, method: Method) -> Scores:
    """Each question scored by the task's own metric, on its documents alone."""
    samples = _samples(run, task)
    places = _places(samples)
    if len([sample for sample in samples if "score" in sample]) < len(samples):
        raise MedtasksError(
            f"{task} has documents without a score",
            where=run.folder,
            remedy="difficulty needs the gold answers of all documents",
        )
    counts_found = counts_of(samples, {"score": _aggregation(dataset)}, question_of)
    if not counts_found:
        raise _undefined(task, dataset)
    [counts] = counts_found
    matrix = counts.matrix if isinstance(counts.matrix, np.ndarray) else counts.matrix.toarray()
    values = [float(value) for value in counts.statistics["score"].value(matrix)]
    if method == "micro_f1":
        # nothing to find and nothing found: no F1, and nothing wrong
        answered = [bool(sample["valid"]) for sample in samples]
        values = [
            1.0 if valid and not row.any() else value
            for row, valid, value in zip(matrix, answered, values, strict=True)
        ]
    elif not set(values) <= {0.0, 1.0}:
        raise _undefined(task, dataset)
    return {unit: (places[unit], value) for unit, value in zip(places, values, strict=True)}


def _undefined(task: str, dataset: Dataset) -> MedtasksError:
    return MedtasksError(
        f"{task}: the score of a document is neither right or wrong, micro F1, nor given by judges",
        where=dataset.file,
        remedy="difficulty is defined for these three; name other tasks (--tasks)",
    )


def _judged_scores(run: RunResults, task: str, dataset: Dataset, method: Method) -> Scores:
    """Each answer's score as judges gave it."""
    path = RunFolder(run.folder).judged_file(task)
    remedy = f"medtasks judge run {run.folder} --jury NAME"
    if not path.is_file():
        raise MedtasksError(f"the answers of {task} are not judged", where=run.folder, remedy=remedy)
    scores = {
        str(item["document"]): item["score"] for item in read_json(path)["documents"] if item["complete"]
    }
    samples = _samples(run, task)
    places = _places(samples)
    missing = [unit for unit in places if scores.get(unit) is None]
    if missing:
        raise MedtasksError(
            f"{len(missing)} of {len(places)} answers of {task} are not judged to the end "
            f"(first: {missing[0]})",
            where=run.folder,
            remedy=remedy,
        )
    return {unit: (places[unit], float(scores[unit])) for unit in places}


def _samples(run: RunResults, task: str) -> list[Sample]:
    files = RunFolder(run.folder)
    samples = sorted(files.read_samples(task), key=lambda sample: sample["doc_id"])
    n = run.tasks[task]["n"]
    if [sample["doc_id"] for sample in samples] != list(range(n)):
        raise MedtasksError(
            f"does not hold the {n} documents of the task", where=files.samples_file(task), remedy=RESCORE
        )
    return samples


def _departments(run: RunResults, task: str) -> list[list[str]]:
    """The departments of each document, empty where it has none."""
    return [list(sample["doc"].get("department", [])) for sample in _samples(run, task)]


def _places(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Question -> places of its documents, in the order in which `counts_of` has its units."""
    by_unit: dict[Any, list[int]] = {}
    names: dict[Any, str] = {}
    for sample in samples:
        unit = question_of(sample)
        by_unit.setdefault(unit, []).append(sample["doc_id"])
        names.setdefault(unit, sample["doc"].get("item") or document_key(sample["doc"]))
    return {names[unit]: places for unit, places in by_unit.items()}


# ---------------------------------------------------------------------- the file


def write_grading(folder: Path, grading: Grading) -> Path:
    """Write `FOLDER/TASK.json`."""
    path = folder / f"{grading.task}.json"
    write_json(path, {"schema": SCHEMA, **asdict(grading), "counts": grading.counts()})
    return path


def read_grading(path: Path) -> Grading:
    """Read a file of `medtasks study difficulty`.

    Raises:
        MedtasksError: it is missing, damaged or something else.
    """
    if not path.is_file():
        raise MedtasksError(
            "no such file", where=path, remedy="`medtasks study difficulty RUN...` writes one per task"
        )
    content = read_json(path)
    try:
        if content.pop("schema") != SCHEMA:
            raise ValueError
        del content["counts"]
        questions = [Graded(**item) for item in content.pop("questions")]
        if any(item.level not in LEVELS for item in questions) or not questions:
            raise ValueError
        return Grading(**content, questions=questions)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MedtasksError(
            "is no file of difficulty levels",
            where=path,
            remedy="`medtasks study difficulty RUN...` writes them",
        ) from None
