"""How far raters agree: intraclass and rank correlation, kappa (MedHELM, Methods).

Undefined values (a rater who never varies, too few instances) are None, never a number.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from medtasks_ext.stats.bootstrap import percentile_interval, resampling_weights
from medtasks_ext.stats.intervals import LEVEL
from medtasks_ext.stats.statistic import Array

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json


#: rater -> instance -> value
_Scores: TypeAlias = Mapping[str, Mapping[str, float]]


class Coefficient(NamedTuple):
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


def z_scores(values: Sequence[float]) -> Array | None:
    """(x - mean) / s.d. with the sample s.d. (ddof 1); None if a rater never varies (equation 1)."""
    array = np.asarray(values, dtype=float)
    if len(array) < 2 or np.ptp(array) == 0:
        return None
    standardised: Array = (array - array.mean()) / array.std(ddof=1)
    return standardised


def icc_3k(ratings: Sequence[Sequence[float]] | Array) -> Coefficient:
    """ICC(3,k): two-way mixed effects, consistency of the mean of k raters (Shrout & Fleiss 1979).

    (MS_cases - MS_error) / MS_cases, with the interval from the F distribution (McGraw & Wong 1996), whose
    lower limit can be negative; the paper prints 0 then. `ratings`: instances x raters, no gaps.
    """
    table = np.asarray(ratings, dtype=float)
    n, k = len(table), table[:1].size
    if n < 2 or k < 2:
        return Coefficient(None, n=n)
    cases, raters = table.mean(axis=1, keepdims=True), table.mean(axis=0)
    ms_cases = k * float(((cases - table.mean()) ** 2).sum()) / (n - 1)
    ms_error = float(((table - cases - raters + table.mean()) ** 2).sum()) / ((n - 1) * (k - 1))
    if ms_cases <= 1e-12 * max(1.0, ms_error):
        return Coefficient(None, n=n)
    value = (ms_cases - ms_error) / ms_cases
    if value >= 1 - 1e-12:
        return Coefficient(1.0, 1.0, 1.0, n)
    return Coefficient(value, *icc_3k_interval(value, n, k), n)


def icc_3k_interval(icc: float, n: int, k: int) -> tuple[float, float]:
    """The 95 % interval of an ICC(3,k) of n instances and k raters, from the value alone."""
    from scipy.stats import f

    ratio, cases, errors, upper = 1 / (1 - icc), n - 1, (n - 1) * (k - 1), (1 + LEVEL) / 2
    low, high = f.ppf(upper, cases, errors), f.ppf(upper, errors, cases)
    return 1 - float(low) / ratio, 1 - 1 / (ratio * float(high))


def rank_correlation(one: ArrayLike, other: ArrayLike, *, least: int = 3) -> Coefficient:
    """Spearman's correlation, ties with their mean rank; undefined where one of the two does not vary.

    The interval, from four points on, is Fisher's z with the variance (1 + r² / 2) / (n - 3) of Bonett and
    Wright (Psychometrika 2000). Below `least` points there is no value: two always give 1 or -1.
    """
    from scipy.special import ndtri
    from scipy.stats import spearmanr

    x, y = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    n = len(x)
    if n < least or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Coefficient(None, n=n)
    value = float(spearmanr(x, y).statistic)
    if n < 4 or abs(value) >= 1:
        return Coefficient(value, None, None, n) if n < 4 else Coefficient(value, value, value, n)
    half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt((1 + value**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Coefficient(value, float(low), float(high), n)


def kappa(
    one: Sequence[float], other: Sequence[float], scale: Sequence[float], *, quadratic: bool = False
) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if not one:
        return None
    place = {value: index for index, value in enumerate(scale)}
    places = ([place[item] for item in side] for side in (one, other))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # undefined where both raters give one and the same value
        weights = "quadratic" if quadratic else None
        value = float(cohen_kappa_score(*places, labels=range(len(scale)), weights=weights))
    return None if math.isnan(value) else value


def fleiss_kappa(counts: Array) -> tuple[float | None, float | None]:
    """Fleiss' kappa and the mean share of agreeing pairs (Fleiss 1971, equations 3, 5 and 7).

    `counts`: (subjects, categories), how many raters chose a category. Kappa is None where all votes fall
    into one category, both are None without subjects.
    """
    if not len(counts):
        return None, None
    n, shares = counts[0].sum(), counts.sum(axis=0) / counts.sum()
    observed, expected = float(((counts**2).sum(axis=1) - n).mean() / (n * (n - 1))), float((shares**2).sum())
    if np.count_nonzero(shares) < 2:
        return None, observed
    return (observed - expected) / (1 - expected), observed


def kappas(votes: Mapping[str, Mapping[str, int]], scale: Sequence[int]) -> list[Json]:
    """Fleiss' kappa of all experts, and Cohen's of each pair. `votes`: expert -> subject -> category.

    In each `value`, None where it is undefined, `observed`, the share of the pairs of votes on a subject that
    are equal, and `n`, the subjects on which all of these experts voted.
    """
    experts = sorted(votes)
    if len(experts) < 2:
        return []
    shared = sorted(set.intersection(*(set(votes[expert]) for expert in experts)))
    counts = np.zeros((len(shared), len(scale)), dtype=int)
    for row, subject in enumerate(shared):
        for expert in experts:
            counts[row, scale.index(votes[expert][subject])] += 1
    value, observed = fleiss_kappa(counts)
    found = {"measure": "fleiss_kappa", "between": ", ".join(experts), "value": value, "observed": observed}
    figures = [{**found, "n": len(shared)}]
    for one, other in combinations(experts, 2):
        both = sorted(set(votes[one]) & set(votes[other]))
        first, second = ([votes[expert][subject] for subject in both] for expert in (one, other))
        equal = sum(a == b for a, b in zip(first, second, strict=True)) / len(both) if both else None
        value = kappa(first, second, scale)
        found = {"measure": "cohen_kappa", "between": f"{one}, {other}", "value": value, "observed": equal}
        figures.append({**found, "n": len(both)})
    return figures


def z_by_rater(composites: _Scores) -> dict[str, dict[str, float]]:
    """Each rater's composites as z-scores over all instances of that rater; constant raters are left out."""
    return {
        rater: dict(zip(by_instance, z.tolist(), strict=True))
        for rater, by_instance in composites.items()
        if (z := z_scores(list(by_instance.values()))) is not None
    }


