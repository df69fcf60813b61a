"""p-values of several comparisons, adjusted for their number.

A family is all comparisons from which one would have picked the striking ones: all tasks of a table, or
all pairs of a leaderboard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from medtasks_ext.stats.statistic import Array


def holm(p_values: ArrayLike) -> Array:
    """Holm's step-down adjustment (Scand. J. Statist. 1979): below alpha, no finding is false but with alpha.

    It holds for tests that depend on each other, too, as those on shared documents do.

    Args:
        p_values: (m,), one family.

    Returns:
        (m,) adjusted p-values in the same order.

    Raises:
        ValueError: it is no list of p-values.
    """
    p_values = _checked(p_values)
    order, left = np.argsort(p_values, kind="stable"), len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * left), 1)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> Array:
    """Benjamini and Hochberg's step-up adjustment (J. R. Statist. Soc. B 1995).

    Of the findings below alpha, a share of alpha is false on average. As `false_discovery_control` of
    `scipy.stats` has it, whose import takes longer than all tests of a report.

    Args:
        p_values: (m,), one family.

    Returns:
        (m,) adjusted p-values in the same order.

    Raises:
        ValueError: it is no list of p-values.
    """
    p = _checked(p_values)
    order = np.argsort(p)
    raised = p[order] * (len(p) / np.arange(1, len(p) + 1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return np.clip(adjusted, 0, 1)


def adjust_pairs(p_values: ArrayLike, adjust: Callable[[Array], Array]) -> Array:
    """Adjust the p-values of all pairs of models, each pair counted once.

    Args:
        p_values: (models, models), symmetric, as in `comparison.Pairs`.
        adjust: `holm` or `benjamini_hochberg`.

    Returns:
        (models, models), symmetric; 1 on the diagonal.
    """
    p_values = np.asarray(p_values, dtype=float)
    adjusted, pairs = np.ones(p_values.shape), np.triu_indices(len(p_values), 1)
    adjusted[pairs] = adjust(p_values[pairs])
    adjusted.T[pairs] = adjusted[pairs]
    return adjusted


def _checked(p_values: ArrayLike) -> Array:
    found = np.asarray(p_values, dtype=float)
    if found.ndim != 1 or not ((found >= 0) & (found <= 1)).all():
        raise ValueError("p-values are a list of numbers from 0 to 1")
    return found
