"""Intervals of scores: Wilson's on the effective number of documents, by others' code and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.metrics import common, labels
from medtasks_ext.stats.bootstrap import resample, score_interval
from medtasks_ext.stats.intervals import (
    Interval,
    intervals_of,
    mean_interval,
    of_shares,
    of_tasks,
    sample_sizes,
    wilson,
)
from medtasks_ext.stats.statistic import Counts, Statistic, by_unit, mean, mean_of_runs, value_and_one
from tests.results.simulated import coverage_of, kinds

shares = st.floats(0, 1)


def interval_of(values, units=None, statistic=mean) -> Interval | None:
    matrix = statistic.counts(values)
    counts = Counts(matrix if units is None else by_unit(matrix, units), {"score": statistic})
    return score_interval(counts, "task")


@given(n=st.integers(2, 3000), share=shares)
def test_right_or_wrong_has_wilsons_interval_as_statsmodels_and_scipy_compute_it(n, share):
    proportion_confint = pytest.importorskip("statsmodels.stats.proportion").proportion_confint
    right = round(share * n)
    found = interval_of([1.0] * right + [0.0] * (n - right))
    assert (found.low, found.high) == pytest.approx(proportion_confint(right, n, method="wilson"), abs=1e-9)
    theirs = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert not found.rough


@given(st.lists(shares, min_size=2, max_size=60), st.integers(1, 5))
def test_an_interval_holds_its_score_and_has_a_width(values, per_unit):
    for units in (None, [place // per_unit for place in range(len(values))]):
        found = interval_of(values, units)
        if found is not None:
            assert 0 <= found.low <= np.mean(values) <= found.high <= 1
            assert found.high - found.low > 1e-3
        else:
            assert len(set(units)) < 2


@given(st.lists(st.tuples(shares, st.floats(2, 5000)), min_size=1, max_size=30))
def test_an_interval_of_a_mean_holds_it_has_a_width_and_of_one_task_is_the_tasks(tasks):
    scores, sizes = (np.array(side) for side in zip(*tasks, strict=True))
    low, high = mean_interval(np.full((1, len(tasks)), 1 / len(tasks)), scores, sizes)
    assert low[0] <= scores.mean() + 1e-12 and scores.mean() - 1e-12 <= high[0] and low[0] < high[0]
    alone = mean_interval([[1.0]], scores[:1], sizes[:1])
    assert [end[0] for end in alone] == pytest.approx(wilson(scores[0], sizes[0]))


@given(st.lists(shares, min_size=2, max_size=20), st.floats(0.001, 1))
def test_a_task_that_tells_nothing_counts_as_one_document(scores, size):
    weights = np.full((1, len(scores)), 1 / len(scores))
    sizes = np.full(len(scores), 40.0)
    nothing, one = sizes.copy(), sizes.copy()
    nothing[0], one[0] = size, 1.0
    found, expected = (mean_interval(weights, scores, each) for each in (nothing, one))
    known = mean_interval(weights, scores, sizes)
    width, least = (ends[1][0] - ends[0][0] for ends in (found, known))
    assert least <= width + 1e-12
    assert width <= expected[1][0] - expected[0][0] + 0.5 / len(scores)


@given(shares, st.floats(1, 1e5))
def test_the_size_of_an_interval_is_read_back_from_its_width(score, size):
    low, high = wilson(score, size)
    assert sample_sizes(score, low, high, 1) == pytest.approx(size, rel=1e-6)


def test_more_documents_are_worth_more_and_copies_of_a_document_are_not():
    values = list(np.random.default_rng(0).random(40))
    alone, copied = interval_of(values), interval_of(np.repeat(values, 5), np.repeat(range(40), 5))
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))
    twice = interval_of([*values, *values])
    assert twice.high - twice.low < 0.8 * (alone.high - alone.low)


def test_runs_of_unequal_size_count_alike():
    """Each run counts once: 4 documents of one are worth as much as 100 of the other."""
    values = [("a", 1.0), ("a", 0.0)] * 2 + [("b", 1.0), ("b", 0.0)] * 50
    found = interval_of(values, statistic=mean_of_runs)
    pooled = interval_of([value for _, value in values])
    size = float(sample_sizes(0.5, found.low, found.high, 1))
    assert size == pytest.approx(4 / (1 / 4 + 1 / 100), rel=1e-6)
    assert found.high - found.low > 2 * (pooled.high - pooled.low)


def test_ratings_on_a_scale_without_ends_have_students_interval_or_none():
    ratings = [1.0, 4.0, 5.0, 3.0]
    found, mean_ = interval_of(ratings), np.mean(ratings)
    half = stats.t.ppf(0.975, 3) * stats.sem(ratings)
    assert (found.low, found.high) == pytest.approx((mean_ - half, mean_ + half))
    assert interval_of([4.0] * 6) is None


def test_fewer_than_two_documents_have_none():
    assert interval_of([1.0]) is None and of_shares([3], [4]) is None
    assert of_tasks([0.5, 0.5], [0.1, 0.2], [Interval(0.0, 0.3), None], [9, 9]) is None
    assert of_tasks([], [], [], []) is None


@pytest.mark.parametrize("n", [6, 20, 50, 100, 200, 500, 2000])
def test_right_or_wrong_is_covered(n):
    """Exact, by all numbers of right answers: no simulation."""
    chances = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
    right = np.arange(n + 1)
    low, high = wilson(right / n, n)
    covered = [stats.binom.pmf(right, n, p)[(low <= p) & (p <= high)].sum() for p in chances]
    assert min(covered) > 0.88 and 0.94 < np.mean(covered) < 0.98


@pytest.mark.parametrize("kind", kinds())
def test_other_scores_are_covered_or_marked(kind):
    """A small share of what the table of docs/coverage.md holds."""
    for n, p in ((8, 0.9), (30, 0.8), (100, 0.95)):
        found = coverage_of(kind, n, p, times=300)
        assert found.covered > 0.86 or found.rough > 0.5, (kind, n, p)


def test_macro_and_pooled_f1_hold_their_score():
    rng = np.random.default_rng(3)
    gold = rng.choice(list("abcd"), 80, p=[0.4, 0.3, 0.2, 0.1])
    pairs = [(one, one if rng.random() < 0.7 else "a") for one in gold]
    counts = [(3.0, 1.0, 0.0)] * 25
    for statistic, items in ((labels.f1_macro, pairs), (common.micro_f1, counts)):
        found = interval_of(items, statistic=statistic)
        assert found.low < statistic(items) <= found.high


def test_a_statistic_off_0_1_has_students_interval():
    doubled = Statistic("doubled", value_and_one, lambda sums: 2 * sums[..., 0] / sums[..., 1])
    counts = Counts(value_and_one(np.linspace(0.6, 1, 40)), {"score": doubled})
    draws = {name: item.values for name, item in resample([counts], "task").items()}
    found = intervals_of(counts, draws)["score"]
    assert "Student" in found.method and found.interval.low < 1.6 < found.interval.high
