"""Equal models: p-values are uniform, and errors no more frequent than they claim, of tasks and of groups."""

import numpy as np
import pytest
from scipy import stats

from medtasks_ext.stats.bootstrap import resampling_weights
from medtasks_ext.stats.comparison import bootstrap_p_value
from medtasks_ext.stats.permutation import MOST_DOCUMENTS, mid_p
from tests.results.simulated import paired_test

nightly = pytest.mark.nightly


def times(few, many):
    """So many simulations every day, and so many at night."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=nightly)])


@times(2000, 20_000)
def test_the_bootstrap_of_many_documents(times):
    """One task, and a group of four: both larger than what is tested document by document."""
    rng = np.random.default_rng(5)
    for sizes in ((MOST_DOCUMENTS + 100,), (150,) * 4):
        total = np.zeros((times, 1000))
        for place, n in enumerate(sizes):
            differences = rng.beta(2, 2, (times, n)) - rng.beta(2, 2, (times, n))
            weights = resampling_weights(f"null {place}", n).astype(np.float32)
            total += differences.astype(np.float32) @ weights.T / n / len(sizes)
        found = bootstrap_p_value(total)
        assert stats.kstest(found, "uniform").pvalue > 0.01
        assert abs(np.mean(found <= 0.05) - 0.05) < 0.005 + 3 * np.sqrt(0.05 * 0.95 / times)


@nightly
@pytest.mark.parametrize(
    ("tasks", "n", "errors"), [(1, 8, 0.11), (1, 30, 0.06), (10, 8, 0.07), (1, 500, 0.05)]
)
def test_how_often_the_bootstrap_errs_at_5_percent(tasks, n, errors):
    """The reason for `MOST_DOCUMENTS`."""
    rng, times = np.random.default_rng(8), 10_000
    total = np.zeros((times, 1000))
    for task in range(tasks):
        differences = rng.beta(2, 2, (times, n)) - rng.beta(2, 2, (times, n))
        total += differences @ resampling_weights(f"null {task}", n).astype(float).T / n / tasks
    assert np.mean(bootstrap_p_value(total) <= 0.05) == pytest.approx(errors, abs=0.006)


@pytest.mark.parametrize("n", [6, 12, 20, 50, 100, 200, 500])
def test_mcnemar_errs_in_at_most_6_percent_whatever_the_number_of_documents(n):
    """Exact: the number of documents that only one model has right is itself drawn."""
    for share in (0.1, 0.3, 0.5):
        errors = 0.0
        for discordant in range(n + 1):
            chance = stats.binom.pmf(discordant, n, share)
            won = np.arange(discordant + 1)
            found = np.array([mid_p(int(k), discordant - int(k)) <= 0.05 for k in won])
            errors += chance * stats.binom.pmf(won, discordant, 0.5)[found].sum()
        assert errors <= 0.06


def test_only_clusters_keep_the_error_rate_where_questions_share_a_note():
    rng = np.random.default_rng(6)
    notes, units = 40, list(np.repeat(range(40), 5))
    wrong = {"documents": 0, "clusters": 0}
    for _ in range(300):
        models = rng.random((2, notes)) < 0.5  # each gets a note's questions all right or all wrong
        first, second = np.repeat(models, 5, axis=1)
        wrong["documents"] += paired_test(first, second).p_value <= 0.05
        wrong["clusters"] += paired_test(first, second, units).p_value <= 0.05
    assert wrong["clusters"] / 300 < 0.08 < 0.25 < wrong["documents"] / 300
