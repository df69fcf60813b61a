"""Ranks and win rates of models with bootstrap intervals: how far an order depends on the test documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.results.bootstrap import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from medtasks_ext.metrics.statistic import Array

_DIGITS = 12  # scores that differ in later ones are equal: it is rounding


@dataclass(frozen=True)
class Ranking:
    """Ranks of models, 1 the best.

    Attributes:
        rank: (models,) by the scores on all documents; models with equal scores share their mean rank.
        low: (models,) the best rank of the 95 % percentile interval.
        high: (models,) the worst.
        best: (models,) share of the resamples in which the model is first; models that share the first
            place share it equally. They add up to 1.
    """

    rank: Array
    low: Array
    high: Array
    best: Array


@dataclass(frozen=True)
class WinRates:
    """Mean over tasks of the share of other models that a model beats, a tie counting half.

    Attributes:
        rate: (models,) by the scores on all documents.
        low: (models,) lower ends of the 95 % percentile intervals.
        high: (models,) upper ends.
    """

    rate: Array
    low: Array
    high: Array


def ranks(scores: ArrayLike) -> Array:
    """Ranks in each column, 1 for the highest score, ties with their mean rank.

    Args:
        scores: (models,) or (models, resamples).

    Raises:
        ValueError: a score is not finite.
    """
    from scipy.stats import rankdata

    scores = np.asarray(scores, dtype=float)
    if not np.isfinite(scores).all():
        raise ValueError("a score is missing; rank models on what all of them have")
    return rankdata(-np.round(scores, _DIGITS), axis=0)


def ranking(scores: ArrayLike, resampled: ArrayLike) -> Ranking:
    """Rank models by their score, and again on every resample.

    Interval ends are ranks that occurred: quantiles are rounded outwards.

    Args:
        scores: (models,), on all documents.
        resampled: (models, resamples), drawn alike for all.

    Raises:
        ValueError: a score is not finite.
    """
    again = ranks(resampled)
    low = np.quantile(again, (1 - LEVEL) / 2, axis=1, method="lower")
    high = np.quantile(again, (1 + LEVEL) / 2, axis=1, method="higher")
    first = again == again.min(axis=0)
    return Ranking(ranks(scores), low, high, (first / first.sum(axis=0)).mean(axis=1))


def win_rates(tasks: Iterable[tuple[ArrayLike, ArrayLike]]) -> WinRates:
    """Win rates over tasks that all models were run on, as MedHELM counts them (`medhelm.suite_figures`).

    Args:
        tasks: of each task the scores (models,) and the resampled scores (models, resamples), the models
            in one order.

    Raises:
        ValueError: fewer than two models, no task, or a score that is not finite.
    """
    n, rate, resampled = 0, np.zeros(1), np.zeros(1)
    for scores, values in tasks:  # one at a time: all tasks of a leaderboard would fill the memory
        n, rate, resampled = n + 1, rate + _beaten(scores), resampled + _beaten(values)
    if not n:
        raise ValueError("win rates need at least one task")
    low, high = np.quantile(resampled / n, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    return WinRates(rate / n, low, high)


def _beaten(scores: ArrayLike) -> Array:
    """The share of the others that each model beats: a mean rank counts a tie as half a win."""
    found = ranks(scores)
    if len(found) < 2:
        raise ValueError("win rates need at least two models")
    return (len(found) - found) / (len(found) - 1)
