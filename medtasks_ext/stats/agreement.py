"""How far raters agree: intraclass and rank correlation, kappa, Krippendorff's alpha (MedHELM, Methods).

Undefined values (a rater who never varies, too few instances) are None, never a number. Where not everybody
rates everything, a figure is computed from weights of the units (what is rated): once with all weights 1, and
once for each resample of the units, whose 2.5th and 97.5th percentiles are the interval.
"""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from medtasks_ext.stats.bootstrap import percentile_interval, resampling_weights
from medtasks_ext.stats.intervals import LEVEL, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from medtasks_ext.stats.statistic import Array

Weighting = Literal["linear", "quadratic"]
Metric = Literal["ordinal", "interval"]
_BLOCK = 2**22  # numbers that are held at once


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
    n = len(table)
    if table.ndim != 2 or n < 2 or table.shape[1] < 2:
        return Coefficient(None, n=n)
    k = table.shape[1]
    value = float(_iccs(table[None], np.ones((1, n)))[0])
    if math.isnan(value):
        return Coefficient(None, n=n)
    if value >= 1 - 1e-12:
        return Coefficient(1.0, 1.0, 1.0, n)
    low, high = icc_3k_interval(value, n, k)
    return Coefficient(value, low, high, n)


def icc_3k_interval(icc: float, n: int, k: int) -> tuple[float, float]:
    """The 95 % interval of an ICC(3,k) of n instances and k raters, from the value alone."""
    from scipy.stats import f

    ratio, cases, errors = 1 / (1 - icc), n - 1, (n - 1) * (k - 1)
    upper = (1 + LEVEL) / 2
    return (
        1 - float(f.ppf(upper, cases, errors)) / ratio,
        1 - 1 / (ratio * float(f.ppf(upper, errors, cases))),
    )


class Correlation(NamedTuple):
    value: float
    interval: Interval | None  # None for fewer than four points
    p_value: float  # two-sided; NaN for two points
    n: int


