"""Difficulty levels from the runs of a panel of models, and stratified samples with a mix of them
(MLB, sections 3.4 and 3.5).

The paper samples in steps: a preliminary set by coverage, the gap between its mix and the target, extra draws
for what is under-represented, and swaps until the mix fits. Here they are one whole-number programme: the mix
comes first, then the strata's shares of the pool, then as few swaps as possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.process import SEED, random_rank
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry.blocks import LEVELS
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.runs.records import read_samples
from medtasks_ext.stats.statistic import Statistic, counts_of, question_of
from medtasks_ext.studies.labels import DEPARTMENT
from medtasks_ext.studies.said import finished, study

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.run import Run


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


def grade(folders: Sequence[Path], registry: Registry, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The levels of tasks' questions by the runs of a panel, one a model: as files hold them."""
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise MedtasksError("a panel is at least two runs, each named once", remedy="name one run a model")
    runs = finished(folders, registry, tasks)
    return [_graded(name, runs, registry) for name in tasks or runs[0].results()]


def _graded(name: str, runs: Sequence[Run], registry: Registry) -> dict[str, Any]:
    (dataset, strategy), loaded = registry.tasks[name], runs[0].results()[name]["loaded"]
    for run in runs:
        task = run.results()[name]
        fault = f"{name} was asked in part" if task["n"] < task["loaded"]["n_test"] else ""
        if (task["config"].get("repeats") or 1) > 1:
            fault = f"{name} was asked several times"
        elif task["loaded"]["rows_hash"] != loaded["rows_hash"]:
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
    # rows that are held out as shots are missing among the documents; where the source has a pool, none are
    pooled = loaded["n_fewshot"] > 0
    own = (item for item in dataset.strategies if pooled or item != "five_shot" or item == strategy)
    return {
        "task": name,
        "method": method,
        "panel": [{"run": str(run.folder), "model": run.manifest.identity.model_name} for run in runs],
        "rows_hash": loaded["rows_hash"],
        "origin": loaded["origin"],
        "same_documents": [name] if loaded["n_held_out"] else [dataset.task(item) for item in own],
        "questions": questions,
        "counts": {level: sum(row["level"] == level for row in questions) for level in LEVELS},
    }


def _scored(
    run: Run, task: str, statistic: Statistic, method: str
) -> dict[str, tuple[list[int], float, Any]]:
    """Question -> places of its documents, their score on 0-1, departments that they carry."""
    folder, units = run.files, dict[Any, tuple[str, list[int], Any]]()
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


#: Shares of hard, medium and easy.
RATIO: Sequence[int] = study("sample")["ratio"]


def apportioned(n: int, weights: Sequence[int]) -> list[int]:
    """n split in proportion to weights by the largest remainder; equal remainders go in their order."""
    shares = [Fraction(n * weight) / sum(weights) for weight in weights]
    parts = [int(share) for share in shares]
    most = sorted(range(len(parts)), key=lambda place: parts[place] - shares[place])
    for place in most[: n - sum(parts)]:
        parts[place] += 1
    return parts


def feasible(n: int, pool: Sequence[int]) -> list[int]:
    """Numbers of each level that come closest to the ratio; one that is short gives all that it has."""
    fixed: dict[int, int] = {}
    while True:
        weights = [0 if place in fixed else weight for place, weight in enumerate(RATIO)]
        parts = apportioned(n - sum(fixed.values()), weights)
        if not (short := {place: pool[place] for place, part in enumerate(parts) if part > pool[place]}):
            return [fixed.get(place, part) for place, part in enumerate(parts)]
        fixed |= short


def draw(
    levels: Mapping[str, str], strata: Mapping[str, str] | None, size: int
) -> tuple[set[str], list[dict[str, Any]]]:
    """Questions that are drawn of those with a level, a stratum; figures of each level and stratum."""
    from scipy.optimize import LinearConstraint, milp

    of_one = strata or dict.fromkeys(levels, "")
    names = sorted({of_one[name] for name in levels})
    order = sorted(levels, key=lambda name: random_rank(SEED, name))
    places = {name: (names.index(of_one[name]), LEVELS.index(levels[name])) for name in order}
    pool = np.zeros((len(names), len(LEVELS)), dtype=int)
    np.add.at(pool, tuple(zip(*places.values(), strict=True)), 1)
    if size > len(levels):
        what = f"{size} questions cannot be drawn: the pool has {len(levels)}"
        raise MedtasksError(what, where="--size", remedy="ask for fewer")
    coverage, first = apportioned(size, pool.sum(axis=1).tolist()), np.zeros_like(pool)
    for stratum, level in places.values():
        first[stratum, level] += first[stratum].sum() < coverage[stratum]
    # unknowns: what stays of the preliminary set, what is added, what strata have above their share
    s, k = pool.shape
    of_level, of_stratum = np.kron(np.ones(s), np.eye(k)), np.kron(np.eye(s), np.ones(k))
    sums = np.block([[of_level, of_level, np.zeros((k, s))], [of_stratum, of_stratum, -np.eye(s)]])
    wanted = feasible(size, pool.sum(axis=0).tolist())
    limits = LinearConstraint(sums, [*wanted, *[-np.inf] * s], [*wanted, *coverage])
    cost = np.repeat([-1.0, 0.0, size + 1.0], [s * k, s * k, s])  # coverage outweighs all swaps
    bounds = (0, np.concatenate([first.ravel(), (pool - first).ravel(), np.full(s, np.inf)]))
    solved = milp(cost, constraints=limits, integrality=np.ones_like(cost), bounds=bounds)
    drawn = np.rint(solved.x[: 2 * s * k]).astype(int).reshape(2, s, k).sum(axis=0)
    left, chosen = drawn.copy(), set[str]()
    for name, place in places.items():  # the first of each cell: swaps add what comes next in this order
        if left[place]:
            left[place] -= 1
            chosen.add(name)
    frame, sides = [], [("level", LEVELS, apportioned(size, RATIO)), (DEPARTMENT, names, coverage)]
    for axis, (of, named, aim) in enumerate(sides if strata else sides[:1]):
        figures = zip(named, pool.sum(axis).tolist(), aim, drawn.sum(axis).tolist(), strict=True)
        frame += [{"of": of, "name": a, "pool": b, "wanted": c, "drawn": d} for a, b, c, d in figures]
    return chosen, frame


def strata_of(levels: Mapping[str, Any], by: str) -> dict[str, str]:
    """Question -> its first department: of the rows (`department`), or of a file of `study departments`."""
    named = levels if by == DEPARTMENT else read_json(Path(by))
    try:
        found = {row["id"]: (row[DEPARTMENT] or ["(none)"])[0] for row in named["questions"]}
    except (KeyError, TypeError):
        found = {}
    missing = sum(row["id"] not in found for row in levels["questions"])
    if missing or set(found.values()) == {"(none)"}:
        what = f"{missing} of its questions have no row" if missing else "its rows name no departments"
        remedy = "name a file of `medtasks study departments`: --by FILE"
        raise MedtasksError(what, where=levels["task"], remedy=remedy)
    return found
