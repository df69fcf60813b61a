"""Scores of all documents from some of them: who is drawn, and what the drawn ones say.

A task's units (documents, or clusters of them) are in strata of cost. Of each stratum some are drawn without
replacement, each as likely as the others, so that a unit stands for units in the stratum / units drawn. How
many is fixed by costs, by weights and by a spread that is assumed beforehand (Neyman, J. R. Statist. Soc. 97,
1934: units by weight x spread / root of the cost), never by answers: a spread that is estimated from the same
answers would bias the estimate. Variances have the finite population's correction (Cochran, Sampling
Techniques, chapters 5 and 6): of all documents there is no error. Scores that are no means are linearised: a
unit counts as much as the score moves with its weight (Deville, Survey Methodology 25, 1999).

Strata are up to four of cost, at least 8 documents of each. A score that is neither a mean nor a ratio of
sums (kappa) gets at least 50 of a task; macro F1 as many that the rarest label has 15, and the whole task if
it has fewer. Rounds ask 7 % more each, from half of the plan on. Simulated with the published scores of 98
models on 87 tasks as the truth: ±1.0 for 1/22 of the cost, ±0.8 for 1/15, and the interval holds the score
of all documents in 95 to 96 %. `pytest -m nightly
tests/results/test_sampling.py` repeats 2,000 of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.stats.intervals import (
    STUDENT,
    WILSON_OF_DRAWN,
    Estimated,
    Interval,
    t_quantile,
    wilson,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from medtasks_ext.stats.statistic import Array

#: Standard deviation of a unit's score where none is published: between that of right or wrong at a score of
#: 0.25 or 0.75 (0.43) and at one of 0.2 or 0.8 (0.4).
SPREAD = 0.42
#: Units drawn of a stratum at least.
LEAST = 8
_STRATA = 4  # at most
#: Each round asks so many times the units of the one before, beside the least ones.
GROWTH = 1.07
#: The first round asks so much of what the assumed spread plans.
FIRST = 0.5
#: Documents that a label needs so that macro F1 is estimated: with fewer its bias is a matter of points.
PER_LABEL = 15
_SHRUNK = 4.0  # units that the pooled variance of a task's strata counts beside a stratum's own
_STEP = 1e-4  # of a unit's weight, by which a derivative is taken
_MOST = 2**22  # numbers of a block of counts


@dataclass(frozen=True)
class Population:
    """What a score is taken over, stratum by stratum; all arrays are (strata,).

    Attributes:
        sizes: units of each.
        costs: mean cost of a unit, above 0, on any scale.
        weights: what each counts in the score; they add up to 1. 0 for one that does not count.
        least: units that are drawn at least, at most its size.
        spreads: standard deviation of a unit's score, assumed.
    """

    sizes: Array
    costs: Array
    weights: Array
    least: Array
    spreads: Array

    @property
    def cost(self) -> float:
        """Of all units that count."""
        return float((self.sizes * self.costs)[self.weights > 0].sum())

    def allocated(self, scale: float) -> Array:
        """Units to draw, (strata,): in proportion to scale, within the least and all of them."""
        wished = np.ceil(scale * self.weights * self.spreads / np.sqrt(self.costs) - 1e-9)
        drawn: Array = np.clip(wished, self.least, self.sizes)
        return np.where(self.weights > 0, drawn, 0).astype(int)

    def cost_of(self, drawn: Array) -> float:
        """What so many units cost."""
        return float((drawn * self.costs).sum())

    def variance(self, drawn: Array) -> float:
        """Of the score, as the assumed spreads have it."""
        return float((self.weights**2 * of_drawn(self.spreads**2, drawn, self.sizes)).sum())

    def scale_of(self, variance: float) -> float:
        """The smallest scale whose variance is not above this one, to a thousandth."""
        low, high = 0.0, 1.0
        if self.variance(self.allocated(low)) <= variance:
            return low
        while self.variance(self.allocated(high)) > variance:
            low, high = high, 2 * high
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.variance(self.allocated(middle)) <= variance else (middle, high)
        return high

    def rounds(self, variance: float) -> Iterator[Array]:
        """Units drawn up to each round, (strata,), fixed before the first answer; the last are all of them.

        Args:
            variance: that is aimed at.
        """
        counts = self.weights > 0
        shares = (self.weights * self.spreads / np.sqrt(self.costs))[counts]
        least = float((self.least[counts] / shares).min())  # below it, no stratum has more than its least
        scale, drawn = max(FIRST * self.scale_of(variance), least), self.allocated(0.0) - 1
        while (drawn < np.where(counts, self.sizes, 0)).any():
            following = self.allocated(scale)
            if (following > drawn).any():
                yield following
            drawn, scale = np.maximum(drawn, following), scale * GROWTH


def of_drawn(variances: ArrayLike, drawn: ArrayLike, sizes: ArrayLike) -> Array:
    """Variances of means of units that are drawn without replacement, (strata,); 0 where all are.

    Args:
        variances: (strata,), of the units.
        drawn: (strata,); where none is drawn, the variance is infinite.
        sizes: (strata,), units there are.
    """
    n, most = np.asarray(drawn, dtype=float), np.asarray(sizes, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_mean: Array = np.where(n >= most, 0.0, np.asarray(variances) / n * (1 - n / most))
    return np.where((n <= 0) & (most > 0), np.inf, of_mean)


def strata_of_cost(costs: ArrayLike) -> Array:
    """The stratum of each unit, (units,), numbered from 0 in order of cost.

    Strata have equal sums of the root of the cost, which is where the allocation gains; each holds several
    times the units that are drawn at least.

    Args:
        costs: (units,), above 0.
    """
    cost = np.asarray(costs, dtype=float)
    number = int(min(_STRATA, max(1, len(cost) // (4 * LEAST))))
    if number == 1 or cost.max() < 2 * cost.min():
        return np.zeros(len(cost), dtype=int)
    order = np.argsort(cost, kind="stable")
    reached = np.cumsum(np.sqrt(cost[order]))
    places = np.searchsorted(reached, reached[-1] * np.arange(1, number) / number)
    edges = [0, *places, len(cost)]
    strata = np.zeros(len(cost), dtype=int)
    kept = 0
    for low, high in pairwise(edges):
        strata[order[low:high]] = kept
        kept += high - low >= 2 * LEAST  # else the next ones join it
    return np.minimum(strata, max(0, kept - 1))


@dataclass(frozen=True)
class Estimate:
    """A score of all units, from those that were drawn.

    Attributes:
        value: the score.
        variance: of its distance to the score of all units.
        beyond: of its distance to the expected score, of which all units are themselves a draw.
        degrees: of freedom of both.
    """

    value: float
    variance: float
    beyond: float
    degrees: float


def estimated(
    counts: Array,
    strata: Array,
    sizes: Array,
    value: Callable[[Array], Array],
) -> Estimate:
    """A task's score from its drawn units.

    As of intervals (`stats.intervals`), one unit more is counted whose value is as uncertain as can be. Units
    that all came out alike would say that nothing varies: a score of 0 or 1 has the variance of half a unit
    that came out otherwise.

    Args:
        counts: (drawn, k), a row for each unit.
        strata: (drawn,), of each.
        sizes: (strata,), units of each; each has one that is drawn.
        value: sums of counts, (..., k) -> score (...).

    Raises:
        ValueError: a stratum without a unit that is drawn.
    """
    most = np.asarray(sizes, dtype=float)
    drawn = np.bincount(strata, minlength=len(most)).astype(float)
    if len(drawn) > len(most) or (drawn[most > 0] == 0).any():
        raise ValueError("each stratum needs a unit that is drawn")
    weights = np.divide(most, drawn, out=np.zeros(len(most)), where=drawn > 0)
    score = float(value(weights[strata] @ counts))
    moved = linearised(counts, weights[strata], value)
    variances = _within(moved, strata, drawn)
    n, whole = drawn.sum(), most.sum()
    counted = n  # units whose own variance counts beside the doubt
    doubt: float | None = None  # variance of a unit that is as uncertain as can be
    if 0 <= score <= 1:
        middle = (score * n + 0.5) / (n + 1)
        doubt = middle * (1 - middle)
        if not variances.any() and score in (0, 1):
            counted = 0
    both = []
    for there in (most, np.full(len(most), np.inf)):
        variance = float((most**2 * of_drawn(variances, drawn, there)).sum())
        if doubt is not None:
            share = float(((most / whole) ** 2 * of_drawn(1.0, drawn, there)).sum())
            variance = (counted * variance + doubt * share) / (counted + 1)
        both.append(variance)
    return Estimate(score, both[0], both[1], max(1.0, n - np.count_nonzero(drawn)))


def linearised(counts: Array, weights: Array, value: Callable[[Array], Array]) -> Array:
    """What a score moves by for each unit more of a kind, (units,): its derivative by the unit's weight.

    Args:
        counts: (units, k).
        weights: (units,), how many units each stands for.
        value: sums of counts, (..., k) -> score (...).
    """
    sums = weights @ counts
    step = _STEP * float(weights.min())
    slopes, block = np.zeros(len(counts)), max(1, _MOST // max(1, counts.shape[1]))
    for first in range(0, len(counts), block):
        some = counts[first : first + block] * step
        # a unit's weight may fall to nothing: label counts of a score stay sums of documents
        slopes[first : first + block] = (value(sums + some) - value(sums - some)) / (2 * step)
    return slopes


def _within(moved: Array, strata: Array, drawn: Array) -> Array:
    """Variances of units within each stratum, (strata,), those of few units drawn to the task's own."""
    means = np.bincount(strata, weights=moved, minlength=len(drawn)) / np.maximum(drawn, 1)
    squares = np.bincount(strata, weights=(moved - means[strata]) ** 2, minlength=len(drawn))
    free = np.maximum(drawn - 1, 0)
    pooled = squares.sum() / free.sum() if free.sum() else float(np.mean(moved**2))
    if np.count_nonzero(drawn) == 1:
        return np.full(len(drawn), pooled)
    shrunk: Array = (squares + _SHRUNK * pooled) / (free + _SHRUNK)
    return shrunk


