"""Two models on the same documents, or all pairs of many: difference, interval and p-value.

Models are compared on the resamples that they share (`results.bootstrap`), so what they have in common
cancels out. Scores and differences are on 0-1; differences are the first minus the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.seed import SEED
from medtasks_ext.stats.bootstrap import LEVEL, Interval, percentile_interval
from medtasks_ext.stats.counts import by_unit
from medtasks_ext.stats.runs import mean_of_runs
from medtasks_ext.stats.statistic import ratios, share

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike

    from medtasks_ext.stats.counts import Counts
    from medtasks_ext.stats.statistic import Array

BOOTSTRAP, MCNEMAR = "paired bootstrap", "exact McNemar"
EXACT_FLIPS, RANDOM_FLIPS = "sign flips, exact", "sign flips, Monte Carlo"
#: Random flips beside the observed signs; up to as many patterns of signs are enumerated.
FLIPS = 9_999
#: z for a two-sided test at 5 % and for 80 % power, as MedHELM's published code rounds them.
Z_ALPHA, Z_BETA = 1.96, 0.84
#: Scores that differ by less are equal: it is rounding.
EQUAL = 1e-12
#: Fewer resamples than these do not determine a tail.
FEWEST_FOR_TAIL = 500
#: Smaller p-values are of no use, and no normal tail is that exact.
LEAST_P_VALUE = 1e-12
_BLOCK = 2**20  # signs that are worked on at once


@dataclass(frozen=True)
class PairedTest:
    """Whether two models' scores on the same documents differ.

    Attributes:
        p_value: two-sided, above 0.
        method: name of the test.
        n_units: documents, or clusters of them, that are independent of each other.
    """

    p_value: float
    method: str
    n_units: int


@dataclass(frozen=True)
class Comparison:
    """The first model minus the second.

    Attributes:
        difference: of the scores on all documents.
        interval: 95 % percentile interval of the difference.
        p_value: two-sided.
        method: where the p-value is from.
        detectable: the smallest true difference that would be found with 80 % power.
    """

    difference: float
    interval: Interval
    p_value: float
    method: str
    detectable: float


@dataclass(frozen=True)
class Pairs:
    """All pairs of models; each matrix is (models, models), and row minus column.

    Attributes:
        difference: of the scores on all documents.
        low: lower ends of the 95 % percentile intervals.
        high: upper ends.
        p_value: two-sided; 1 on the diagonal.
    """

    difference: Array
    low: Array
    high: Array
    p_value: Array


# ---------------------------------------------------------------------- on shared resamples


def smallest_p_value(resamples: int) -> float:
    """The least p-value that the count of so many resamples can give."""
    return 2 / (resamples + 1)


def bootstrap_p_value(differences: ArrayLike) -> Array:
    """Two-sided p-values of resampled differences: how far the percentile interval is from holding 0.

    Twice the share of resamples on the rarer side of 0, where those at 0 count for both sides, and the
    observed data count as one more resample, so that p is never 0 (Efron and Tibshirani, An Introduction
    to the Bootstrap, 1993, section 15.4; Davison and Hinkley, Bootstrap Methods, 1997, section 4.2). Below
    0.05 the 95 % interval of the same resamples leaves 0 out, but for one resample.

    Where all resamples lie on one side, their count says no more than p < `smallest_p_value`, too coarse to
    be adjusted for many comparisons. The normal distribution with the resamples' mean and standard
    deviation then says how far 0 is out in the tail (the book's section 12.4).

    Args:
        differences: (..., resamples).

    Returns:
        (...), above 0, at most 1.
    """
    differences = np.asarray(differences, dtype=float)
    resamples = differences.shape[-1]
    rarer = np.minimum((differences <= EQUAL).sum(axis=-1), (differences >= -EQUAL).sum(axis=-1))
    p_values: Array = np.minimum(1.0, smallest_p_value(resamples) * (1 + rarer))
    if resamples < FEWEST_FOR_TAIL or rarer.all():
        return p_values
    with_tail: Array = np.where(rarer == 0, np.minimum(p_values, _normal_tail(differences)), p_values)
    return with_tail


def _normal_tail(differences: Array) -> Array:
    """Two-sided p-values of 0 under the normal distribution of the resamples; 1 where they do not vary."""
    from scipy.special import erfc

    centre, spread = np.abs(differences.mean(axis=-1)), differences.std(axis=-1, ddof=1)
    z = np.divide(centre, spread, out=np.zeros(np.shape(centre)), where=spread > EQUAL)
    tail: Array = np.maximum(erfc(z / np.sqrt(2)), LEAST_P_VALUE)
    return tail


def compare_resamples(scores: tuple[float, float], resampled: tuple[ArrayLike, ArrayLike]) -> Comparison:
    """Compare two models by a score of any kind: of a task, or of a group (`mean_over_tasks`).

    Args:
        scores: of both models, on all documents.
        resampled: the same on each resample, (resamples,) each, drawn alike for both.

    Raises:
        ValueError: they are not of one length, or not finite.
    """
    first, second = _paired(*resampled)
    differences = first - second
    return Comparison(
        float(scores[0] - scores[1]),
        percentile_interval(differences),
        float(bootstrap_p_value(differences)),
        BOOTSTRAP,
        detectable_difference(float(np.std(differences, ddof=1))),
    )


def detectable_difference(standard_error: float) -> float:
    """The smallest true difference that a two-sided test at 5 % finds with 80 % power.

    MedHELM's definition (Nature Medicine 2026, Methods).

    Args:
        standard_error: of the difference, such as its standard deviation over resamples.
    """
    return (Z_ALPHA + Z_BETA) * standard_error


def all_pairs(scores: ArrayLike, resampled: ArrayLike) -> Pairs:
    """Compare all pairs of models as `compare_resamples` does, a row of pairs at a time.

    Args:
        scores: (models,), on all documents.
        resampled: (models, resamples), drawn alike for all.

    Raises:
        ValueError: shapes do not fit, or a value is not finite.
    """
    scores, resampled = np.asarray(scores, dtype=float), np.asarray(resampled, dtype=float)
    if resampled.ndim != 2 or scores.shape != resampled.shape[:1]:
        raise ValueError("each model needs a score and a row of resamples")
    if not (np.isfinite(scores).all() and np.isfinite(resampled).all()):
        raise ValueError("a score is missing; compare models on what all of them have")
    n = len(scores)
    low, high, p_value = np.zeros((n, n)), np.zeros((n, n)), np.ones((n, n))
    for row in range(n - 1):
        others = slice(row + 1, n)
        differences = resampled[row] - resampled[others]
        low[row, others], high[row, others] = np.quantile(
            differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1
        )
        p_value[row, others] = p_value[others, row] = bootstrap_p_value(differences)
        low[others, row], high[others, row] = -high[row, others], -low[row, others]
    return Pairs(scores[:, None] - scores[None, :], low, high, p_value)


# ---------------------------------------------------------------------- by documents


def compare(
    first: Counts, second: Counts, resampled: tuple[ArrayLike, ArrayLike], metric: str = "score"
) -> Comparison:
    """Compare two models on one task, with the test that its metric allows.

    The interval is that of `compare_resamples`. A score that is a mean over documents, or over runs of
    such means, is tested by `paired_test`; a corpus-level one (pooled or macro F1) by the bootstrap.

    Args:
        first: counts of one model, by unit; of the documents that both were asked.
        second: of the other, its units in the same order.
        resampled: the metric of both on each resample, (resamples,) each.
        metric: which one.

    Raises:
        ValueError: the counts have different or fewer than two units, or the resamples do not fit.
    """
    if first.n_units != second.n_units or first.n_units < 2:
        raise ValueError("both models need the same documents, at least two")
    scores = first.values()[metric], second.values()[metric]
    found = compare_resamples(scores, resampled)
    test = document_test(first, second, metric)
    if test is None:
        return found
    return Comparison(found.difference, found.interval, test.p_value, test.method, found.detectable)


def document_test(first: Counts, second: Counts, metric: str = "score") -> PairedTest | None:
    """The test of `paired_test` for two models on one task; None for corpus-level metrics.

    Args:
        first: counts of one model, by unit.
        second: of the other, its units in the same order.
        metric: which one.
    """
    points = _points(first, second, metric)
    return None if points is None else paired_test(*points)


def paired_test(first: ArrayLike, second: ArrayLike, units: Sequence[Hashable] | None = None) -> PairedTest:
    """Test whether two models have the same mean score over documents.

    - Scores of 0 and 1, each document a unit of its own: exact McNemar, a binomial test on the documents
      that one model alone has right (McNemar, Psychometrika 1947).
    - Otherwise sign flips: if the models are equal, a unit's difference could have had the other sign. All
      patterns of signs are enumerated up to 10,000, else 9,999 are drawn (seed 42) and the observed one
      counts as one more (Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 2010). A unit's documents flip
      together.

    Args:
        first: (n,) scores of one model.
        second: (n,) scores of the other on the same documents.
        units: (n,) which documents belong together, such as all about one note.

    Raises:
        ValueError: lengths differ, or a score is not finite.
    """
    scores = _paired(first, second)
    differences = scores[0] - scores[1]
    if units is not None and len(units) != len(differences):
        raise ValueError(f"{len(differences)} documents and {len(units)} units")
    summed = differences if units is None else by_unit(differences[:, None], units)[:, 0]
    if len(summed) == len(differences) and np.isin(scores, (0, 1)).all():
        return _mcnemar(differences)
    return _sign_flips(summed)


def _points(first: Counts, second: Counts, metric: str) -> tuple[Array, Array] | None:
    """What units add to both models' scores, 1 for a right answer of a plain mean: (units,) each.

    None for corpus-level metrics, where a unit's share depends on the other units.
    """
    if any(item.statistics[metric].value not in (share, mean_of_runs.value) for item in (first, second)):
        return None
    # columns: a sum for each run, then the number of documents behind it; without runs one of each
    parts, sizes = zip(
        *(np.split(np.asarray(item.matrix), 2, axis=1) for item in (first, second)), strict=True
    )
    counted = sizes[0].any(axis=1).sum()
    if not np.array_equal(*sizes) or not counted:
        return None
    totals = sizes[0].sum(axis=0)
    scale = ratios(counted, totals * (totals > 0).sum())
    return parts[0] @ scale, parts[1] @ scale


def _paired(first: ArrayLike, second: ArrayLike) -> Array:
    """(2, n): both as they should be."""
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise ValueError(f"two lists of one length are needed, not {one.shape} and {other.shape}")
    pair = np.stack([one, other])
    if not np.isfinite(pair).all():
        raise ValueError("a score is missing; compare models on what both have")
    return pair


def _mcnemar(differences: Array) -> PairedTest:
    from scipy.stats import binomtest

    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    p_value = float(binomtest(won, won + lost).pvalue) if won + lost else 1.0
    return PairedTest(p_value, MCNEMAR, len(differences))


def _sign_flips(differences: Array) -> PairedTest:
    moved = differences[np.abs(differences) > EQUAL]
    # sums of one size but for rounding are as extreme as the observed one
    extreme = abs(moved.sum()) - 1e-9 * np.abs(moved).sum()
    if 2 ** len(moved) <= FLIPS + 1:
        patterns = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
        p_value = np.mean(np.abs(moved.sum() - 2 * patterns @ moved) >= extreme)
        return PairedTest(float(p_value), EXACT_FLIPS, len(differences))
    hits = 0
    generator = np.random.Generator(np.random.Philox(key=SEED))
    step = max(1, _BLOCK // len(moved))
    for start in range(0, FLIPS, step):
        size = (min(step, FLIPS - start), -(-len(moved) // 8))
        flipped = np.unpackbits(generator.integers(0, 256, size, np.uint8), axis=1, count=len(moved))
        hits += int((np.abs(moved.sum() - 2 * (flipped @ moved)) >= extreme).sum())
    return PairedTest((1 + hits) / (1 + FLIPS), RANDOM_FLIPS, len(differences))
