"""Intervals: the resamples are those of documents, and the intervals cover what they should."""

import random
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.metrics import mean as lm_eval_mean
from scipy import stats

from medtasks_ext.metrics import labels
from medtasks_ext.stats.bootstrap import (
    percentile_interval,
    resample,
    resampled_sums,
    resampling_weights,
    task_intervals,
)
from medtasks_ext.stats.statistic import counts_of, label_counts
from medtasks_ext.suites.scores import t_interval_of_bootstrap_mean
from tests.results.aggregations import PLAIN, some_items
from tests.results.statistics_of import AGGREGATIONS, samples_of


def counted(kind: str, items: list) -> list:
    return counts_of(samples_of(kind, items), {"m": AGGREGATIONS[kind]})


@given(n=st.integers(1, 400), resamples=st.integers(1, 30), seed=st.integers(0, 99))
def test_each_resample_has_as_many_documents_as_the_task(n, resamples, seed):
    weights = resampling_weights("task", n, resamples, seed)
    assert weights.shape == (resamples, n)
    assert (weights.sum(axis=1) == n).all()
    again = resampling_weights("task", n, resamples + 3, seed)
    assert (again[:resamples] == weights).all()


def test_weights_are_multinomial():
    """Each document is drawn once on average, with the variance and covariance of n equal chances."""
    n = 5
    weights = resampling_weights("task", n, 200_000).astype(float)
    covariance = np.cov(weights, rowvar=False)
    assert weights.mean(axis=0) == pytest.approx(np.ones(n), abs=0.01)
    assert covariance == pytest.approx(np.eye(n) - 1 / n, abs=0.01)
    shares = np.bincount(weights[:, 0].astype(int), minlength=n + 1) / len(weights)
    assert shares == pytest.approx(stats.binom.pmf(range(n + 1), n, 1 / n), abs=0.005)


def test_weights_depend_on_dataset_size_and_seed_and_on_nothing_else():
    weights = resampling_weights("bridge_mie", 100)
    np.random.seed(1)
    assert (resampling_weights("bridge_mie", 100) == weights).all()
    for other in (resampling_weights("bridge_mts", 100), resampling_weights("bridge_mie", 100, seed=43)):
        assert (other != weights).mean() > 0.5
        assert abs(np.corrcoef(other.ravel(), weights.ravel())[0, 1]) < 0.02


def test_weights_are_the_same_in_every_process_and_with_every_numpy():
    """The digest is written down: another one means that intervals are no longer those of before."""
    digest = "cd5287c318aa4a58558b0c4fca0f607c37152479badf14158e68034eadc8149a"
    assert sha256(resampling_weights("bridge_mie", 2084, 50).tobytes()).hexdigest() == digest


@pytest.mark.parametrize("kind", PLAIN)
def test_resampled_values_are_those_of_documents_drawn_and_scored_anew(kind):
    n = 40
    items = some_items(kind, random.Random(3), n)
    per_unit = len(items) // n
    values = resample(counted(kind, items), "task")["m"].values
    weights = resampling_weights("task", n)
    for row in range(0, 1000, 50):
        drawn = [
            (f"{item[0]} {copy}", *item[1:]) if per_unit > 1 else item
            for unit, times in enumerate(weights[row])
            for copy in range(times)
            for item in items[unit * per_unit : (unit + 1) * per_unit]
        ]
        assert values[row] == pytest.approx(PLAIN[kind](drawn), abs=1e-12)


def test_sums_of_many_labels_are_exact():
    rng = random.Random(0)
    labels = list(range(200))
    lists = [[rng.sample(labels, 3) for _ in range(3000)] for _ in range(2)]
    matrix = label_counts(*lists, labels)
    weights = resampling_weights("task", 3000, 40)
    [sums] = resampled_sums([matrix], weights)
    assert np.array_equal(sums, weights.astype(np.int64) @ matrix.toarray().astype(np.int64))


def test_two_models_are_resampled_alike_and_so_compared_in_pairs():
    """The interval of a difference between similar models is far narrower than unpaired ones would be."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, 500).astype(float)
    second = np.where(rng.random(500) < 0.02, 1 - first, first)
    one, other = (resample(counted("mean", list(items)), "task")["m"].values for items in (first, second))
    paired = np.std(one - other)
    assert paired < 0.3 * np.hypot(np.std(one), np.std(other))
    exact = np.std(first - second) / np.sqrt(500)
    assert paired == pytest.approx(exact, rel=0.15)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=200))
def test_the_percentile_interval_is_that_of_scipy(values):
    given = type("Given", (), {"bootstrap_distribution": np.asarray(values)})()
    expected = stats.bootstrap(
        ([0.0, 1.0],), np.mean, n_resamples=0, bootstrap_result=given, method="percentile"
    ).confidence_interval
    found = percentile_interval(np.asarray(values))
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-12)


def test_the_official_interval_is_the_t_interval_of_the_bootstrap_mean_and_32_times_too_narrow():
    values = resample(counted("mean", some_items("mean", random.Random(0), 200)), "task")["m"].values
    found = t_interval_of_bootstrap_mean(values)
    expected = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-14)
    proper = percentile_interval(values)
    assert (proper.high - proper.low) / (found.high - found.low) == pytest.approx(np.sqrt(1000), rel=0.1)


def record_of(items: list, aggregation, of_paper=None) -> tuple[dict, object]:
    samples = [{"doc_id": i, "doc": {}, "score": item, "scored": 1.0} for i, item in enumerate(items)]
    aggregations = {"score": aggregation, "scored": lm_eval_mean}
    return task_intervals(samples, aggregations, "task", of_paper)


def test_a_record_holds_both_ends_and_the_method():
    records, values = record_of([0.0, 1.0] * 50, lm_eval_mean)
    record = records["score"]
    assert set(records) == {"score"}  # whether there was gold is no estimate
    assert 0.38 < record["interval_low"] < 0.43 and 0.57 < record["interval_high"] < 0.62
    assert record["interval_method"] == "Wilson, 95 %" and len(values) == 1000
    assert "t_interval_of_bootstrap_mean" not in record


@pytest.mark.parametrize("items", [[], [1.0]])
def test_fewer_than_two_documents_have_no_interval(items):
    records, values = record_of(items, lm_eval_mean)
    assert values is None
    for record in records.values():
        assert record["interval_low"] is record["interval_high"] is None
        assert record["interval_method"].startswith("none")


def test_the_official_bootstrap_counts_labels_that_a_resample_lacks_as_0():
    """BRIDGE keeps the label columns of the whole file; here every label has one document, all right."""
    items = [([f"label {number}"], [f"label {number}"]) for number in range(50)]
    records, values = record_of(items, labels.f1_macro_of_lists, t_interval_of_bootstrap_mean)
    assert (values == 1).all()
    assert 0.8 < records["score"]["interval_low"] < records["score"]["interval_high"] == 1
    present = (resampling_weights("task", 50) > 0).mean(axis=1)
    official = records["score"]["t_interval_of_bootstrap_mean"]
    assert official["mean"] == pytest.approx(present.mean(), abs=1e-12)
    assert official["low"] < official["mean"] < official["high"] < 0.65