def weighted(weights: ArrayLike, tasks: list[Estimate]) -> Estimate:
    """A weighted mean of scores of tasks, whose units are drawn independently.

    Degrees of freedom are Satterthwaite's (Biometrics 2, 1946).

    Args:
        weights: (tasks,).
        tasks: their estimates; one of all units has the variance 0.
    """
    w = np.asarray(weights, dtype=float)
    values, variances, beyond, degrees = np.array(
        [(task.value, task.variance, task.beyond, task.degrees) for task in tasks]
    ).T
    parts = w**2 * variances
    free = float(parts.sum() ** 2 / ((parts**2 / degrees).sum() or 1.0)) or 1.0
    return Estimate(float(w @ values), float(parts.sum()), float((w**2 * beyond).sum()), free)


def _wilson(estimate: Estimate, variance: float) -> Interval:
    """Wilson's interval of a score on 0-1, on as many documents as have this variance."""
    least = 0.5 / (
        estimate.degrees + 2
    )  # a score of 0 or 1 has the variance of half a unit that is otherwise
    middle = min(max(estimate.value, least), 1 - least)
    low, high = wilson(estimate.value, middle * (1 - middle) / variance, _quantile(estimate))
    return Interval(float(low), float(high))


def _quantile(estimate: Estimate) -> float:
    return t_quantile(round(max(estimate.degrees, 1.0), 1))


def interval_of(estimate: Estimate) -> Estimated:
    """The 95 % interval beside those of scores over all documents: of the expected score.

    Wilson's where the score is on 0-1, on as many documents as have the estimate's variance.
    """
    score = estimate.value
    if not 0 <= score <= 1 or estimate.beyond <= 0:
        half = _quantile(estimate) * float(np.sqrt(max(estimate.beyond, 0.0)))
        return Estimated(Interval(score - half, score + half), STUDENT)
    return Estimated(_wilson(estimate, estimate.beyond), WILSON_OF_DRAWN)


def half_width(estimate: Estimate) -> float:
    """Half of the 95 % interval of an estimate, which was taken by a rule that was fixed before.

    The wider side of Wilson's where the score is on 0-1: near the ends Student's is too narrow.
    """
    if estimate.variance <= 0:
        return 0.0
    if not 0 <= estimate.value <= 1:
        return _quantile(estimate) * float(np.sqrt(estimate.variance))
    interval = _wilson(estimate, estimate.variance)
    return max(interval.high - estimate.value, estimate.value - interval.low)