def mean_by_instance(z: _Scores) -> dict[str, float]:
    """Instance -> mean over the raters who rated it."""
    values: dict[str, list[float]] = {}
    for by_instance in z.values():
        for instance, value in by_instance.items():
            values.setdefault(instance, []).append(value)
    return {instance: sum(items) / len(items) for instance, items in values.items()}


def group_agreement(one: _Scores, other: _Scores) -> Coefficient:
    """ICC(3,2) of two groups' mean z-scores over the instances that both rated (equation 2)."""
    shared = set[str]().union(*one.values()) & set[str]().union(*other.values())
    kept = (
        {rater: {name: of[name] for name in of if name in shared} for rater, of in group.items()}
        for group in (one, other)
    )
    first, second = (mean_by_instance(z_by_rater(group)) for group in kept)
    return icc_3k([[first[instance], second[instance]] for instance in sorted(first.keys() & second.keys())])


def at_least_zero(estimate: Coefficient) -> Coefficient:
    """An ICC and its limits, 0 where they are below: as the paper prints limits."""
    value, low, high = (None if item is None else max(0.0, item) for item in estimate[:3])
    return Coefficient(value, low, high, estimate.n)


def pairwise_baseline(composites: _Scores) -> Coefficient:
    """Mean ICC(3,2) over all pairs of raters who share at least two instances.

    The interval is the bootstrap's over pairs (percentiles). `n` counts the pairs; one without an ICC (no
    variation on what it shares) is left out. An ICC below 0 counts as 0: it has no lower bound, so a single
    pair with two instances could outweigh all others.
    """
    z = z_by_rater(composites)
    agreements = []
    for one, other in combinations(sorted(z), 2):
        shared = sorted(set(z[one]) & set(z[other]))
        pair = icc_3k([[z[one][instance], z[other][instance]] for instance in shared])
        if pair.value is not None:
            agreements.append(max(0.0, pair.value))
    if not agreements:
        return Coefficient(None)
    values = np.asarray(agreements)
    interval = percentile_interval(resampling_weights("pairs of raters", len(values)) @ values / len(values))
    return Coefficient(float(values.mean()), interval.low, interval.high, len(values))


def composites(ratings: Iterable[tuple[str, _Scores]]) -> dict[str, dict[str, float]]:
    """(instance, rater -> axis -> rating) -> rater -> instance -> mean of the axes."""
    means: dict[str, dict[str, float]] = {}
    for instance, by_rater in ratings:
        for rater, axes in by_rater.items():
            means.setdefault(rater, {})[instance] = sum(axes.values()) / len(axes)
    return means


def icc_of_raters(by_rater: _Scores) -> Coefficient:
    """ICC(3,k) of raters after z-scoring each, over what all of them rated; none where one never varies."""
    shared = sorted(set.intersection(*map(set, by_rater.values()))) if by_rater else []
    z = z_by_rater({rater: {one: of[one] for one in shared} for rater, of in by_rater.items()})
    if len(z) < len(by_rater):
        return Coefficient(None, n=len(shared))
    return icc_3k([[of[one] for of in z.values()] for one in shared])
