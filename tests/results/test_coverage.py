"""Intervals of differences, of clusters and of macro averages hold the truth as often as they say."""

import numpy as np
import pytest
from scipy import stats

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.stats.bootstrap import resampled_sums
from medtasks_ext.stats.comparison import compare_resamples


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
