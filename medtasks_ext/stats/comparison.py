"""Two models on the same documents, or all pairs of many: difference, interval and p-value; ranks.

Up to `MOST_DOCUMENTS` documents are tested one by one: if two models are equal, each could as well have come
out the other way round. More are compared on the resamples that both share (`stats.bootstrap`). Differences
are the first minus the second, of scores on 0-1; docs/compare.md says how intervals and p-values follow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from medtasks_ext.process import SEED
from medtasks_ext.stats.intervals import LEVEL, Interval, Z, matched_difference
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
BOOTSTRAP = "paired bootstrap"
#: z for a two-sided test at 5 % and for 80 % power, as MedHELM's published code rounds them.
Z_ALPHA, Z_BETA = 1.96, 0.84
#: Fewer resamples than these do not determine a tail.
FEWEST_FOR_TAIL = 500
#: Of fewer units Student's distribution says nothing that is of use.
FEWEST_UNITS = 5
#: Smaller p-values are of no use, and no normal tail is that exact.
LEAST_P_VALUE = 1e-12
#: Below it a difference is told from none.
ALPHA = 0.05
_DIGITS = 12  # scores that differ in later ones are equal: it is rounding


@dataclass(frozen=True)
class Comparison:
    """The first model minus the second."""

    difference: float  # of the scores on all documents
    interval: Interval  # of 95 %; it holds 0 where p is 0.05 or more, and only there
    p_value: float  # two-sided
    method: str  # where the p-value is from
    detectable: float  # the smallest true difference that would be found with 80 % power


@dataclass(frozen=True)
class Pairs:
    """All pairs of models; each matrix is (models, models), and row minus column."""

    difference: Array  # of the scores on all documents
    low: Array  # lower ends of the 95 % intervals
    high: Array  # upper ends
    p_value: Array  # two-sided; 1 on the diagonal


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


def document_test(parts: Sequence[Part], documents: int) -> PairedTest | None:
    """The test of two models on the documents of a task or group; None where the bootstrap is to be taken.

    - One task whose score is a mean of 0 and 1: McNemar by mid-p, whatever its size.
    - Means over documents, or over runs of them: sign flips of what each unit adds to the difference.
    - F1, pooled or a mean over labels: the predictions of each unit are swapped between the models, and the
      scores computed anew, over all labels that either model has.
    """
    points = [_points(part) for part in parts]
    if len(parts) == 1 and (only := points[0]) and np.isin([only.first, only.second], (0, 1)).all():
        differences = only.first - only.second
        won, lost = int((differences > 0).sum()), int((differences < 0).sum())
        return PairedTest(mid_p(won, lost), MCNEMAR, matched_difference(won, lost, only.counted))
    if documents > MOST_DOCUMENTS:
        return None
    known = [item for item in points if item is not None]
    if len(known) < len(parts):
        aligned = [part if item else _aligned(part) for part, item in zip(parts, points, strict=True)]
        both = [part for part in aligned if part is not None]
        return _swaps(both) if len(both) == len(parts) else None
    of_points = zip(parts, known, strict=True)
    return _sign_flips(
        np.concatenate([part.weight * (x.first - x.second) / x.counted for part, x in of_points])
    )


def _points(part: Part) -> _Points | None:
    """None for corpus-level metrics, where what a unit adds depends on the other units."""
    counts = part.first, part.second
    if any(item.statistics["score"].value not in (share, mean_of_runs.value) for item in counts):
        return None
    # columns: a sum for each run, then the number of documents behind it; without runs one of each
    sums, sizes = zip(*(np.split(item.dense, 2, axis=1) for item in counts), strict=True)
    counted = int(sizes[0].any(axis=1).sum())
    if not np.array_equal(*sizes) or not counted:
        return None
    totals = sizes[0].sum(axis=0)
    scale = ratios(np.array(counted), totals * (totals > 0).sum())
    return _Points(sums[0] @ scale, sums[1] @ scale, counted)


def _aligned(part: Part) -> Part | None:
    both = part.first, part.second
    if all(item.statistics["score"].counts is as_they_are for item in both):
        return part
    if any(item.statistics["score"].labels is None or not item.labels for item in both):
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


def _swaps(parts: Sequence[Part]) -> PairedTest:
    both = [(part.first.dense, part.second.dense) for part in parts]
    moved = [(second - first)[(first != second).any(axis=1)] for first, second in both]
    ends = np.cumsum([len(rows) for rows in moved])
    values = [[item.statistics["score"].value for item in (part.first, part.second)] for part in parts]

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


def bootstrap_p_value(differences: ArrayLike) -> Array:
    """Two-sided p-values, (...), of differences, (..., resamples): how far their interval is from holding 0.

    Twice the share of resamples on the rarer side of 0, where those at 0 count for both sides, and the
    observed data count as one more resample (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    section 15.4). Where all lie on one side, their count is too coarse to be adjusted for many comparisons:
    the normal distribution with the resamples' mean and standard deviation says how far 0 is out in the tail
    (section 12.4).
    """
    differences = np.asarray(differences, dtype=float)
    resamples = differences.shape[-1]
    rarer = np.minimum((differences <= EQUAL).sum(axis=-1), (differences >= -EQUAL).sum(axis=-1))
    p_values: Array = np.minimum(1.0, 2 / (resamples + 1) * (1 + rarer))
    if resamples < FEWEST_FOR_TAIL or rarer.all():
        return p_values
    from scipy.special import erfc

    centre, spread = np.abs(differences.mean(axis=-1)), differences.std(axis=-1, ddof=1)
    # where they do not vary, the tail is 1
    z = np.divide(centre, spread, out=np.zeros(np.shape(centre)), where=spread > EQUAL)
    tail = np.maximum(erfc(z / np.sqrt(2)), LEAST_P_VALUE)
    return np.asarray(np.where(rarer == 0, np.minimum(p_values, tail), p_values))


def least_half(tasks: Iterable[tuple[float, int]]) -> float:
    """Half of the width that the interval of a difference has at least.

    It is that of one document more in each task, (weight in the score, documents), whose scores differ as far
    as can be. Without it two models with the same answers would differ by nothing, for sure.
    """
    return Z * sqrt(sum(weight**2 / (n * (n + 1)) for weight, n in tasks if n))


def _ends(difference: Array, resampled: Array, least: float, units: int | None) -> tuple[Array, Array]:
    """Ends of the intervals of differences, (...), from their resamples, (..., resamples)."""
    ends = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=-1)
    wider = _student(units) if units else 1.0
    below, above = (np.maximum(wider * far, least) for far in (difference - ends[0], ends[1] - difference))
    low: Array = np.minimum(ends[0], np.maximum(difference - below, -1.0))
    high: Array = np.maximum(ends[1], np.minimum(difference + above, 1.0))
    return low, high


@lru_cache(maxsize=512)
def _student(units: int) -> float:
    """How much wider Student's interval of a mean is than what a bootstrap of so many units gives."""
    from scipy.special import stdtrit

    units = max(units, FEWEST_UNITS)
    return float(stdtrit(units - 1, (1 + LEVEL) / 2) / Z * sqrt(units / (units - 1)))


