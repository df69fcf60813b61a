"""The counts behind a task's metrics, one row per unit that is resampled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medtasks_ext.stats.statistic import Array, Matrix, Statistic, mean

#: columns up to which counts are summed one by one: a sparse product takes longer to set up
_NARROW = 16


@dataclass(frozen=True)
class Counts:
    """What each unit of a task contributes to the metrics that are computed from the same counts.

    `matrix`: (n_units, k), dense or sparse. `labels`: what the columns of `statistic.label_counts` stand for;
    none where that is unknown, or counts are others.
    """

    matrix: Matrix
    statistics: dict[str, Statistic]
    labels: tuple[Hashable, ...] = ()

    @property
    def n_units(self) -> int:
        rows: int = self.matrix.shape[0]
        return rows

    def values(self) -> dict[str, float]:
        sums = np.asarray(self.matrix.sum(axis=0))
        return {name: float(statistic.value(sums)) for name, statistic in self.statistics.items()}


def statistic_of(aggregation: Callable[..., Any]) -> Statistic | None:
    """The statistic of an aggregation of a task; None for a plain function, which cannot be resampled."""
    if isinstance(aggregation, Statistic):
        return aggregation
    from medtasks_ext.harness import mean as lm_eval_mean  # loads all of its metrics

    return mean if aggregation is lm_eval_mean else None


def question_of(sample: Mapping[str, Any]) -> Hashable:
    """The question that a sample belongs to, if that was asked several times; else it is alone."""
    question: Hashable = sample["doc"].get("item", ("document", sample["doc_id"]))
    return question


def unit_of(sample: Mapping[str, Any]) -> Hashable:
    """What a sample is resampled with: what its question is about, if others are, too; else its question."""
    cluster = sample["doc"].get("cluster")
    return ("cluster", cluster) if cluster else question_of(sample)


def counts_of(
    samples: Sequence[Mapping[str, Any]],
    aggregations: Mapping[str, Callable[..., Any]],
    unit: Callable[[Mapping[str, Any]], Hashable] = unit_of,
) -> list[Counts]:
    """The counts of one task, the rows in the order of its documents, whatever the order of the samples.

    Metrics that share their counts share a matrix; those that no sample reports are left out.
    """
    ordered = sorted(samples, key=lambda sample: sample["doc_id"])
    units = [unit(sample) for sample in ordered]
    made: list[tuple[list[Any], Statistic, Counts]] = []
    for metric, aggregation in aggregations.items():
        statistic = statistic_of(aggregation)
        items = [sample[metric] for sample in ordered if metric in sample]
        if statistic is None or not items:
            continue
        for known, like, counts in made:
            if like.counts is statistic.counts and known == items:
                counts.statistics[metric] = statistic
                break
        else:
            theirs = [unit for unit, sample in zip(units, ordered, strict=True) if metric in sample]
            matrix = by_unit(statistic.counts(items), theirs)
            labels = tuple(statistic.labels(items)) if statistic.labels else ()
            made.append((items, statistic, Counts(matrix, {metric: statistic}, labels)))
    return [counts for _, _, counts in made]


def by_unit(matrix: Matrix, units: Sequence[Hashable] | Array) -> Matrix:
    """(n, k) -> (n_units, k): rows of the same unit summed, units in the order of their first row."""
    if isinstance(units, np.ndarray):
        _, first, places = np.unique(units, return_index=True, return_inverse=True)
        n_units, rows = len(first), np.argsort(np.argsort(first))[places]
    else:
        number: dict[Hashable, int] = {}
        rows = np.array([number.setdefault(unit, len(number)) for unit in units], dtype=int)
        n_units = len(number)
    if n_units == len(rows):
        return matrix
    if isinstance(matrix, np.ndarray) and 0 < matrix.shape[1] <= _NARROW:
        sums = [np.bincount(rows, weights=column, minlength=n_units) for column in matrix.T]
        return np.stack(sums, axis=1)
    from scipy.sparse import csr_array

    member = csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n_units, len(rows)))
    return member @ matrix
