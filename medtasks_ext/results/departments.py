"""Scores by department, for documents that carry the label (MLB, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.registry.departments import NO_DEPARTMENT, departments, primary_of
from medtasks_ext.stats.counts import counts_of, question_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Samples = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class DepartmentScore:
    """One department's line."""

    name: str  # of a primary or secondary department, or `No Department`
    primary: str | None  # the primary department of a secondary one; None on the line of a primary one
    score: float  # mean over the tasks that have documents there, each counting once, 0-1
    n_tasks: int  # those tasks
    n_documents: int  # their documents there; a question that is asked several times is one


def score_by_department(
    tasks: Mapping[str, tuple[Samples, Mapping[str, Callable[..., Any]]]], metric: str = "score"
) -> list[DepartmentScore]:
    """One metric by primary and by secondary department.

    A document with several departments counts fully in each of them, and once in a primary department.
    Documents without the label have no part.

    Args:
        tasks: task -> lm-eval's records of its documents (in memory or as read from `samples_TASK.jsonl`)
            and its aggregations.

    Returns:
        Each primary department, followed by its secondary ones, in the order of the vocabulary; those
        with documents alone. `No Department` comes last.
    """
    places: dict[tuple[str | None, str], list[tuple[float, int]]] = {}
    for samples, aggregations in tasks.values():
        if metric not in aggregations:
            continue
        found = counts_of(samples, {metric: aggregations[metric]}, question_of)
        if not found:
            continue
        [counts] = found
        labels = _labels(samples, metric)
        for place in {place for label in labels for place in label}:
            chosen = np.array([place in label for label in labels], dtype=float)
            value = counts.statistics[metric].value(chosen @ counts.matrix)
            places.setdefault(place, []).append((float(value), int(chosen.sum())))
    return [
        DepartmentScore(
            name,
            primary,
            float(np.mean([score for score, _ in places[primary, name]])),
            len(places[primary, name]),
            sum(n for _, n in places[primary, name]),
        )
        for primary, name in _order()
        if (primary, name) in places
    ]


def _labels(samples: Samples, metric: str) -> list[set[tuple[str | None, str]]]:
    """The lines in which each question has a part, questions in the order of the counts."""
    units: dict[Any, set[tuple[str | None, str]]] = {}
    for sample in sorted(samples, key=lambda sample: sample["doc_id"]):
        if metric in sample:
            names = sample["doc"].get("department", [])
            primaries = {(None, primary_of(name)) for name in names}
            secondaries = {(primary_of(name), name) for name in names if name != NO_DEPARTMENT}
            units.setdefault(question_of(sample), primaries | secondaries)
    return list(units.values())


def _order() -> list[tuple[str | None, str]]:
    lines: list[tuple[str | None, str]] = []
    for primary, entry in departments().items():
        lines += [(None, primary), *((primary, name) for name in entry["secondary"])]
    return [*lines, (None, NO_DEPARTMENT)]
