"""Intervals of scores: Wilson's on the effective number of documents, by others' code and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.stats.bootstrap import score_interval
from medtasks_ext.stats.intervals import Interval, mean_interval, of_shares, of_tasks, wilson
from medtasks_ext.stats.statistic import Counts, by_unit, mean
from tests.results.simulated import coverage_of, difference_of, kinds

pytestmark = pytest.mark.long

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


@pytest.mark.parametrize("times", [300, pytest.param(3000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", kinds())
def test_other_scores_are_covered_or_marked(kind, times):
    for n, p in ((8, 0.9), (30, 0.8), (100, 0.95)):
        covered, rough = coverage_of(kind, n, p, times)
        assert covered > 0.86 or rough > 0.5, (kind, n, p)


@pytest.mark.parametrize("kind", ["right or wrong", "mean of shares"])
@pytest.mark.parametrize(("p", "gain"), [(0.5, 0.1), (0.5, 0.2), (0.8, 0.1), (0.9, 0.05)])
def test_differences_on_few_documents_are_covered_and_agree_with_their_p_values(kind, p, gain):
    """The bootstrap's held 0.85, and left 0 out against p in up to 14 % of the cases."""
    for n in (10, 20):
        covered, contradicted = difference_of(kind, n, p, gain, 1000)
        assert covered > 0.92 and contradicted == 0
