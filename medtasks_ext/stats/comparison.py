"""Two models on the same documents, or all pairs of many: difference, interval and p-value; ranks.

Models are compared on the resamples that they share (`stats.bootstrap`), so what they have in common
cancels out. Scores and differences are on 0-1; differences are the first minus the second. p-values are
adjusted for the number of comparisons in a family: all those from which one would have picked the striking
ones, be it all tasks of a table or all pairs of a leaderboard.

The interval of a difference is Agresti and Min's where one task has right and wrong answers, else that of
the resamples, as much wider as Student's distribution asks of so few documents, and no narrower than
`least_half`. Interval and p-value never contradict each other: the one that claims less decides. Where p is
0.05 or more, the interval reaches to 0; where the interval holds 0, p is at least 0.05.

Paired bootstrap: of B resamples, r lie on the rarer side of 0 (those at 0 on both sides); p = 2 (r + 1) / (B
+ 1), at most 1, so that p < 0.05 only if the interval excludes 0. If r = 0, p comes from the normal
distribution with the resamples' mean and standard deviation, if that is smaller: 0.002 is too coarse to
adjust. Ranks: the 2.5th to 97.5th percentile of the ranks on every resample, rounded outwards; tied models
share their mean rank. The detectable difference is (1.96 + 0.84) times the standard error of the difference
(MedHELM's minimum detectable effect).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from medtasks_ext.stats.intervals import LEVEL, Interval, Z
from medtasks_ext.stats.permutation import EQUAL, Part, document_test, paired
from medtasks_ext.stats.statistic import Array

BOOTSTRAP = "paired bootstrap"
#: z for a two-sided test at 5 % and for 80 % power, as MedHELM's published code rounds them.
Z_ALPHA, Z_BETA = 1.96, 0.84
#: Fewer resamples than these do not determine a tail.
FEWEST_FOR_TAIL = 500
#: Of fewer units Student's distribution says nothing that is of use.
FEWEST_UNITS = 5
#: Smaller p-values are of no use, and no normal tail is that exact.
LEAST_P_VALUE = 1e-12
#: Below it a difference is told from none.
ALPHA = 0.05
_DIGITS = 12  # scores that differ in later ones are equal: it is rounding


@dataclass(frozen=True)
class Comparison:
    """The first model minus the second."""

    difference: float  # of the scores on all documents
    interval: Interval  # of 95 %; it holds 0 where p is 0.05 or more, and only there
    p_value: float  # two-sided
    method: str  # where the p-value is from
    detectable: float  # the smallest true difference that would be found with 80 % power


@dataclass(frozen=True)
class Pairs:
    """All pairs of models; each matrix is (models, models), and row minus column."""

    difference: Array  # of the scores on all documents
    low: Array  # lower ends of the 95 % intervals
    high: Array  # upper ends
    p_value: Array  # two-sided; 1 on the diagonal


# ---------------------------------------------------------------------- on shared resamples


def smallest_p_value(resamples: int) -> float:
    """The least p-value that the count of so many resamples can give."""
    return 2 / (resamples + 1)


def bootstrap_p_value(differences: ArrayLike) -> Array:
    """Two-sided p-values, (...), of differences, (..., resamples): how far their interval is from holding 0.

    Twice the share of resamples on the rarer side of 0, where those at 0 count for both sides, and the
    observed data count as one more resample, so that p is never 0 (Efron and Tibshirani, An Introduction
    to the Bootstrap, 1993, section 15.4; Davison and Hinkley, Bootstrap Methods, 1997, section 4.2). Below
    0.05 the 95 % interval of the same resamples leaves 0 out, but for one resample.

    Where all resamples lie on one side, their count says no more than p < `smallest_p_value`, too coarse to
    be adjusted for many comparisons. The normal distribution with the resamples' mean and standard
    deviation then says how far 0 is out in the tail (the book's section 12.4).
    """
    differences = np.asarray(differences, dtype=float)
    resamples = differences.shape[-1]
    rarer = np.minimum((differences <= EQUAL).sum(axis=-1), (differences >= -EQUAL).sum(axis=-1))
    p_values: Array = np.minimum(1.0, smallest_p_value(resamples) * (1 + rarer))
    if resamples < FEWEST_FOR_TAIL or rarer.all():
        return p_values
    from scipy.special import erfc

    centre, spread = np.abs(differences.mean(axis=-1)), differences.std(axis=-1, ddof=1)
    # where they do not vary, the tail is 1
    z = np.divide(centre, spread, out=np.zeros(np.shape(centre)), where=spread > EQUAL)
    tail = np.maximum(erfc(z / np.sqrt(2)), LEAST_P_VALUE)
    return np.asarray(np.where(rarer == 0, np.minimum(p_values, tail), p_values))


def least_half(tasks: Iterable[tuple[float, int]]) -> float:
    """Half of the width that the interval of a difference has at least.

    It is that of one document more in each task, (weight in the score, documents), whose scores differ as far
    as can be. Without it two models with the same answers would differ by nothing, for sure.
    """
    return Z * sqrt(sum(weight**2 / (n * (n + 1)) for weight, n in tasks if n))


def _ends(difference: Array, resampled: Array, least: float, units: int | None) -> tuple[Array, Array]:
    """Ends of the intervals of differences, (...), from their resamples, (..., resamples)."""
    ends = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=-1)
    wider = _student(units) if units else 1.0
    below, above = (np.maximum(wider * far, least) for far in (difference - ends[0], ends[1] - difference))
    low: Array = np.minimum(ends[0], np.maximum(difference - below, -1.0))
    high: Array = np.maximum(ends[1], np.minimum(difference + above, 1.0))
    return low, high


@lru_cache(maxsize=512)
def _student(units: int) -> float:
    """How much wider Student's interval of a mean is than what a bootstrap of so many units gives."""
    from scipy.special import stdtrit

    units = max(units, FEWEST_UNITS)
    return float(stdtrit(units - 1, (1 + LEVEL) / 2) / Z * sqrt(units / (units - 1)))


def agreed(low: ArrayLike, high: ArrayLike, p_value: ArrayLike) -> tuple[Array, Array, Array]:
    """Intervals and p-values, (...) each, that say the same of 0: the one that claims less decides."""
    low, high, p_value = (np.asarray(values, dtype=float) for values in (low, high, p_value))
    apart, told = (low > 0) | (high < 0), p_value < ALPHA
    reach = apart & ~told
    return (
        np.where(reach, np.minimum(low, 0.0), low),
        np.where(reach, np.maximum(high, 0.0), high),
        np.where(told & ~apart, ALPHA, p_value),
    )


def _agreed(interval: Interval, p_value: float) -> tuple[Interval, float]:
    low, high, p = agreed(interval.low, interval.high, p_value)
    return Interval(float(low), float(high)), float(p)


def compare_resamples(
    scores: tuple[float, float],
    resampled: tuple[ArrayLike, ArrayLike],
    least: float = 0.0,
    units: int | None = None,
) -> Comparison:
    """Compare two models by a score of any kind: of a task, or of a group.

    `scores`: of both models, 0-1, on all documents. `resampled`: the same on each resample, drawn alike for
    both; ValueError if not of one length, or not finite. `least`: `least_half` of its tasks; no end goes
    beyond 1 for that. `units`: documents, or clusters of them; of few, the interval is wider.
    """
    first, second = paired(*resampled)
    differences, difference = first - second, float(scores[0] - scores[1])
    low, high = _ends(np.asarray(difference), differences, least, units)
    interval, p_value = _agreed(Interval(float(low), float(high)), float(bootstrap_p_value(differences)))
    detectable = detectable_difference(float(np.std(differences, ddof=1)))
    return Comparison(difference, interval, p_value, BOOTSTRAP, detectable)


def detectable_difference(standard_error: float) -> float:
    """The smallest true difference that a two-sided test at 5 % finds with 80 % power.

    MedHELM's definition (Nature Medicine 2026, Methods). `standard_error`: of the difference, such as its
    standard deviation over resamples.
    """
    return (Z_ALPHA + Z_BETA) * standard_error


def all_pairs(scores: ArrayLike, resampled: ArrayLike, least: float = 0.0, units: int | None = None) -> Pairs:
    """Compare all pairs of models as `compare_resamples` does, a row of pairs at a time.

    `scores`: (models,), on all documents. `resampled`: (models, resamples), drawn alike for all. `least`:
    `least_half` of the tasks. `units`: documents of all of them. ValueError: shapes do not fit, or a value is
    not finite.
    """
    scores, resampled = np.asarray(scores, dtype=float), np.asarray(resampled, dtype=float)
    if resampled.ndim != 2 or scores.shape != resampled.shape[:1]:
        raise ValueError("each model needs a score and a row of resamples")
    if not (np.isfinite(scores).all() and np.isfinite(resampled).all()):
        raise ValueError("a score is missing; compare models on what all of them have")
    n = len(scores)
    low, high, p_value = np.zeros((n, n)), np.zeros((n, n)), np.ones((n, n))
    for row in range(n - 1):
        others = slice(row + 1, n)
        differences = resampled[row] - resampled[others]
        low[row, others], high[row, others], p_value[row, others] = agreed(
            *_ends(scores[row] - scores[others], differences, least, units), bootstrap_p_value(differences)
        )
        p_value[others, row] = p_value[row, others]
        low[others, row], high[others, row] = -high[row, others], -low[row, others]
    return Pairs(scores[:, None] - scores[None, :], low, high, p_value)


# ---------------------------------------------------------------------- documents decide


def compare(
    parts: Sequence[Part], documents: int, resampled: tuple[ArrayLike, ArrayLike], metric: str = "score"
) -> Comparison:
    """Compare two models on a task or group.

    Interval and p-value are those of `permutation.document_test`, or of the resamples where it has none.
    `parts`: the tasks with both models' counts on the documents that both were asked. `documents`: of all
    tasks. `resampled`: the score of both on each resample, (resamples,) each. ValueError: a task's counts
    have different or fewer than two units, or the resamples do not fit.
    """
    if any(part.first.n_units != part.second.n_units or part.first.n_units < 2 for part in parts):
        raise ValueError("both models need the same documents, at least two")
    first, second = (
        sum(part.weight * counts.values()[metric] for part, counts in zip(parts, side, strict=True))
        for side in ([part.first for part in parts], [part.second for part in parts])
    )
    least = least_half((part.weight, part.first.n_units) for part in parts)
    compared = compare_resamples((first, second), resampled, least, sum(part.first.n_units for part in parts))
    test = document_test(parts, documents, metric)
    if test is None:
        return compared
    interval, p_value = _agreed(test.interval or compared.interval, test.p_value)
    return replace(compared, interval=interval, p_value=p_value, method=test.method)


# ---------------------------------------------------------------------- many comparisons


def holm(p_values: ArrayLike) -> Array:
    """Holm's step-down adjustment (Scand. J. Statist. 1979): below alpha, no finding is false but with alpha.

    It holds for tests that depend on each other, too, as those on shared documents do. The adjusted p-values
    of one family stand in the same order; ValueError: it is no list of p-values.
    """
    p_values = _checked(p_values)
    order, left = np.argsort(p_values, kind="stable"), len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * left), 1)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> Array:
    """Benjamini and Hochberg's step-up adjustment (J. R. Statist. Soc. B 1995).

    Of the findings below alpha, a share of alpha is false on average; else as `holm`. As
    `false_discovery_control` of `scipy.stats` has it, whose import takes longer than all tests of a report.
    """
    p = _checked(p_values)
    order = np.argsort(p)
    raised = p[order] * (len(p) / np.arange(1, len(p) + 1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return np.clip(adjusted, 0, 1)


def _checked(p_values: ArrayLike) -> Array:
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p-values are a list of numbers from 0 to 1")
    return p


# ---------------------------------------------------------------------- ranks


@dataclass(frozen=True)
class Ranking:
    """Ranks of models, 1 the best."""

    rank: Array  # (models,) by the scores on all documents; models with equal scores share their mean rank
    low: Array  # (models,) the best rank of the 95 % percentile interval
    high: Array  # (models,) the worst
    #: (models,) share of the resamples in which the model is first; models that share the first place share
    #: it equally. They add up to 1
    best: Array


def ranks(scores: ArrayLike) -> Array:
    """Ranks in each column, 1 for the highest score, ties with their mean rank.

    As `scipy.stats.rankdata` gives them; the import of `scipy.stats` takes longer than all ranks of a report.
    `scores`: (models,) or (models, resamples). ValueError: a score is not finite.
    """
    scores = np.asarray(scores, dtype=float)
    if not np.isfinite(scores).all():
        raise ValueError("a score is missing; rank models on what all of them have")
    losses = -np.round(scores, _DIGITS)
    order = np.argsort(losses, axis=0)
    ordered = np.take_along_axis(losses, order, axis=0)
    place = np.arange(len(losses)).reshape(-1, *[1] * (losses.ndim - 1))
    begins = np.ones(losses.shape, dtype=bool)  # whether a place is the first of its score
    begins[1:] = ordered[1:] != ordered[:-1]
    ends = np.roll(begins, -1, axis=0)  # the place before the first of the next score; the last place
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=0)
    last = np.minimum.accumulate(np.where(ends, place, len(losses))[::-1], axis=0)[::-1]
    ranks = np.empty(losses.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    return ranks


def ranking(scores: ArrayLike, resampled: ArrayLike) -> Ranking:
    """Rank models by their score, and again on every resample, (models, resamples), drawn alike for all.

    Interval ends are ranks that occurred: quantiles are rounded outwards. ValueError: a score is not finite.
    """
    again = ranks(resampled)
    low = np.quantile(again, (1 - LEVEL) / 2, axis=1, method="lower")
    high = np.quantile(again, (1 + LEVEL) / 2, axis=1, method="higher")
    first = again == again.min(axis=0)
    return Ranking(ranks(scores), low, high, (first / first.sum(axis=0)).mean(axis=1))


def win_shares(scores: ArrayLike, *, tie: float = 0.5) -> Array:
    """The share of the tasks that the row wins against the column, (models, models).

    `scores`: (models, tasks). `tie`: how much of a win a tie is.
    """
    scores = np.asarray(scores, dtype=float)
    lead = scores[:, None, :] - scores[None, :, :]
    rates: Array = ((lead > EQUAL) + (np.abs(lead) <= EQUAL) * tie).mean(axis=2)
    return rates
