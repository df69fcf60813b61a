"""Agreement between raters: rank correlation, intraclass correlation, kappa (MedHELM, Methods).

Undefined values (a rater who never varies, too few instances) are None, never a number.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
RESAMPLES, SEED = 2000, 0


class Estimate(NamedTuple):
    """A value with its 95 % interval; both limits None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


def z_scores(values: Sequence[float]) -> np.ndarray | None:
    """(x - mean) / s.d. with the sample s.d. (ddof 1); None if a rater never varies (equation 1)."""
    array = np.asarray(values, dtype=float)
    if len(array) < 2 or np.ptp(array) == 0:
        return None
    standardised: np.ndarray = (array - array.mean()) / array.std(ddof=1)
    return standardised


def icc_3k(ratings: Sequence[Sequence[float]] | np.ndarray) -> Estimate:
    """ICC(3,k): two-way mixed effects, consistency of the mean of k raters (Shrout & Fleiss 1979).

    (MS_cases - MS_error) / MS_cases, with the interval from the F distribution (McGraw & Wong 1996).
    The lower limit can be negative; the paper prints 0 then.

    Args:
        ratings: instances x raters, no gaps.
    """
    table = np.asarray(ratings, dtype=float)
    n = len(table)
    if table.ndim != 2 or n < 2 or table.shape[1] < 2:
        return Estimate(None, n=n)
    k = table.shape[1]
    cases, raters = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    ms_cases = k * float(((cases - table.mean()) ** 2).sum()) / (n - 1)
    residual = table - cases - raters + table.mean()
    ms_error = float((residual**2).sum()) / ((n - 1) * (k - 1))
    if ms_cases <= 1e-12 * max(1.0, ms_error):
        return Estimate(None, n=n)
    value = (ms_cases - ms_error) / ms_cases
    if ms_error <= 1e-12 * ms_cases:
        return Estimate(1.0, 1.0, 1.0, n)
    low, high = icc_3k_interval(value, n, k)
    return Estimate(value, low, high, n)


def icc_3k_interval(icc: float, n: int, k: int) -> tuple[float, float]:
    """The 95 % interval of an ICC(3,k) of n instances and k raters, from the value alone."""
    from scipy.stats import f

    ratio, cases, errors = 1 / (1 - icc), n - 1, (n - 1) * (k - 1)
    upper = (1 + LEVEL) / 2
    return (
        1 - float(f.ppf(upper, cases, errors)) / ratio,
        1 - 1 / (ratio * float(f.ppf(upper, errors, cases))),
    )


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation, ties by mean rank."""
    from scipy.stats import spearmanr

    if len(one) < 2 or len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return float(spearmanr(one, other).statistic)


def kappa(
    one: Sequence[float], other: Sequence[float], scale: Sequence[float], *, quadratic: bool = False
) -> float | None:
    """Cohen's kappa over the values of a scale; with quadratic weights if wanted."""
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


def subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    """All non-empty subsets, the full one last: the sub-juries."""
    return [chosen for size in range(1, len(names) + 1) for chosen in combinations(names, size)]


def z_by_rater(composites: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Each rater's composites as z-scores over all instances of that rater; constant raters are left out."""
    found = {}
    for rater, by_instance in composites.items():
        z = z_scores(list(by_instance.values()))
        if z is not None:
            found[rater] = dict(zip(by_instance, map(float, z), strict=True))
    return found


def mean_by_instance(z: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Instance -> mean over the raters who rated it."""
    values: dict[str, list[float]] = {}
    for by_instance in z.values():
        for instance, value in by_instance.items():
            values.setdefault(instance, []).append(value)
    return {instance: sum(items) / len(items) for instance, items in values.items()}


def group_agreement(
    one: Mapping[str, Mapping[str, float]], other: Mapping[str, Mapping[str, float]]
) -> Estimate:
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


def at_least_zero(estimate: Estimate) -> Estimate:
    """An ICC and its limits, 0 where they are below: as the paper prints limits."""
    value, low, high = (None if item is None else max(0.0, item) for item in estimate[:3])
    return Estimate(value, low, high, estimate.n)


def pairwise_baseline(composites: Mapping[str, Mapping[str, float]], *, clamp: bool = True) -> Estimate:
    """Mean ICC(3,2) over all pairs of raters who share at least two instances.

    The interval is the bootstrap's over pairs (2,000 resamples, percentiles). `n` counts the pairs; one
    without an ICC (no variation on what it shares) is left out.

    Args:
        composites: rater -> instance -> mean of the axes.
        clamp: an ICC below 0 counts as 0: it has no lower bound, so a single pair with two instances could
            outweigh all others.
    """
    z = z_by_rater(composites)
    found = []
    for one, other in combinations(sorted(z), 2):
        shared = sorted(set(z[one]) & set(z[other]))
        if len(shared) >= 2:
            pair = icc_3k([[z[one][instance], z[other][instance]] for instance in shared])
            if pair.value is not None:
                found.append(max(0.0, pair.value) if clamp else pair.value)
    if not found:
        return Estimate(None)
    values = np.asarray(found)
    rng = np.random.default_rng(SEED)
    means = values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def composites(
    ratings: Iterable[tuple[str, Mapping[str, Mapping[str, float]]]],
) -> dict[str, dict[str, float]]:
    """(instance, rater -> axis -> rating) -> rater -> instance -> mean of the axes."""
    found: dict[str, dict[str, float]] = {}
    for instance, by_rater in ratings:
        for rater, axes in by_rater.items():
            found.setdefault(rater, {})[instance] = sum(axes.values()) / len(axes)
    return found