def agreed(low: ArrayLike, high: ArrayLike, p_value: ArrayLike) -> tuple[Array, Array, Array]:
    """Intervals and p-values, (...) each, that say the same of 0: the one that claims less decides."""
    low, high, p_value = (np.asarray(values, dtype=float) for values in (low, high, p_value))
    apart, told = (low > 0) | (high < 0), p_value < ALPHA
    reach = apart & ~told
    return (
        np.where(reach, np.minimum(low, 0.0), low),
        np.where(reach, np.maximum(high, 0.0), high),
        np.where(told & ~apart, ALPHA, p_value),
    )


def compare(
    scores: Sequence[float],
    resampled: Sequence[Array],
    least: float = 0.0,
    units: int | None = None,
    test: PairedTest | None = None,
) -> Comparison:
    """Compare two models by a score of any kind: of a task, or of a group.

    Args:
        scores: of both models, on all documents.
        resampled: the same on each resample, drawn alike for both, (resamples,) each.
        least: `least_half` of its tasks; no end goes beyond 1 for that.
        units: documents, or clusters of them; of few, the interval is wider.
        test: of the documents themselves, whose p-value and interval go before those of the resamples.
    """
    pairs = all_pairs(scores, resampled, least, units)
    low, high, p_value = (matrix[0, 1] for matrix in (pairs.low, pairs.high, pairs.p_value))
    if test is not None:
        if found := test.interval:
            low, high = found.low, found.high
        low, high, p_value = agreed(low, high, test.p_value)
    error = float(np.std(resampled[0] - resampled[1], ddof=1))
    return Comparison(
        difference=float(pairs.difference[0, 1]),
        interval=Interval(float(low), float(high)),
        p_value=float(p_value),
        method=test.method if test else BOOTSTRAP,
        detectable=(Z_ALPHA + Z_BETA) * error,  # MedHELM's definition (Nature Medicine 2026, Methods)
    )


