"""A monotone map from one rater's scores to another's, learned on answers that both rated.

Isotonic regression (Barlow et al., Statistical Inference under Order Restrictions, 1972): of all maps that
never fall, the one nearest to the other rater's scores. It assumes nothing else of the two scales.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medtasks_ext.seed import SEED
from medtasks_ext.stats.bootstrap import RESAMPLES, percentile_interval, resampling_weights
from medtasks_ext.stats.counts import by_unit
from medtasks_ext.stats.intervals import Interval
from medtasks_ext.stats.runs import mean_of_runs

if TYPE_CHECKING:
    from medtasks_ext.stats.statistic import Array

#: With fewer anchors the map says more of these than of the raters.
FEWEST_ANCHORS = 30
#: Different scores of the rater who is mapped, below which there is no map to speak of.
FEWEST_LEVELS = 3
FOLDS = 5


@dataclass(frozen=True)
class Anchors:
    """Answers that both rated, on 0-1."""

    own: Array  # (n,) scores of the rater who is mapped
    other: Array  # (n,) of the rater on whose scale they are placed
    units: Sequence[Hashable]  # (n,) which answers belong together: those to one document


class Errors(NamedTuple):
    """Root mean square distances from the other rater, of answers that the map was not learned on."""

    calibrated: float  # of mapped scores
    as_they_are: float  # of scores as they are


def monotone_map(own: Array, other: Array, weights: Array, at: Array) -> Array:
    """The map learned on anchors, at some scores: straight between anchors, level beyond them.

    Args:
        own: (n,) scores.
        other: (n,) what they are mapped to.
        weights: (n,) how much each anchor counts; at least one does.
        at: (m,) scores.

    Returns:
        (m,) on the other rater's scale.
    """
    from sklearn.isotonic import isotonic_regression

    used = weights > 0
    levels, place = np.unique(own[used], return_inverse=True)
    total = np.bincount(place, weights[used])
    means = np.bincount(place, weights[used] * other[used]) / total
    mapped: Array = np.interp(at, levels, isotonic_regression(means, sample_weight=total))
    return mapped


def out_of_sample_errors(anchors: Anchors) -> Errors:
    """Five-fold cross-validation, the answers to one document kept together."""
    names = list(dict.fromkeys(anchors.units))
    fold_of = dict(zip(names, np.random.default_rng(SEED).permutation(len(names)) % FOLDS, strict=True))
    folds = np.array([fold_of[unit] for unit in anchors.units])
    mapped = np.empty(len(folds))
    for fold in range(FOLDS):
        out = folds == fold
        if out.any():
            mapped[out] = monotone_map(anchors.own, anchors.other, (~out).astype(float), anchors.own[out])
    return Errors(_distance(mapped, anchors.other), _distance(anchors.own, anchors.other))


def _distance(one: Array, other: Array) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))


def calibrated_score(
    anchors: Anchors, scores: Array, runs: Array, units: Array, dataset: str
) -> tuple[float, Interval | None]:
    """The score of a task on the other rater's scale: the mean over runs of mapped scores.

    The interval draws anchors and documents anew, each with its own unit, and learns the map on each draw.

    Args:
        anchors: of the map.
        scores: (n,) of the task's answers, on 0-1.
        runs: (n,) run of the benchmark that each belongs to; one value where there are none.
        units: (n,) which documents are resampled together.
        dataset: its id, by which documents are drawn as everywhere.
    """
    plain = np.ones(len(anchors.own))
    mapped = monotone_map(anchors.own, anchors.other, plain, scores)
    member = (runs[:, None] == np.unique(runs)).astype(float)
    value = float(mean_of_runs.value(np.concatenate([mapped @ member, member.sum(axis=0)])))
    n_units = len(by_unit(np.ones((len(scores), 1)), units))
    if n_units < 2:
        return value, None
    distinct, anchor_of = np.unique([str(unit) for unit in anchors.units], return_inverse=True)
    _, first, place = np.unique(units, return_index=True, return_inverse=True)
    of_unit = np.argsort(np.argsort(first))[place]
    drawn = resampling_weights(dataset, n_units)[:, of_unit].astype(float)
    of_anchors = resampling_weights("anchors", len(distinct))[:, anchor_of].astype(float)
    levels, level_of = np.unique(scores, return_inverse=True)
    maps = np.stack([monotone_map(anchors.own, anchors.other, row, levels) for row in of_anchors])
    sums = np.hstack([(drawn * maps[:, level_of]) @ member, drawn @ member])
    assert len(sums) == RESAMPLES
    return value, percentile_interval(mean_of_runs.value(sums))
