"""Tests of two models on the same documents: McNemar by mid-p, sign flips, swapped documents.

If two models are equal, each document could as well have come out the other way round. These tests hold their
error rate with any number of documents; a bootstrap errs at 5 % in 11 % of the cases with 8 documents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from medtasks_ext.process import SEED
from medtasks_ext.stats.intervals import Interval, matched_difference
from medtasks_ext.stats.statistic import Array, Counts, as_they_are, mean_of_runs, ratios, share

MCNEMAR = "McNemar, mid-p"
EXACT_FLIPS, RANDOM_FLIPS = "sign flips, exact", "sign flips, Monte Carlo"
EXACT_SWAPS, RANDOM_SWAPS = "swapped documents, exact", "swapped documents, Monte Carlo"
#: Random patterns beside the observed one; up to as many patterns are enumerated.
FLIPS = 9_999
#: Documents of a task or group up to which they are tested one by one; beyond, the bootstrap is as good.
MOST_DOCUMENTS = 500
#: Scores that differ by less are equal: it is rounding.
EQUAL = 1e-12
_BLOCK = 2**20  # numbers that are worked on at once


@dataclass(frozen=True)
class PairedTest:
    p_value: float  # two-sided, above 0
    method: str  # name of the test
    interval: Interval | None = None  # 95 %, of the difference of two shares of right answers


@dataclass(frozen=True)
class Part:
    weight: float  # of the task in the group's score
    first: Counts  # counts of one model, by unit
    second: Counts  # of the other, its units in the same order


class _Points(NamedTuple):
    """What units add to both models' scores: 1 for a right answer of a plain mean, (units,) each."""

    first: Array
    second: Array
    counted: int


def document_test(parts: Sequence[Part], documents: int, metric: str = "score") -> PairedTest | None:
    """The test of two models on the documents of a task or group; None where the bootstrap is to be taken.

    - One task whose score is a mean of 0 and 1: McNemar by mid-p, whatever its size.
    - Means over documents, or over runs of them: sign flips of what each unit adds to the difference of the
      group's scores.
    - F1, pooled or a mean over labels: the predictions of each unit are swapped between the models, and the
      group's scores computed anew, over all labels that either model has. Counts of other kinds leave
      nothing to swap.
    """
    points = [_points(part, metric) for part in parts]
    if len(parts) == 1 and (only := points[0]) and np.isin([only.first, only.second], (0, 1)).all():
        differences = only.first - only.second
        won, lost = int((differences > 0).sum()), int((differences < 0).sum())
        return PairedTest(mid_p(won, lost), MCNEMAR, matched_difference(won, lost, only.counted))
    if documents > MOST_DOCUMENTS:
        return None
    known = [item for item in points if item is not None]
    if len(known) < len(parts):
        aligned = [part if item else _aligned(part, metric) for part, item in zip(parts, points, strict=True)]
        both = [part for part in aligned if part is not None]
        return _swaps(both, metric) if len(both) == len(parts) else None
    of_points = zip(parts, known, strict=True)
    return _sign_flips(
        np.concatenate([part.weight * (x.first - x.second) / x.counted for part, x in of_points])
    )


def _points(part: Part, metric: str) -> _Points | None:
    """None for corpus-level metrics, where what a unit adds depends on the other units."""
    counts = part.first, part.second
    if any(item.statistics[metric].value not in (share, mean_of_runs.value) for item in counts):
        return None
    # columns: a sum for each run, then the number of documents behind it; without runs one of each
    sums, sizes = zip(*(np.split(item.dense, 2, axis=1) for item in counts), strict=True)
    counted = int(sizes[0].any(axis=1).sum())
    if not np.array_equal(*sizes) or not counted:
        return None
    totals = sizes[0].sum(axis=0)
    scale = ratios(np.array(counted), totals * (totals > 0).sum())
    return _Points(sums[0] @ scale, sums[1] @ scale, counted)