def all_pairs(
    scores: Sequence[float] | Array,
    resampled: Sequence[Array] | Array,
    least: float = 0.0,
    units: int | None = None,
) -> Pairs:
    """Compare all pairs of models: scores (models,), on all documents; resampled (models, resamples).

    `least` and `units` as in `compare`. Its interval of a difference is that of the resamples, as much wider
    as Student's distribution asks of so few documents.
    """
    scores, resampled = np.asarray(scores, dtype=float), np.asarray(resampled, dtype=float)
    n = len(scores)
    low, high, p_value = np.zeros((n, n)), np.zeros((n, n)), np.ones((n, n))
    for row in range(n - 1):
        others = slice(row + 1, n)
        differences = resampled[row] - resampled[others]
        low[row, others], high[row, others], p_value[row, others] = agreed(
            *_ends(scores[row] - scores[others], differences, least, units), bootstrap_p_value(differences)
        )
        p_value[others, row] = p_value[row, others]
        low[others, row], high[others, row] = -high[row, others], -low[row, others]
    return Pairs(scores[:, None] - scores[None, :], low, high, p_value)


def holm(p_values: ArrayLike) -> Array:
    """Holm's step-down adjustment (Scand. J. Statist. 1979): below alpha, no finding is false but with alpha.

    It holds for tests that depend on each other, too, as those on shared documents do.
    """
    p = np.asarray(p_values, dtype=float)
    order, adjusted = np.argsort(p, kind="stable"), np.empty(len(p))
    raised = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted[order] = np.minimum(raised, 1)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> Array:
    """Benjamini and Hochberg's step-up adjustment (J. R. Statist. Soc. B 1995).

    As `scipy.stats.false_discovery_control`, whose import takes longer than all tests of a report.
    """
    p = np.asarray(p_values, dtype=float)
    order, adjusted = np.argsort(p), np.empty(len(p))
    raised = p[order] * (len(p) / np.arange(1, len(p) + 1))
    adjusted[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return np.clip(adjusted, 0, 1)


@dataclass(frozen=True)
class Ranking:
    """Ranks of models, 1 the best; (models,) each."""

    rank: Array  # by the scores on all documents; models with equal scores share their mean rank
    low: Array  # the best rank of the 95 % percentile interval
    high: Array  # the worst
    best: Array  # share of the resamples in which the model is first; models share a first place equally


def ranks(scores: ArrayLike) -> Array:
    """Ranks in each column of (models, ...), 1 for the highest score, ties with their mean rank."""
    rounded = np.round(np.asarray(scores, dtype=float), _DIGITS)
    better = np.stack([(rounded > own).sum(axis=0) for own in rounded])
    equal = np.stack([(rounded == own).sum(axis=0) for own in rounded])
    found: Array = better + (equal + 1) / 2
    return found


def ranking(scores: ArrayLike, resampled: ArrayLike) -> Ranking:
    """Rank models by their score, and again on every resample, (models, resamples), drawn alike for all.

    Interval ends are ranks that occurred: quantiles are rounded outwards.
    """
    again = ranks(resampled)
    low = np.quantile(again, (1 - LEVEL) / 2, axis=1, method="lower")
    high = np.quantile(again, (1 + LEVEL) / 2, axis=1, method="higher")
    first = again == again.min(axis=0)
    return Ranking(ranks(scores), low, high, (first / first.sum(axis=0)).mean(axis=1))


def win_shares(scores: ArrayLike, *, tie: float = 0.5) -> Array:
    """The share of the tasks that the row wins against the column, (models, models).

    `scores`: (models, tasks). `tie`: how much of a win a tie is.
    """
    scores = np.asarray(scores, dtype=float)
    lead = scores[:, None, :] - scores[None, :, :]
    rates: Array = ((lead > EQUAL) + (np.abs(lead) <= EQUAL) * tie).mean(axis=2)
    return rates
