"""Ranks of models with bootstrap intervals, which say how far an order depends on documents; win rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.stats.bootstrap import LEVEL
from medtasks_ext.stats.permutation import EQUAL

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from medtasks_ext.stats.statistic import Array

_DIGITS = 12  # scores that differ in later ones are equal: it is rounding


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

    Args:
        scores: (models,) or (models, resamples).

    Raises:
        ValueError: a score is not finite.
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


def win_shares(scores: ArrayLike, *, tie: float = 0.5) -> Array:
    """The share of the tasks that the row wins against the column, (models, models).

    Args:
        scores: (models, tasks).
        tie: how much of a win a tie is.
    """
    scores = np.asarray(scores, dtype=float)
    lead = scores[:, None, :] - scores[None, :, :]
    rates: Array = ((lead > EQUAL) + (np.abs(lead) <= EQUAL) * tie).mean(axis=2)
    return rates
