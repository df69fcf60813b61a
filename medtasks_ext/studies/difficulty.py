"""Difficulty levels from the runs of a panel of calibration models (MLB, section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.blocks import LEVELS
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import Manifest, TaskState
from medtasks_ext.runs.records import read_samples
from medtasks_ext.stats.statistic import Statistic, counts_of, question_of
from medtasks_ext.studies.said import study

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.runs.records import TaskRecord


def level_of(values: Sequence[float], *, judged: bool) -> tuple[str, float]:
    """Level and value of a question that the panel's models answer with these scores, 0-1.

    Right or wrong: all right is easy (the paper's panel has five models), all but one medium, fewer hard.
    Judged: by the mean, rounded, since sums of floats miss 0.7 by 1e-16.
    """
    rule = study("difficulty")
    if judged:
        value, (low, high) = round(math.fsum(values) / len(values), 9), rule["medium"]
        return "easy" if value > high else "hard" if value < low else "medium", value
    right = sum(value > rule["right_above"] for value in values)
    return {len(values): "easy", len(values) - 1: "medium"}.get(right, "hard"), right


class _Finished(NamedTuple):
    folder: Path
    model: str
    tasks: Mapping[str, TaskRecord]


def _finished(folder: Path) -> _Finished:
    manifest, results = Manifest.read(folder), RunFolder(folder).read_tasks()
    done = {name for name, entry in manifest.tasks.items() if entry.state is TaskState.DONE}
    found = {name: record for name, record in results.items() if name in done}
    return _Finished(folder, manifest.identity.model_name, found)


def grade(folders: Sequence[Path], registry: Registry, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The levels of tasks' questions by the runs of a panel, one a model: as files hold them."""
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise MedtasksError("a panel is at least two runs, each named once", remedy="name one run a model")
    runs = [_finished(folder) for folder in folders]
    names = tasks or list(dict.fromkeys(name for run in runs for name in run.tasks))
    return [_graded(name, runs, registry) for name in names]


def _graded(name: str, runs: Sequence[_Finished], registry: Registry) -> dict[str, Any]:
    (dataset, strategy), fault = registry.tasks[name], ""
    for run in runs:
        task = run.tasks.get(name)
        if task is None or task["n"] < task["loaded"]["n_test"]:
            fault = f"{name} is not finished, or was asked in part"
        elif task["loaded"]["rows_hash"] != runs[0].tasks[name]["loaded"]["rows_hash"]:
            fault = f"{name} was run on other documents than in {runs[0].folder}"
        if fault:
            remedy = "run all models on the same rows and prompts to the end, or name other tasks (--tasks)"
            raise MedtasksError(fault, where=run.folder, remedy=remedy)
    statistic = score_statistic(dataset, strategy)
    is_f1 = statistic.name == "micro_f1"
    method = "judged" if dataset.blocks.get("judge") else "micro_f1" if is_f1 else "right_or_wrong"
    by_run = [_scored(run, name, statistic, method) for run in runs]
    questions = []
    for question, (places, _, department) in by_run[0].items():
        level, value = level_of([scores[question][1] for scores in by_run], judged=method == "judged")
        of = {"id": question, "documents": places, "department": department}
        questions.append({**of, "level": level, "value": value})
    loaded = runs[0].tasks[name]["loaded"]
    # rows that are held out as shots are missing among the documents; where the source has a pool, none are
    pooled = loaded["n_fewshot"] > 0
    own = (item for item in dataset.strategies if pooled or item != "five_shot" or item == strategy)
    return {
        "task": name,
        "method": method,
        "panel": [{"run": str(run.folder), "model": run.model} for run in runs],
        "rows_hash": loaded["rows_hash"],
        "origin": loaded["origin"],
        "same_documents": [name] if loaded["n_held_out"] else [dataset.task(item) for item in own],
        "questions": questions,
        "counts": {level: sum(row["level"] == level for row in questions) for level in LEVELS},
    }


def _scored(
    run: _Finished, task: str, statistic: Statistic, method: str
) -> dict[str, tuple[list[int], float, Any]]:
    """Question -> places of its documents, their score on 0-1, departments that they carry."""
    folder, units = RunFolder(run.folder), dict[Any, tuple[str, list[int], Any]]()
    samples = sorted(read_samples(folder.samples_file(task)), key=lambda sample: sample["doc_id"])
    for sample in samples:
        document = sample["doc"]
        name = document.get("item") or document_key(document)
        unit = units.setdefault(question_of(sample), (name, [], list(document.get("department", []))))
        unit[1].append(sample["doc_id"])
    if method == "judged":
        path = folder.judged_file(task)
        documents = read_json(path)["documents"] if path.is_file() else []
        scores = {str(item["document"]): item["score"] for item in documents if item["complete"]}
        if missing := [name for name, _, _ in units.values() if scores.get(name) is None]:
            what = f"{len(missing)} of {len(units)} answers of {task} are not judged (first: {missing[0]})"
            remedy = f"medtasks judge {folder.path} --jury NAME"
            raise MedtasksError(what, where=folder.path, remedy=remedy)
        values = [float(scores[name]) for name, _, _ in units.values()]
    else:
        found, values = counts_of(samples, {"score": statistic}, question_of), []
        if found and all("score" in sample for sample in samples):
            matrix = getattr(found[0].matrix, "toarray", lambda: found[0].matrix)()
            values = [float(value) for value in statistic.value(matrix)]
            if method == "micro_f1":  # nothing to find and nothing found: no F1, and nothing wrong
                rows = zip(matrix, samples, values, strict=True)
                values = [1.0 if one["valid"] and not row.any() else value for row, one, value in rows]
        if not values or (method != "micro_f1" and not set(values) <= {0.0, 1.0}):
            what = f"{task}: no score of a document, or one that is neither right or wrong nor micro F1"
            raise MedtasksError(what, where=folder.path, remedy="name other tasks (--tasks)")
    named = zip(units.values(), values, strict=True)
    return {name: (places, value, department) for (name, places, department), value in named}


def read_levels(path: Path) -> dict[str, Any]:
    """What `medtasks study difficulty` wrote."""
    content = read_json(path) if path.is_file() else None
    if isinstance(content, dict) and content.get("questions"):
        return content
    remedy = "`medtasks study difficulty RUN...` writes them"
    raise MedtasksError("is no file of difficulty levels", where=path, remedy=remedy)
