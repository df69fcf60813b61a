"""How far one rater's yes or no agrees with those of others, vote by vote: the F1 of both answers.

As the authors of HealthBench define it (arXiv 2505.08775, `healthbench_meta_eval.py`): each pair of an answer
and a vote counts once. An answer that the rater, or the others, never gave has no F1; then there is no macro
F1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.stats.bootstrap import Interval, percentile_interval, resampling_weights

if TYPE_CHECKING:
    from medtasks_ext.stats.statistic import Array


@dataclass(frozen=True)
class Agreement:
    """A rater's agreement with votes."""

    yes: float | None  # F1 of yes, 0-1
    no: float | None  # F1 of no
    macro: float | None  # mean of both
    pairs: int  # of an answer and a vote


def cells(answer: bool, votes: Sequence[bool]) -> tuple[int, int, int, int]:
    """Pairs of an answer with each vote: both yes, yes against no, no against yes, both no."""
    yes, no = sum(votes), len(votes) - sum(votes)
    return (yes, no, 0, 0) if answer else (0, 0, yes, no)


def f1_of_both(sums: Array) -> Array:
    """(…, 4) sums of `cells` -> (…, 3): F1 of yes, of no, and their mean; NaN where one is not defined."""
    both_yes, only_mine, only_theirs, both_no = np.moveaxis(np.asarray(sums, dtype=float), -1, 0)
    apart = only_mine + only_theirs
    found = []
    for hits, mine, theirs in (
        (both_yes, both_yes + only_mine, both_yes + only_theirs),
        (both_no, both_no + only_theirs, both_no + only_mine),
    ):
        total = np.where((mine > 0) & (theirs > 0), 2 * hits + apart, np.nan)
        found.append(2 * hits / total)
    return np.stack([*found, (found[0] + found[1]) / 2], axis=-1)


def agreement(rows: Sequence[tuple[int, int, int, int]]) -> Agreement:
    """Agreement over rows of `cells`."""
    table = np.asarray(rows, dtype=float).reshape(-1, 4)
    yes, no, macro = (None if np.isnan(value) else float(value) for value in f1_of_both(table.sum(axis=0)))
    return Agreement(yes, no, macro, int(table.sum()))


def macro_interval(rows: Sequence[tuple[int, int, int, int]], key: str) -> Interval | None:
    """95 % interval of the macro F1, rows drawn anew; None where it has no value on some resample.

    Args:
        rows: of `cells`, one for each thing that was rated.
        key: of the draws: raters of the same things are drawn alike.
    """
    if len(rows) < 2:
        return None
    values = f1_of_both(resampling_weights(key, len(rows)).astype(float) @ np.asarray(rows, dtype=float))[
        :, 2
    ]
    return None if np.isnan(values).any() else percentile_interval(values)
