"""How far ratings on a scale agree, where not everybody rates everything: alpha, weighted kappa, ICC.

Each figure is computed from weights of the units (what is rated): once with all weights 1, and once for each
resample of the units, whose 2.5th and 97.5th percentiles are the interval. Undefined values are None.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from medtasks_ext.stats.agreement import Estimate
from medtasks_ext.stats.bootstrap import LEVEL, resampling_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.stats.statistic import Array

Weighting = Literal["linear", "quadratic"]
Metric = Literal["ordinal", "interval"]
_BLOCK = 2**22  # numbers that are held at once


def rating_table(by_rater: Mapping[str, Mapping[str, float]]) -> Array:
    """Rater -> unit -> rating as (units, raters), NaN where a rater did not rate; both sorted by name."""
    units = sorted({unit for ratings in by_rater.values() for unit in ratings})
    return np.array(
        [[by_rater[rater].get(unit, np.nan) for rater in sorted(by_rater)] for unit in units], dtype=float
    ).reshape(len(units), len(by_rater))


def krippendorff_alpha(table: Array, metric: Metric, key: str) -> Estimate:
    """Krippendorff's alpha: 1 - observed / expected disagreement (Krippendorff 2011, "Computing alpha").

    Args:
        table: (units, raters), NaN where nobody rated. Units with one rating say nothing.
        metric: squared difference of the values (`interval`), or of their ranks among all ratings
            (`ordinal`).
        key: names what is resampled; the same for figures that are to be compared.
    """
    table = table[(~np.isnan(table)).sum(axis=1) >= 2] if table.size else table
    values = np.unique(table[~np.isnan(table)])
    n = len(table)
    if n == 0:
        return Estimate(None)
    counts = (table[:, :, None] == values).sum(axis=1).astype(float)  # (units, values)
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    coincidences = (pairs / (raters - 1)[:, None, None]).reshape(n, -1)
    found = (_weights(key, n) @ coincidences).reshape(-1, len(values), len(values))
    return _estimate(_alphas(found, values, metric), n)


def _alphas(coincidences: Array, values: Array, metric: Metric) -> Array:
    """(resamples, values, values) -> (resamples,), NaN where all ratings are the same."""
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


def mean_kappa(table: Array, scale: Sequence[float], weighting: Weighting, key: str) -> Estimate:
    """Cohen's kappa with weights (Cohen 1968), the mean over all pairs of raters who share units.

    Args:
        table: (units, raters), NaN where nobody rated.
        scale: all values, from lowest to highest; disagreement grows with the distance of their places, or
            with its square.
        key: as in `krippendorff_alpha`.

    Returns:
        `n` counts the pairs with a kappa.
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
        return Estimate(None)
    return _estimate(_mean(kappas, axis=0), len(table))._replace(n=len(kappas))


def _kappas(counts: Array, distance: Array) -> Array:
    """(resamples, values, values) -> (resamples,), NaN where both raters give one and the same value."""
    n = counts.sum(axis=(1, 2))
    observed = (counts * distance).sum(axis=(1, 2))
    chance = np.einsum("rv,rw,vw->r", counts.sum(axis=2), counts.sum(axis=1), distance)
    return 1 - _ratio(observed * n, chance)


def icc_of_raters(table: Array, key: str) -> Estimate:
    """ICC(3,k) of all raters after z-scoring each, over the units that all of them rated."""
    complete = table[~np.isnan(table).any(axis=1)]
    if len(complete) < 2 or table.shape[1] < 2:
        return Estimate(None, n=len(complete))
    groups = [complete[:, [rater]] for rater in range(table.shape[1])]
    return icc_of_groups(groups, key)


def icc_of_groups(groups: Sequence[Array], key: str) -> Estimate:
    """ICC(3,k) of the groups' mean z-scores: `stats.agreement.group_agreement` with the bootstrap's interval.

    Args:
        groups: (units, raters) each, the same units; NaN where nobody rated.
        key: as in `krippendorff_alpha`.
    """
    rated = np.all([(~np.isnan(group)).any(axis=1) for group in groups], axis=0)
    groups, n = [group[rated] for group in groups], int(rated.sum())
    if n < 2:
        return Estimate(None, n=n)
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
    found: Array = (ms_cases - ms_error) / ms_cases
    return found


def _weights(key: str, n: int) -> Array:
    """All weights 1, then those of the resamples."""
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


def _estimate(values: Array, n: int) -> Estimate:
    """The first value with the percentiles of the others; no interval over one unit."""
    if np.isnan(values[0]):
        return Estimate(None, n=n)
    again = values[1:][~np.isnan(values[1:])]
    if n < 2 or not len(again):
        return Estimate(float(values[0]), n=n)
    low, high = np.quantile(again, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(values[0]), float(low), float(high), n)
