"""95 % intervals of scores: Wilson's, on the number of documents that a score is worth.

Any score on 0-1 has a variance of p (1 - p) / n for some n: of right and wrong answers n is their number; of
clusters and other means it follows from the variance between the units (Korn and Graubard 1998; Dean and
Pagano 2015), of F1 and the like from that over bootstrap resamples. One unit more is counted whose value is
as uncertain as can be. tests/results/test_intervals.py holds the coverage in simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from medtasks_ext.stats.statistic import Array, Counts, mean_of_runs, ratios, share

LEVEL = 0.95
WILSON = "Wilson, 95 %"
WILSON_OF_UNITS = "Wilson on the effective number of documents, 95 %"
WILSON_OF_CLUSTERS = "Wilson on the effective number of documents in clusters, 95 %"
WILSON_OF_DRAWN = "Wilson on the effective number of drawn documents, 95 %"
#: All of them, for records of many scores.
METHODS = "Wilson on the effective number of documents, 95 % (medtasks: docs/compare.md)"
STUDENT = "Student's t, 95 %"
#: Distance from 0 or 1 within which intervals of documents in clusters are rough: a few clusters decide.
_NEAR = 0.05
#: 97.5 % quantile of the normal distribution.
Z = 1.959963984540054
_NOTHING = 1e-12  # smaller variances and widths are rounding


@dataclass(frozen=True)
class Interval:
    """On the scale of its metric; `rough` where simulations of its kind find a coverage below 90 %."""

    low: float
    high: float
    rough: bool = False
    method: str = field(default="", compare=False)  # how it was taken, in words


def wilson(score: ArrayLike, size: ArrayLike, quantile: ArrayLike = Z) -> tuple[Array, Array]:
    """Ends of Wilson's interval, (...), which hold the score: on 0-1, of so many documents, whole or not.

    `quantile`: of the normal distribution, or of Student's.
    """
    p, n, q = np.broadcast_arrays(*(np.asarray(item, dtype=float) for item in (score, size, quantile)))
    a = q**2 / n
    centre, half = (p + a / 2) / (1 + a), np.sqrt(a * (p * (1 - p) + a / 4)) / (1 + a)
    return np.clip(centre - half, 0.0, p), np.clip(centre + half, p, 1.0)


def sample_sizes(score: ArrayLike, low: ArrayLike, high: ArrayLike, documents: ArrayLike) -> Array:
    """How many documents, right or wrong, give an interval of this width: `wilson` read backwards.

    `score`: (...), on 0-1. `documents`: what an interval without a width is worth.
    """
    p = np.clip(np.asarray(score, dtype=float), 0.0, 1.0)
    half = np.clip(np.subtract(high, low, dtype=float) / 2, 0.0, 0.499)
    # half² (1 + a)² = a (p (1 - p) + a / 4), a = z² / n
    b = 2 * half**2 - p * (1 - p)
    a = (b + np.sqrt(b**2 + 4 * half**2 * (0.25 - half**2))) / (2 * (0.25 - half**2))
    size: Array = np.where(half > _NOTHING, Z**2 / np.maximum(a, _NOTHING), documents)
    return size


def mean_interval(weights: ArrayLike, scores: ArrayLike, sizes: ArrayLike) -> tuple[Array, Array]:
    """Ends of the intervals, (groups,), of weighted means of scores whose documents are independent.

    The variances of the scores are added. That of a score follows from itself and half a document more of
    either kind, else a group of tasks without an error would know its score exactly. It is no more than that
    of one document: else a task that tells nothing would open the group's interval to its ends. A group of
    one task has the task's interval.

    `weights`: (groups, tasks); each row adds up to 1. `scores`: (tasks,). `sizes`: their `sample_sizes`.
    """
    w, n = np.asarray(weights, dtype=float), np.asarray(sizes, dtype=float)
    p = np.clip(np.asarray(scores, dtype=float), 0.0, 1.0)
    shrunk = (p * n + 0.5) / (n + 1)
    middle, several = w @ shrunk, np.count_nonzero(w, axis=1) > 1
    spread = shrunk * (1 - shrunk)
    variance = np.where(several, w**2 @ (spread / np.maximum(n, 1.0)), w**2 @ (spread / n))
    return wilson(np.clip(w @ p, 0.0, 1.0), middle * (1 - middle) / variance)


def of_tasks(
    weights: ArrayLike, scores: ArrayLike, intervals: Sequence[Interval | None], documents: ArrayLike
) -> Interval | None:
    """The interval of one weighted mean of tasks; None where a task has none. `scores`: (tasks,), on 0-1."""
    known = [item for item in intervals if item is not None]
    if not known or len(known) < len(intervals):
        return None
    sizes = sample_sizes(scores, [item.low for item in known], [item.high for item in known], documents)
    low, high = mean_interval(np.asarray(weights, dtype=float)[None], scores, sizes)
    return Interval(float(low[0]), float(high[0]), any(item.rough for item in known))


def of_shares(parts: ArrayLike, wholes: ArrayLike | None = None) -> Interval | None:
    """The interval of a share that is counted in independent units; None for fewer than two.

    `parts`: of each unit, such as how many of its raters agreed. `wholes`: of how many; by default of one.
    """
    above = np.asarray(parts, dtype=float)
    below = np.ones(len(above)) if wholes is None else np.asarray(wholes, dtype=float)
    residuals = above - ratios(above.sum(), below.sum()) * below
    return _of_units(above, below, residuals, single=wholes is None)


def intervals_of(counts: Counts, resampled: dict[str, Array]) -> dict[str, Interval]:
    """Metric -> interval; none for fewer than two units, or where nothing varies on a scale without ends.

    `resampled`: metric -> values on bootstrap resamples, (resamples,), of those that are no means.
    """
    estimates: dict[str, Interval | None] = {}
    for metric, statistic in counts.statistics.items():
        if is_mean(statistic.value):
            estimates[metric] = _of_mean(counts)
        elif metric in resampled:
            score = float(statistic.value(np.asarray(counts.matrix.sum(axis=0))))
            values = resampled[metric]
            bounded = bool(min(score, values.min()) >= 0 and max(score, values.max()) <= 1)
            estimates[metric] = _of_score(score, float(np.var(values)), counts.n_units, bounded=bounded)
    return {metric: item for metric, item in estimates.items() if item is not None}


def is_mean(value: object) -> bool:
    return value in (share, mean_of_runs.value)


def _of_mean(counts: Counts) -> Interval | None:
    """Columns: a sum for each run, then the number of documents behind it; without runs one of each."""
    sums, sizes = np.split(counts.dense, 2, axis=1)
    totals = sizes.sum(axis=0)
    # what a document of each run counts
    scale = ratios(np.ones(len(totals)), totals * (totals > 0).sum())
    residuals = sums - ratios(sums.sum(axis=0), totals) * sizes
    there = sizes.any(axis=1)
    single = bool(np.isin(sizes, (0, 1)).all() and (sizes.sum(axis=1) <= 1).all())
    return _of_units((sums @ scale)[there], (sizes @ scale)[there], (residuals @ scale)[there], single=single)


def _of_units(parts: Array, wholes: Array, residuals: Array, *, single: bool = True) -> Interval | None:
    """The interval of sum(parts) / sum(wholes), (units,) each.

    `residuals`: what each adds to the deviation of the score from its expectation. `single`: whether each
    unit is one document.
    """
    n, total = len(wholes), wholes.sum()
    if n < 2 or total <= 0:
        return None
    score, variance = float(parts.sum() / total), float((residuals**2).sum() / total**2)
    if (parts < -_NOTHING).any() or (parts > wholes + _NOTHING).any():
        return _of_score(score, variance, n, bounded=False)
    size = _effective_size(score, variance, n, float((wholes**2).sum() / total**2))
    if single and ((np.abs(parts) <= _NOTHING) | (np.abs(parts - wholes) <= _NOTHING)).all():
        return _wilson(score, size, inf, WILSON)
    rough = not single and min(score, 1 - score) < _NEAR
    return _wilson(score, size, n - 1, WILSON_OF_UNITS if single else WILSON_OF_CLUSTERS, rough)


def _effective_size(score: float, variance: float, units: int, concentration: float) -> float:
    """How many documents, right or wrong, have a share of this variance.

    `concentration`: sum of squares of the units' shares of the score; 1 / units if they are alike.
    """
    spread = score * (1 - score)
    if spread <= _NOTHING:
        return 1 / concentration
    return spread / ((units * variance + spread * concentration) / (units + 1))


def _of_score(score: float, variance: float, units: int, *, bounded: bool) -> Interval | None:
    """The interval of a score of which its variance over resamples is known; `bounded`: it is on 0-1."""
    if units < 2:
        return None
    if bounded:
        size = _effective_size(score, variance, units, 1 / units)
        return _wilson(score, size, units - 1, WILSON_OF_UNITS)
    if variance <= _NOTHING:
        return None
    half = t_quantile(units - 1) * np.sqrt(variance * units / (units - 1))
    return Interval(float(score - half), float(score + half), method=STUDENT)


def _wilson(score: float, size: float, df: float, method: str, rough: bool = False) -> Interval:
    low, high = wilson(score, size, t_quantile(df))
    return Interval(float(low), float(high), rough, method)


@lru_cache(maxsize=4096)
def t_quantile(df: float) -> float:
    """The 97.5 % quantile of Student's t; of the normal distribution for infinitely many."""
    if df == inf:
        return Z
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + LEVEL) / 2))


def matched_difference(first_alone: int, second_alone: int, n: int) -> Interval:
    """95 % interval of the difference of two proportions of the same n units.

    Half a unit is added to each cell of the table of both outcomes (Agresti and Min, Statistics in Medicine
    24 (2005) 729-740). Unlike the bootstrap's, the interval has a width where no unit differs.
    """
    one, other, total = first_alone + 0.5, second_alone + 0.5, n + 2
    difference = (one - other) / total
    half = Z * sqrt(one + other - (one - other) ** 2 / total) / total
    return Interval(max(difference - half, -1.0), min(difference + half, 1.0))
