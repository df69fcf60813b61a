"""Difficulty levels from the runs of a panel of calibration models (MLB, section 3.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.functions import function_named
from medtasks_ext.registry.row_labels import LEVELS
from medtasks_ext.results.run_files import RunResults, read_run
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.stats.counts import counts_of, question_of, statistic_of
from medtasks_ext.stats.statistic import mean

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry

#: A response counts as right where its micro F1 is above this.
RIGHT_ABOVE = 0.8
#: Mean judged score: easy above the second, hard below the first.
MEDIUM = (0.6, 0.7)
PAPERS_PANEL = 5
SCHEMA = 1
_REMEDY = "run all panel models on the same rows and prompts to the end, or name other tasks (--tasks)"


def level_of(values: Sequence[float], *, judged: bool) -> tuple[str, float]:
    """Level and value of a question that the panel's models answer with these scores, 0-1.

    Right or wrong: 5 of 5 right is easy, 4 medium, fewer hard; of another panel all, all but one, fewer.
    Judged: by the mean, rounded, since sums of floats miss 0.7 by 1e-16.
    """
    if judged:
        value = round(math.fsum(values) / len(values), 9)
        return "easy" if value > MEDIUM[1] else "hard" if value < MEDIUM[0] else "medium", value
    right = sum(value > RIGHT_ABOVE for value in values)
    return {len(values): "easy", len(values) - 1: "medium"}.get(right, "hard"), right


def grade(folders: Sequence[Path], registry: Registry, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The levels of tasks' questions by the runs of a panel, one a model: as files hold them.

    Raises:
        MedtasksError: fewer than two runs, a run that lacks a task, documents or judged scores, runs on
            different rows, or a task whose score has no meaning for a single document.
    """
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise MedtasksError("a panel is at least two runs, each named once", remedy="name one run a model")
    runs = [read_run(folder) for folder in folders]
    names = tasks or list(dict.fromkeys(name for run in runs for name in run.tasks))
    return [_graded(name, runs, registry) for name in names]


def _graded(name: str, runs: Sequence[RunResults], registry: Registry) -> dict[str, Any]:
    dataset, strategy = registry.tasks[name]
    for run in runs:
        task = run.tasks.get(name)
        if task is None or task["n"] < task["loaded"]["n_test"]:
            raise MedtasksError(
                f"{name} is not finished, or was asked in part", where=run.folder, remedy=_REMEDY
            )
        if task["loaded"]["rows_hash"] != runs[0].tasks[name]["loaded"]["rows_hash"]:
            raise MedtasksError(
                f"{name} was run on other documents than in {runs[0].folder}",
                where=run.folder,
                remedy=_REMEDY,
            )
    judged = bool(dataset.blocks.get("judge"))
    by_run = [_judged(run, name) if judged else _scored(run, name, dataset) for run in runs]
    questions = []
    for question, (places, _, department) in by_run[0].items():
        level, value = level_of([scores[question][1] for scores in by_run], judged=judged)
        row = {"id": question, "documents": places, "level": level, "value": value}
        questions.append({**row, "department": department})
    loaded = runs[0].tasks[name]["loaded"]
    # rows that are held out as shots are missing among the documents; where the source has a pool, none are
    pooled = loaded["n_fewshot"] > 0
    own = (item for item in dataset.strategies if pooled or item != "five_shot" or item == strategy)
    alike = [dataset.task(item) for item in own]
    return {
        "schema": SCHEMA,
        "task": name,
        "method": "judged" if judged else _method(dataset),
        "panel": [{"run": str(run.folder), "model": run.model} for run in runs],
        "rows_hash": loaded["rows_hash"],
        "origin": loaded["origin"],
        "same_documents": [name] if loaded["n_held_out"] else alike,
        "questions": questions,
        "counts": Counter(dict.fromkeys(LEVELS, 0)) + Counter(row["level"] for row in questions),
    }


def _aggregation(dataset: Dataset) -> Any:
    entry: Mapping[str, Any] = next((item for item in dataset.metric_list if item["metric"] == "score"), {})
    named = str(entry.get("aggregation", "mean"))
    return mean if named == "mean" else function_named(named, where=dataset.file)


def _method(dataset: Dataset) -> str:
    statistic = statistic_of(_aggregation(dataset))
    return "micro_f1" if statistic is not None and statistic.name == "micro_f1" else "right_or_wrong"


#: question -> (places of its documents, its score on 0-1, its departments where documents carry them)
_Scores = dict[str, tuple[list[int], float, list[str]]]


def _samples(run: RunResults, task: str) -> tuple[list[Any], dict[Any, tuple[str, list[int], list[str]]]]:
    """Samples in order, and question -> its name, places and departments, as `counts_of` has its units."""
    samples = sorted(RunFolder(run.folder).read_samples(task), key=lambda sample: sample["doc_id"])
    units: dict[Any, tuple[str, list[int], list[str]]] = {}
    for sample in samples:
        document = sample["doc"]
        name = document.get("item") or document_key(document)
        unit = units.setdefault(question_of(sample), (name, [], list(document.get("department", []))))
        unit[1].append(sample["doc_id"])
    return samples, units


def _scored(run: RunResults, task: str, dataset: Dataset) -> _Scores:
    """Each question scored by the task's own metric, on its documents alone."""
    samples, units = _samples(run, task)
    found = counts_of(samples, {"score": _aggregation(dataset)}, question_of)
    values: list[float] = []
    if found and all("score" in sample for sample in samples):
        matrix = found[0].matrix if isinstance(found[0].matrix, np.ndarray) else found[0].matrix.toarray()
        values = [float(value) for value in found[0].statistics["score"].value(matrix)]
        if _method(dataset) == "micro_f1":  # nothing to find and nothing found: no F1, and nothing wrong
            valid = [bool(sample["valid"]) for sample in samples]
            rows = zip(matrix, valid, values, strict=True)
            values = [1.0 if answered and not row.any() else value for row, answered, value in rows]
        elif not set(values) <= {0.0, 1.0}:
            values = []
    if not values:
        raise MedtasksError(
            f"{task}: documents without a score, or with one that is neither right or wrong nor micro F1",
            where=run.folder,
            remedy="name other tasks (--tasks)",
        )
    named = zip(units.values(), values, strict=True)
    return {name: (places, value, department) for (name, places, department), value in named}


def _judged(run: RunResults, task: str) -> _Scores:
    path = RunFolder(run.folder).judged_file(task)
    documents = read_json(path)["documents"] if path.is_file() else []
    scores = {str(item["document"]): item["score"] for item in documents if item["complete"]}
    units = _samples(run, task)[1].values()
    if missing := [name for name, _, _ in units if scores.get(name) is None]:
        raise MedtasksError(
            f"{len(missing)} of {len(units)} answers of {task} are not judged (first: {missing[0]})",
            where=run.folder,
            remedy=f"medtasks judge run {run.folder} --jury NAME",
        )
    return {name: (places, float(scores[name]), department) for name, places, department in units}


def read_levels(path: Path) -> dict[str, Any]:
    """Read a file of `medtasks study difficulty`.

    Raises:
        MedtasksError: it is missing, damaged or something else.
    """
    content = read_json(path) if path.is_file() else None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not content.get("questions"):
        raise MedtasksError(
            "is no file of difficulty levels",
            where=path,
            remedy="`medtasks study difficulty RUN...` writes them",
        )
    return content


def write_levels(folder: Path, levels: Mapping[str, Any]) -> Path:
    """Write `FOLDER/TASK.json`."""
    path = folder / f"{levels['task']}.json"
    write_json(path, levels)
    return path
