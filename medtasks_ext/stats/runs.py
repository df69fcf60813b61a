"""Benchmarks that are evaluated in several runs (MedHELM: subjects, conditions, subsets)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medtasks_ext.stats.statistic import Array, Statistic, ratios

__all__ = ["clipped_mean_of_runs", "in_run", "mean_of_runs"]


def in_run(document: Mapping[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Each value with the run of its document, where the benchmark has runs; else unchanged."""
    if "run" not in document:
        return dict(metrics)
    return {name: (document["run"], value) for name, value in metrics.items()}


def _counts(items: Sequence[tuple[str, float]]) -> Array:
    """(n, 2 x runs): a document's value in the column of its run, and a 1 for it."""
    column = {run: place for place, run in enumerate(sorted({run for run, _ in items}))}
    counts = np.zeros((len(items), 2, len(column)))
    for row, (run, value) in enumerate(items):
        counts[row, :, column[run]] = value, 1
    return counts.reshape(len(items), -1)


def _mean_of_means(sums: Array) -> Array:
    values, sizes = np.split(sums, 2, axis=-1)
    return ratios(ratios(values, sizes).sum(axis=-1), (sizes > 0).sum(axis=-1))


#: mean over runs of the mean over a run's documents: each run counts once, whatever its size
mean_of_runs = Statistic("mean_of_runs", _counts, _mean_of_means)
#: the same, no less than 0 and no more than 1, where documents may have less than nothing (penalties)
clipped_mean_of_runs = Statistic(
    "clipped_mean_of_runs", _counts, lambda sums: np.clip(_mean_of_means(sums), 0.0, 1.0)
)
