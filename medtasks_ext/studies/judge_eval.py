"""A judge's decisions on scoring points against those of experts (MLB, section 4.4 and Table 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.judge.cases import Case as JudgedCase
from medtasks_ext.judge.cases import JudgedTask, point_rubric, shown_for_point
from medtasks_ext.stats.bootstrap import resample
from medtasks_ext.stats.intervals import intervals_of
from medtasks_ext.stats.statistic import Array, Counts, Statistic, as_they_are, by_unit, f1_scores, ratios
from medtasks_ext.studies.judge_data import Case, Decisions, question_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

TASK = "scoring_points"


def _kappa(sums: Array) -> Array:
    tp, fp, fn, tn = np.moveaxis(sums, -1, 0)
    n = tp + fp + fn + tn
    expected = ratios((tp + fn) * (tp + fp) + (fp + tn) * (fn + tn), n * n)
    return ratios(ratios(tp + tn, n) - expected, 1 - expected)


#: measure -> its value from sums of (tp, fp, fn, tn), (..., 4) -> (...); positive is a point that is met
OF_COUNTS = {
    "accuracy": lambda sums: ratios(sums[..., 0] + sums[..., 3], sums.sum(axis=-1)),
    "precision": lambda sums: ratios(sums[..., 0], sums[..., 0] + sums[..., 1]),
    "recall": lambda sums: ratios(sums[..., 0], sums[..., 0] + sums[..., 2]),
    "F1": lambda sums: f1_scores(sums[..., 0], sums[..., 1], sums[..., 2]),
    "kappa": _kappa,
}


def measured(
    rows: Sequence[Sequence[float]], units: Sequence[Any], measures: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """`{measure, value, low, high}` of sums over rows, with 95 % intervals: units resampled 1,000 times."""
    statistics = {name: Statistic(name, as_they_are, value) for name, value in measures.items()}
    counts = Counts(by_unit(as_they_are(rows), units), statistics)
    limits = intervals_of(counts, {name: item.values for name, item in resample([counts], TASK).items()})
    around = {name: limits[name].interval for name in limits}
    return [
        {
            "measure": name,
            "value": value,
            "low": around[name].low if name in around else None,
            "high": around[name].high if name in around else None,
        }
        for name, value in counts.values().items()
    ]


def evaluate(
    cases: Mapping[str, Case], expert: Decisions, judge: Decisions, name: str
) -> list[dict[str, Any]]:
    """How far a judge decides as experts do, on the points that both decided: a row for each measure.

    Whole questions are resampled, with all their points.
    """
    keys = sorted(key for key in expert if key in judge)
    rows = [
        (t and g, not t and g, t and not g, not t and not g)
        for t, g in ((expert[key], judge[key]) for key in keys)
    ]
    units = [question_of(cases[case]) for case, _ in keys]
    n = {"judge": name, "n": len(keys), "of": len(expert), "questions": len(set(units))}
    figures = measured(rows, units, OF_COUNTS) if rows else []
    tp, fp, fn, tn = np.sum(rows, axis=0) if rows else (0, 0, 0, 0)
    defined = {"precision": tp + fp, "recall": tp + fn, "F1": tp + fp + fn, "kappa": max(tp, tn) < len(rows)}
    figures = [row if defined.get(row["measure"], True) else {**row, "value": None} for row in figures]
    points = {"measure": "points", "value": None, "low": None, "high": None}
    return [{**n, **figure} for figure in (*figures, points)]


def points_to_judge(
    cases: Mapping[str, Case], expert: Decisions, tasks: Registry
) -> tuple[JudgedTask, dict[str, tuple[str, str]]]:
    """The points that experts decided as a task for a jury, and which document is which point.

    Its text is open where that of all the cases' tasks is.
    """
    rubric, names = point_rubric(), {case["task"] for case in cases.values()}
    is_open = all(name in tasks.tasks and tasks.tasks[name][0].metadata.access == "open" for name in names)
    task, keys = JudgedTask(TASK, rubric, open_access=is_open), {}
    for name, point in sorted(expert):
        case = cases[name]
        document = json.dumps([name, point], ensure_ascii=False)  # ids may hold any character
        keys[document] = (name, point)
        texts = shown_for_point(case["question"], case["points"][point], case["answer"])
        task.cases.append(JudgedCase(document, None, texts, rubric))
    return task, keys
