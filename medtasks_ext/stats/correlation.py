"""Rank correlation with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medtasks_ext.stats.bootstrap import LEVEL, Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Correlation(NamedTuple):
    """Spearman's rank correlation."""

    value: float
    interval: Interval | None  # None for fewer than four points
    p_value: float  # two-sided
    n: int


def rank_correlation(one: ArrayLike, other: ArrayLike) -> Correlation | None:
    """Spearman's correlation, ties with their mean rank; None where one of the two does not vary.

    The interval is Fisher's z with the variance (1 + r² / 2) / (n - 3) of Bonett and Wright (Psychometrika
    2000), the p-value that of Student's t with n - 2 degrees of freedom.

    Raises:
        ValueError: the lists are not of one length, or a value is not finite.
    """
    from scipy.special import ndtri
    from scipy.stats import spearmanr

    x, y = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if x.shape != y.shape or x.ndim != 1 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("two lists of one length with finite values are needed")
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    found = spearmanr(x, y)
    value = float(found.statistic)
    if n < 4 or abs(value) >= 1:
        return Correlation(value, None if n < 4 else Interval(value, value), float(found.pvalue), n)
    half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt((1 + value**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Correlation(value, Interval(float(low), float(high)), float(found.pvalue), n)
