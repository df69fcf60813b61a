"""Simulated scores whose truth is known, and how often their intervals hold it."""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

from medtasks_ext.metrics import common, labels
from medtasks_ext.stats.bootstrap import resampled_sums, resampling_weights
from medtasks_ext.stats.comparison import PairedTest, Part, compare, document_test, least_half
from medtasks_ext.stats.intervals import intervals_of
from medtasks_ext.stats.statistic import Array, Counts, Statistic, as_they_are, by_unit, mean, mean_of_some

#: (counts, truth) of one simulated task
_Draw = Callable[[np.random.Generator, int, float], tuple[Counts, float]]


def _means(values: Array) -> Counts:
    return Counts(np.column_stack([values, np.ones(len(values))]), {"score": mean})


def paired_test(first: Array, second: Array, units: Sequence[Hashable] | None = None) -> PairedTest:
    """The test of two models with these scores of documents, of which those of a unit belong together."""
    both = [_means(np.asarray(scores, dtype=float)) for scores in (first, second)]
    if units is not None:
        both = [Counts(by_unit(one.matrix, units), {"score": mean_of_some}) for one in both]
    found = document_test([Part(1.0, *both)], len(first))
    assert found is not None
    return found


def _right(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
    return _means((rng.random(n) < p).astype(float)), p


def _clusters(size: int, alike: float) -> _Draw:
    """n clusters of so many documents, right or wrong, with this correlation inside."""

    def draw(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
        ease = rng.beta(p * (1 / alike - 1), (1 - p) * (1 / alike - 1), n)
        counts = np.column_stack([rng.binomial(size, ease), np.full(n, size)]).astype(float)
        return Counts(counts, {"score": mean_of_some}), p

    return draw


def _smooth(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
    """Such as ROUGE: no document is at an end."""
    return _means(rng.beta(8 * p, 8 * (1 - p), n)), p


def _heap(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
    """Most documents have everything, the others a part."""
    whole = 2 * p - 1
    return _means(np.where(rng.random(n) < whole, 1.0, rng.beta(2, 2, n))), whole + (1 - whole) / 2


def _ratings(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
    return _means(rng.binomial(4, p, n) / 4), p


def _pooled(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
    """Entities found, invented and missed; long documents have more of everything."""
    busy = rng.gamma(2, 2, (n, 1))
    counts = rng.poisson(np.array([p, 1 - p, 1 - p]) * busy).astype(float)
    return Counts(counts, {"score": common.micro_f1}), p


_SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def _macro(rng: np.random.Generator, n: int, p: float) -> tuple[Counts, float]:
    """Four labels, of which the rarest has a tenth of the documents."""
    gold = rng.choice(4, n, p=_SHARES)
    told = np.where(rng.random(n) < p, gold, (gold + rng.integers(1, 4, n)) % 4)
    one, other = np.eye(4)[gold], np.eye(4)[told]
    statistic = Statistic("f1_macro", as_they_are, labels.f1_macro.value)
    tp, said = p * _SHARES, p * _SHARES + (1 - p) * (1 - _SHARES) / 3
    return Counts(np.hstack([one * other, other, one]), {"score": statistic}), float(
        np.mean(2 * tp / (_SHARES + said))
    )


_KINDS: dict[str, _Draw] = {
    "right or wrong": _right, "clusters of 4, correlation 0.3": _clusters(4, 0.3),
    "clusters of 20, correlation 0.1": _clusters(20, 0.1),
    "clusters of 20, correlation 0.3": _clusters(20, 0.3), "mean of shares, such as ROUGE": _smooth,
    "mean with a heap at 1": _heap, "ratings in five steps": _ratings, "pooled F1": _pooled,
    "macro F1 of 4 labels": _macro,
}  # fmt: skip


def kinds() -> list[str]:
    return [*_KINDS]


def coverage_of(kind: str, n: int, p: float, times: int) -> tuple[float, float]:
    """How often intervals of simulated tasks hold the truth, and which share of them is marked as rough.

    Args:
        kind: of `kinds`.
        n: documents, or clusters of them.
        p: true score of a document.
        times: simulated tasks.
    """
    rng = np.random.default_rng([42, n, round(1000 * p), [*_KINDS].index(kind)])
    rows = []
    for _ in range(times):
        counts, truth = _KINDS[kind](rng, n, p)
        [sums] = resampled_sums([counts.matrix], _weights(n))
        draws = counts.statistics["score"].value(sums)
        found = intervals_of(counts, {"score": draws})["score"]
        rows.append((found.low <= truth <= found.high, found.rough))
    covered, rough = np.mean(np.array(rows, dtype=float), axis=0)
    return covered, rough


@lru_cache(maxsize=2)
def _weights(n: int) -> Array:
    return resampling_weights("simulated", n)


def difference_of(kind: str, n: int, p: float, gain: float, times: int) -> tuple[float, float]:
    """Two models on the same documents, half of which are equally hard for both.

    Returns how often the interval of their difference holds the truth, and how often it and the p-value say
    other things of 0.

    Args:
        kind: `right or wrong`, or `mean of shares`.
        n: documents.
        p: true score of a document for the second model.
        gain: how much higher that of the first is.
        times: simulated pairs.
    """
    rng = np.random.default_rng([42, n, round(1000 * p), round(1000 * gain)])
    rows = []
    for _ in range(times):
        luck = rng.random((2, n))
        luck[1] = np.where(rng.random(n) < 0.5, luck[0], luck[1])
        scores = luck < [[p + gain], [p]]
        values = scores if kind == "right or wrong" else (scores + 2 * rng.random((2, n))) / 3
        truth = gain if kind == "right or wrong" else gain / 3
        both = [_means(row.astype(float)) for row in values]
        sums = resampled_sums([item.matrix for item in both], _weights(n))
        draws = [item.statistics["score"].value(some) for item, some in zip(both, sums, strict=True)]
        means = [item.values()["score"] for item in both]
        test = document_test([Part(1.0, *both)], n)
        found = compare(means, draws, least_half([(1.0, n)]), n, test)
        apart = not found.interval.low <= 0 <= found.interval.high
        rows.append((found.interval.low <= truth <= found.interval.high, apart != (found.p_value < 0.05)))
    covered, contradicted = np.mean(np.array(rows, dtype=float), axis=0)
    return covered, contradicted