def rank_correlation(one: ArrayLike, other: ArrayLike, *, least: int = 3) -> Correlation | None:
    """Spearman's correlation, ties with their mean rank; None where one of the two does not vary.

    The interval is Fisher's z with the variance (1 + r² / 2) / (n - 3) of Bonett and Wright (Psychometrika
    2000), the p-value that of Student's t with n - 2 degrees of freedom. Below `least` points there is none:
    two always give 1 or -1. Raises ValueError: not of one length, or not finite.
    """
    from scipy.special import ndtri
    from scipy.stats import spearmanr

    x, y = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("two lists of one length with finite values are needed")
    n = len(x)
    if n < max(2, least) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    tested = spearmanr(x, y)
    value = float(tested.statistic)
    if n < 4 or abs(value) >= 1:
        return Correlation(value, None if n < 4 else Interval(value, value), float(tested.pvalue), n)
    half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt((1 + value**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Correlation(value, Interval(float(low), float(high)), float(tested.pvalue), n)


def spearman(one: ArrayLike, other: ArrayLike) -> float | None:
    """The value of `rank_correlation`, of two points, too."""
    correlation = rank_correlation(one, other, least=2)
    return correlation.value if correlation else None


def kappa(
    one: Sequence[float], other: Sequence[float], scale: Sequence[float], *, quadratic: bool = False
) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if not one:
        return None
    place = {value: index for index, value in enumerate(scale)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # undefined where both raters give one and the same value
        value = float(
            cohen_kappa_score(
                [place[item] for item in one],
                [place[item] for item in other],
                labels=range(len(scale)),
                weights="quadratic" if quadratic else None,
            )
        )
    return None if math.isnan(value) else value


class Kappa(NamedTuple):
    measure: str  # `fleiss_kappa` or `cohen_kappa`
    between: tuple[str, ...]  # the experts
    value: float | None  # None where it is undefined: all votes are the same, or there are none
    observed: float | None  # share of the pairs of votes on a subject that are equal
    n: int  # subjects on which all of them voted


def fleiss_kappa(counts: Sequence[Sequence[int]] | Array) -> tuple[float | None, float | None]:
    """Fleiss' kappa and the mean share of agreeing pairs (Fleiss 1971, equations 3, 5 and 7).

    `counts`: (subjects, categories), how many raters chose a category. Kappa is None where all votes fall
    into one category, both are None without subjects. Raises ValueError: the number of raters varies, or is
    below two.
    """
    table = np.asarray(counts, dtype=float)
    if not len(table):
        return None, None
    raters = table.sum(axis=1)
    if raters[0] < 2 or (raters != raters[0]).any():
        raise ValueError("every subject needs the same number of raters, at least two")
    n = raters[0]
    observed = float(((table**2).sum(axis=1) - n).mean() / (n * (n - 1)))
    shares = table.sum(axis=0) / table.sum()
    expected = float((shares**2).sum())
    if np.count_nonzero(shares) < 2:
        return None, observed
    return (observed - expected) / (1 - expected), observed


def kappas(votes: Mapping[str, Mapping[str, int]], scale: Sequence[int]) -> list[Kappa]:
    """Fleiss' kappa of all experts, and Cohen's of each pair. `votes`: expert -> subject -> category."""
    experts = sorted(votes)
    if len(experts) < 2:
        return []
    shared = sorted(set.intersection(*(set(votes[expert]) for expert in experts)))
    place = {category: column for column, category in enumerate(scale)}
    counts = np.zeros((len(shared), len(scale)), dtype=int)
    for row, subject in enumerate(shared):
        for expert in experts:
            counts[row, place[votes[expert][subject]]] += 1
    value, observed = fleiss_kappa(counts)
    figures = [Kappa("fleiss_kappa", tuple(experts), value, observed, len(shared))]
    for one, other in combinations(experts, 2):
        both = sorted(set(votes[one]) & set(votes[other]))
        first, second = ([votes[expert][subject] for subject in both] for expert in (one, other))
        equal = sum(a == b for a, b in zip(first, second, strict=True))
        figures.append(
            Kappa(
                "cohen_kappa",
                (one, other),
                kappa(first, second, scale),
                equal / len(both) if both else None,
                len(both),
            )
        )
    return figures


def z_by_rater(composites: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Each rater's composites as z-scores over all instances of that rater; constant raters are left out."""
    by_rater = {}
    for rater, by_instance in composites.items():
        z = z_scores(list(by_instance.values()))
        if z is not None:
            by_rater[rater] = dict(zip(by_instance, map(float, z), strict=True))
    return by_rater


def mean_by_instance(z: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Instance -> mean over the raters who rated it."""
    values: dict[str, list[float]] = {}
    for by_instance in z.values():
        for instance, value in by_instance.items():
            values.setdefault(instance, []).append(value)
    return {instance: sum(items) / len(items) for instance, items in values.items()}


def group_agreement(
    one: Mapping[str, Mapping[str, float]], other: Mapping[str, Mapping[str, float]]
) -> Coefficient:
    """ICC(3,2) of two groups' mean z-scores over the instances that both rated (equation 2)."""
    shared = {instance for rater in one.values() for instance in rater} & {
        instance for rater in other.values() for instance in rater
    }
    means = [
        mean_by_instance(
            z_by_rater(
                {
                    rater: {instance: value for instance, value in by_instance.items() if instance in shared}
                    for rater, by_instance in group.items()
                }
            )
        )
        for group in (one, other)
    ]
    both = sorted(set(means[0]) & set(means[1]))
    return icc_3k([[means[0][instance], means[1][instance]] for instance in both])


def at_least_zero(estimate: Coefficient) -> Coefficient:
    """An ICC and its limits, 0 where they are below: as the paper prints limits."""
    value, low, high = (None if item is None else max(0.0, item) for item in estimate[:3])
    return Coefficient(value, low, high, estimate.n)


def pairwise_baseline(composites: Mapping[str, Mapping[str, float]]) -> Coefficient:
    """Mean ICC(3,2) over all pairs of raters who share at least two instances.

    The interval is the bootstrap's over pairs (percentiles). `n` counts the pairs; one without an ICC (no
    variation on what it shares) is left out. An ICC below 0 counts as 0: it has no lower bound, so a single
    pair with two instances could outweigh all others.
    """
    z = z_by_rater(composites)
    agreements = []
    for one, other in combinations(sorted(z), 2):
        shared = sorted(set(z[one]) & set(z[other]))
        if len(shared) >= 2:
            pair = icc_3k([[z[one][instance], z[other][instance]] for instance in shared])
            if pair.value is not None:
                agreements.append(max(0.0, pair.value))
    if not agreements:
        return Coefficient(None)
    values = np.asarray(agreements)
    interval = percentile_interval(resampling_weights("pairs of raters", len(values)) @ values / len(values))
    return Coefficient(float(values.mean()), interval.low, interval.high, len(values))


def composites(
    ratings: Iterable[tuple[str, Mapping[str, Mapping[str, float]]]],
) -> dict[str, dict[str, float]]:
    """(instance, rater -> axis -> rating) -> rater -> instance -> mean of the axes."""
    means: dict[str, dict[str, float]] = {}
    for instance, by_rater in ratings:
        for rater, axes in by_rater.items():
            means.setdefault(rater, {})[instance] = sum(axes.values()) / len(axes)
    return means


# ---------------------------------------------------------------------- with gaps


def rating_table(by_rater: Mapping[str, Mapping[str, float]]) -> Array:
    """Rater -> unit -> rating as (units, raters), NaN where a rater did not rate; both sorted by name."""
    units = sorted({unit for ratings in by_rater.values() for unit in ratings})
    return np.array(
        [[by_rater[rater].get(unit, np.nan) for rater in sorted(by_rater)] for unit in units], dtype=float
    ).reshape(len(units), len(by_rater))


def krippendorff_alpha(table: Array, metric: Metric, key: str) -> Coefficient:
    """Krippendorff's alpha: 1 - observed / expected disagreement (Krippendorff 2011, "Computing alpha").

    `table`: (units, raters), NaN where nobody rated. Units with one rating say nothing. `metric`: squared
    difference of the values (`interval`), or of their ranks among all ratings (`ordinal`). `key`: names what
    is resampled; the same for figures that are to be compared.
    """
    table = table[(~np.isnan(table)).sum(axis=1) >= 2] if table.size else table
    values = np.unique(table[~np.isnan(table)])
    n = len(table)
    if n == 0:
        return Coefficient(None)
    counts = (table[:, :, None] == values).sum(axis=1).astype(float)  # (units, values)
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    coincidences = (pairs / (raters - 1)[:, None, None]).reshape(n, -1)
    pairings = (_weights(key, n) @ coincidences).reshape(-1, len(values), len(values))
    return _estimate(_alphas(pairings, values, metric), n)


def _alphas(coincidences: Array, values: Array, metric: Metric) -> Array:
    totals = coincidences.sum(axis=2)
    places = (
        np.broadcast_to(values, totals.shape)
        if metric == "interval"
        else np.cumsum(totals, axis=1) - totals / 2
    )
    distance = (places[:, :, None] - places[:, None, :]) ** 2
    observed = (coincidences * distance).sum(axis=(1, 2))
    expected = np.einsum("rv,rw,rvw->r", totals, totals, distance) / (totals.sum(axis=1) - 1)
    return 1 - _ratio(observed, expected)


def mean_kappa(table: Array, scale: Sequence[float], weighting: Weighting, key: str) -> Coefficient:
    """Cohen's kappa with weights (Cohen 1968), the mean over all pairs of raters who share units.

    `table`: (units, raters), NaN where nobody rated. `scale`: all values, from lowest to highest;
    disagreement grows with the distance of their places, or with its square. `key`: as in
    `krippendorff_alpha`. Returns: `n` counts the pairs with a kappa.
    """
    places = np.arange(len(scale))
    distance = np.abs(places[:, None] - places).astype(float) ** (2 if weighting == "quadratic" else 1)
    weights = _weights(key, len(table))
    every = []
    for one, other in combinations(range(table.shape[1]), 2):
        both = ~np.isnan(table[:, [one, other]]).any(axis=1)
        if both.any():
            hits = [table[both, rater, None] == np.asarray(scale) for rater in (one, other)]
            cells = (hits[0][:, :, None] & hits[1][:, None, :]).reshape(both.sum(), -1)
            counts = (weights[:, both] @ cells.astype(float)).reshape(-1, len(scale), len(scale))
            every.append(_kappas(counts, distance))
    kappas = np.array([item for item in every if not np.isnan(item[0])])
    if not len(kappas):
        return Coefficient(None)
    return _estimate(_mean(kappas, axis=0), len(table))._replace(n=len(kappas))


def _kappas(counts: Array, distance: Array) -> Array:
    n = counts.sum(axis=(1, 2))
    observed = (counts * distance).sum(axis=(1, 2))
    chance = np.einsum("rv,rw,vw->r", counts.sum(axis=2), counts.sum(axis=1), distance)
    return 1 - _ratio(observed * n, chance)


def icc_of_raters(table: Array, key: str) -> Coefficient:
    """ICC(3,k) of all raters after z-scoring each, over the units that all of them rated."""
    complete = table[~np.isnan(table).any(axis=1)]
    if len(complete) < 2 or table.shape[1] < 2:
        return Coefficient(None, n=len(complete))
    groups = [complete[:, [rater]] for rater in range(table.shape[1])]
    return icc_of_groups(groups, key)


def icc_of_groups(groups: Sequence[Array], key: str) -> Coefficient:
    """ICC(3,k) of the groups' mean z-scores: `group_agreement` with the bootstrap's interval.

    `groups`: (units, raters) each, the same units; NaN where nobody rated. `key`: as in `krippendorff_alpha`.
    """
    rated = np.all([(~np.isnan(group)).any(axis=1) for group in groups], axis=0)
    groups, n = [group[rated] for group in groups], int(rated.sum())
    if n < 2:
        return Coefficient(None, n=n)
    weights = _weights(key, n)
    step = max(1, _BLOCK // (n * sum(group.shape[1] for group in groups)))
    parts = []
    for start in range(0, len(weights), step):
        block = weights[start : start + step]
        parts.append(_iccs(np.stack([_mean_z(group, block) for group in groups], axis=2), block))
    return _estimate(np.concatenate(parts), n)


def _mean_z(table: Array, weights: Array) -> Array:
    """(resamples, units): each rater's z-scores within the resample, then the mean over raters."""
    there = ~np.isnan(table)
    filled = np.where(there, table, 0.0)
    n = weights @ there
    mean = _ratio(weights @ filled, n)
    variance = _ratio(weights @ filled**2 - n * mean**2, n - 1)
    variance = np.where(variance > 1e-12 * (1 + mean**2), variance, np.nan)  # a rater who never varies
    z = (table - mean[:, None, :]) / np.sqrt(variance)[:, None, :]
    return _mean(z, axis=2)


def _iccs(scores: Array, weights: Array) -> Array:
    """ICC(3,k) of (resamples, units, k) under weights (resamples, units); units with a gap do not count."""
    weights = np.where(np.isnan(scores).any(axis=2), 0, weights)
    scores = np.nan_to_num(scores)
    n, k = weights.sum(axis=1), scores.shape[2]
    cases = scores.mean(axis=2)
    columns = _ratio(np.einsum("ru,ruk->rk", weights, scores), n[:, None])
    grand = columns.mean(axis=1)
    ms_cases = _ratio(k * (weights * (cases - grand[:, None]) ** 2).sum(axis=1), n - 1)
    residual = scores - cases[:, :, None] - columns[:, None, :] + grand[:, None, None]
    ms_error = _ratio(np.einsum("ru,ruk->r", weights, residual**2), (n - 1) * (k - 1))
    ms_cases = np.where(ms_cases > 1e-12 * np.maximum(1.0, ms_error), ms_cases, np.nan)
    iccs: Array = (ms_cases - ms_error) / ms_cases
    return iccs


def _weights(key: str, n: int) -> Array:
    return np.vstack([np.ones((1, n)), resampling_weights(key, n)]) if n else np.ones((1, 0))


def _ratio(above: Array, below: Array) -> Array:
    """NaN where there is nothing to divide by."""
    quotient = np.full(np.broadcast(above, below).shape, np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient


def _mean(values: Array, axis: int) -> Array:
    """The mean of what is there; NaN where nothing is."""
    there = ~np.isnan(values)
    return _ratio(np.where(there, values, 0.0).sum(axis=axis), there.sum(axis=axis))


def _estimate(values: Array, n: int) -> Coefficient:
    if np.isnan(values[0]):
        return Coefficient(None, n=n)
    again = values[1:][~np.isnan(values[1:])]
    if n < 2 or not len(again):
        return Coefficient(float(values[0]), n=n)
    interval = percentile_interval(again)
    return Coefficient(float(values[0]), interval.low, interval.high, n)
