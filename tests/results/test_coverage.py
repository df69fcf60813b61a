"""Intervals of differences, of clusters and of macro averages hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.stats.bootstrap import resampled_sums, resampling_weights
from medtasks_ext.stats.comparison import compare_resamples

REPLICATIONS = 1500


def coverage(values: np.ndarray, truth: float) -> float:
    """Share of replications, (resamples, replications), whose 95 % percentile interval holds the truth."""
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    return float(np.mean((low <= truth) & (truth <= high)))


def resampled_means(items: np.ndarray, dataset: str = "coverage") -> np.ndarray:
    """(n, replications) -> (resamples, replications): the mean of each replication."""
    [sums] = resampled_sums([items], resampling_weights(dataset, len(items)))
    return sums / len(items)


def resampled_f1(counts: np.ndarray) -> np.ndarray:
    """(n, replications, 3) -> (resamples, replications)."""
    n, replications, _ = counts.shape
    weights = resampling_weights("coverage", n)
    [sums] = resampled_sums([counts.reshape(n, -1)], weights)
    return micro_f1.value(sums.reshape(len(weights), replications, 3))


def test_95_percent_of_differences_of_means_are_covered():
    """Two models on one test set: hard documents are hard for both."""
    rng = np.random.default_rng(21)
    hard = rng.normal(0, 1, (200, REPLICATIONS))
    first, second = ((hard + rng.normal(0, 1, hard.shape) < bar).astype(float) for bar in (0.8, 0.4))
    truth = stats.norm.cdf(0.8 / np.sqrt(2)) - stats.norm.cdf(0.4 / np.sqrt(2))
    assert 0.93 < coverage(resampled_means(first) - resampled_means(second), truth) < 0.97


def test_95_percent_of_differences_of_pooled_f1_are_covered():
    rng = np.random.default_rng(22)
    rates = np.array([[4.0, 1.0, 1.0], [3.5, 1.5, 1.5]])
    busy = rng.gamma(2, 0.5, (200, REPLICATIONS, 1))  # long documents have more of everything
    first, second = (rng.poisson(rate * busy).astype(float) for rate in rates)
    truths = 2 * rates[:, 0] / (2 * rates[:, 0] + rates[:, 1] + rates[:, 2])
    values = resampled_f1(first) - resampled_f1(second)
    assert 0.93 < coverage(values, truths[0] - truths[1]) < 0.97


def test_95_percent_of_differences_of_macro_averages_are_covered():
    """Five tasks of unequal size and difficulty count alike."""
    rng = np.random.default_rng(23)
    values, truths = [], []
    for number, (n, bar) in enumerate([(60, 0.0), (100, 0.5), (150, 1.0), (250, -0.5), (400, 0.2)]):
        hard = rng.normal(0, 1, (n, REPLICATIONS))
        bars = (bar + 0.2, bar)
        first, second = ((hard + rng.normal(0, 1, hard.shape) < limit).astype(float) for limit in bars)
        values.append(resampled_means(first, f"task {number}") - resampled_means(second, f"task {number}"))
        truths.append(-np.diff(stats.norm.cdf(np.array(bars) / np.sqrt(2)))[0])
    assert 0.93 < coverage(np.mean(values, axis=0), np.mean(truths)) < 0.97


def test_clusters_cover_where_questions_share_a_note_and_documents_do_not():
    """Notes of one to six questions, of which some are hard as a whole."""
    rng = np.random.default_rng(24)
    sizes = np.tile(np.arange(1, 7), 20)
    notes = np.repeat(np.arange(len(sizes)), sizes)
    ease = rng.normal(0, 1, (len(sizes), REPLICATIONS))[notes]
    right = (ease + rng.normal(0, 0.7, ease.shape) > 0).astype(float)
    alone = resampled_means(right)
    by_note = np.add.reduceat(right, np.flatnonzero(np.diff(notes, prepend=-1)), axis=0)
    weights = resampling_weights("coverage", len(sizes)).astype(float)
    together = (weights @ by_note) / (weights @ sizes)[:, None]
    assert 0.93 < coverage(together, 0.5) < 0.97
    assert coverage(alone, 0.5) < 0.8


@pytest.mark.parametrize("seed", [1, 2])
def test_with_the_same_draws_the_interval_of_a_difference_is_scipys(seed):
    """scipy's indices, counted, are the weights: the distribution is the same to the last digits."""
    rng = np.random.default_rng(seed)
    n, resamples = 120, 999
    first, second = (rng.poisson(rates, (n, 3)).astype(float) for rates in ([4, 1, 1], [3, 2, 1]))

    def difference(*columns, axis):
        one, other = (
            np.stack([part.sum(axis=axis) for part in side], axis=-1) for side in (columns[:3], columns[3:])
        )
        return micro_f1.value(one) - micro_f1.value(other)

    expected = stats.bootstrap(
        (*first.T, *second.T), difference, paired=True, vectorized=True, n_resamples=resamples,
        method="percentile", rng=np.random.default_rng(seed),
    )  # fmt: skip
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    weights = np.stack([np.bincount(row, minlength=n) for row in drawn])
    values = [micro_f1.value(sums) for sums in resampled_sums([first, second], weights)]
    assert values[0] - values[1] == pytest.approx(expected.bootstrap_distribution, abs=1e-12)
    found = compare_resamples((values[0].mean(), values[1].mean()), values).interval
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval), abs=1e-12)