def _aligned(part: Part, metric: str) -> Part | None:
    both = part.first, part.second
    if all(item.statistics[metric].counts is as_they_are for item in both):
        return part
    if any(item.statistics[metric].labels is None or not item.labels for item in both):
        return None
    labels = list(dict.fromkeys([*part.first.labels, *part.second.labels]))
    first, second = (Counts(_over(labels, item), item.statistics, tuple(labels)) for item in both)
    return Part(part.weight, first, second)


def _over(labels: Sequence[Hashable], counts: Counts) -> Array:
    """(units, 3 x labels): the columns of `label_counts` for more labels, 0 for those it lacks."""
    column = {label: place for place, label in enumerate(labels)}
    own = [column[label] for label in counts.labels]
    wider = np.zeros((counts.n_units, 3, len(labels)))
    wider[:, :, own] = counts.dense.reshape(counts.n_units, 3, len(own))
    return wider.reshape(counts.n_units, -1)


def mid_p(won: int, lost: int) -> float:
    """Two-sided mid-p value of McNemar's test: half of the probability of what was observed counts.

    The exact p-value is too large, by the steps of the binomial distribution (Fagerland, Lydersen and Laake,
    BMC Med. Res. Methodol. 13, 2013).
    """
    from scipy.special import bdtr, gammaln

    n = won + lost
    if won == lost:
        return 1.0
    log = gammaln(n + 1) - gammaln(won + 1) - gammaln(lost + 1) - n * np.log(2)
    return float(min(2 * bdtr(min(won, lost), n, 0.5) - np.exp(log), 1.0))


def _sign_flips(differences: Array) -> PairedTest:
    moved = differences[np.abs(differences) > EQUAL]
    # sums of one size but for rounding are as extreme as the observed one
    extreme = abs(moved.sum()) - 1e-9 * np.abs(moved).sum()
    p_value, exact = _share_as_extreme(
        len(moved), 1, lambda flipped: np.abs(moved.sum() - 2 * (flipped @ moved)) >= extreme
    )
    return PairedTest(p_value, EXACT_FLIPS if exact else RANDOM_FLIPS)


def _swaps(parts: Sequence[Part], metric: str) -> PairedTest:
    both = [(part.first.dense, part.second.dense) for part in parts]
    moved = [(second - first)[(first != second).any(axis=1)] for first, second in both]
    ends = np.cumsum([len(rows) for rows in moved])
    values = [[item.statistics[metric].value for item in (part.first, part.second)] for part in parts]

    def difference(swapped: Array) -> Array:
        total = np.zeros(len(swapped))
        for part, (first, second), rows, some, (one, other) in zip(
            parts, both, moved, np.split(swapped, ends[:-1], axis=1), values, strict=True
        ):
            change = some @ rows
            total += part.weight * (one(first.sum(axis=0) + change) - other(second.sum(axis=0) - change))
        return total

    n = int(ends[-1])
    extreme = abs(difference(np.zeros((1, n)))[0]) - 1e-9
    width = max(rows.shape[1] for rows in moved)
    p_value, exact = _share_as_extreme(n, width, lambda swapped: np.abs(difference(swapped)) >= extreme)
    return PairedTest(p_value, EXACT_SWAPS if exact else RANDOM_SWAPS)


def _share_as_extreme(n: int, width: int, is_extreme: Callable[[Array], Array]) -> tuple[float, bool]:
    """How many of the patterns of n zeros and ones are as extreme as the observed one, and whether of all.

    `n`: units that can be turned. `width`: numbers that `is_extreme` holds for each pattern, beside the
    pattern. `is_extreme`: (patterns, n) -> (patterns,); true for the observed pattern, which is all zeros.
    """
    if 2**n <= FLIPS + 1:
        every = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return float(np.mean(is_extreme(every))), True
    generator = np.random.Generator(np.random.Philox(key=SEED))
    step, hits = max(1, _BLOCK // max(n, width)), 0
    for start in range(0, FLIPS, step):
        drawn = generator.integers(0, 256, (min(step, FLIPS - start), -(-n // 8)), np.uint8)
        hits += int(is_extreme(np.unpackbits(drawn, axis=1, count=n)).sum())
    return (1 + hits) / (1 + FLIPS), False
