"""MedHELM's suite figures (Nature Medicine 2026, Table 1 and Methods): win rates, averages, effects.

The conventions are those that reproduce the published tables; `tests/test_medhelm_figures.py`
checks each. Scores are a matrix (models, benchmarks) on 0-1, jury scores normalised first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.stats.comparison import detectable_difference, win_shares

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class SuiteFigures:
    """One model's line of Table 1."""

    win_rate: float  # mean over benchmarks of (models beaten + half of the ties) / (models - 1)
    win_sd: float  # population s.d. of the model's pairwise win rates, in which a tie is no win
    macro_average: float  # mean of the normalised scores
    macro_sd: float  # their sample s.d.


def suite_figures(scores: Mapping[str, Sequence[float]]) -> dict[str, SuiteFigures]:
    """The figures of models that were run on the same benchmarks.

    Win rates count a tie as half a win and their s.d. counts it as none: the paper's Methods say
    "at least as good" for both, but only these two rules give the printed values.

    Args:
        scores: model -> normalised score per benchmark, unrounded, in one order for all models.

    Raises:
        ValueError: fewer than two models, or rows of different length.
    """
    if len(scores) < 2:
        raise ValueError("win rates need at least two models")
    table = np.array(list(scores.values()), dtype=float)
    if table.ndim != 2:
        raise ValueError("every model needs a score on every benchmark")
    won, won_alone = win_shares(table), win_shares(table, tie=0.0)
    figures = {}
    for index, model in enumerate(scores):
        figures[model] = SuiteFigures(
            win_rate=float(np.delete(won[index], index).mean()),
            win_sd=float(np.delete(won_alone[index], index).std()),
            macro_average=float(table[index].mean()),
            macro_sd=float(table[index].std(ddof=1)) if table.shape[1] > 1 else 0.0,
        )
    return figures


@dataclass(frozen=True)
class DetectableEffect:
    """The smallest difference between two models that a benchmark can show, over pairs of models."""

    mean: float
    sd: float


def minimum_detectable_effect(scores: ArrayLike) -> DetectableEffect:
    """(z_alpha + z_beta) x s.d. of the per-document differences / sqrt(n), for each pair of models.

    Both standard deviations are those of the population, as published. The published figures map a
    jury score to 0-1 by x / 5; pass scores on the scale that the effect should have.

    Args:
        scores: (models, documents), the same documents for all models.

    Raises:
        ValueError: fewer than two models or no document.
    """
    table: NDArray[np.float64] = np.asarray(scores, dtype=float)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] == 0:
        raise ValueError("at least two models on the same documents are needed")
    effects = [
        detectable_difference((table[one] - table[other]).std() / np.sqrt(table.shape[1]))
        for one, other in combinations(range(len(table)), 2)
    ]
    return DetectableEffect(float(np.mean(effects)), float(np.std(effects)))
