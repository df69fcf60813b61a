"""Many comparisons at once: adjusted p-values, ranks, and what can be detected at all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.stats.comparison import (
    benjamini_hochberg,
    compare_resamples,
    detectable_difference,
    holm,
    ranking,
    ranks,
)

p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=7)
tables = st.tuples(st.integers(2, 6), st.integers(1, 12), st.integers(0, 10**6)).map(
    # few values, so that ties occur
    lambda shape: np.random.default_rng(shape[2]).integers(0, 4, shape[:2]) / 10
)


@given(p_lists)
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    """A finding stands if every set of hypotheses that it is in is rejected (Marcus et al. 1976)."""
    places = range(len(p_values))
    sets = [set(chosen) for size in range(1, len(p_values) + 1) for chosen in combinations(places, size)]
    expected = [
        max(min(1.0, len(chosen) * min(p_values[k] for k in chosen)) for chosen in sets if place in chosen)
        for place in places
    ]
    assert holm(p_values) == pytest.approx(expected)


@given(p_lists)
def test_benjamini_hochberg_is_the_least_level_at_which_a_finding_stands(p_values):
    """A finding stands at level q if k p-values are at most k q / m, its own among them (their theorem 1)."""
    m = len(p_values)
    counts = [sum(other <= p for other in p_values) for p in p_values]
    expected = [
        min(1.0, min(other * m / k for other, k in zip(p_values, counts, strict=True) if other >= p))
        for p in p_values
    ]
    assert benjamini_hochberg(p_values) == pytest.approx(expected)


def test_no_comparison_needs_no_adjustment():
    assert holm([]).size == benjamini_hochberg([]).size == 0


@pytest.mark.parametrize("wrong", [[0.5, float("nan")], [1.1], [-0.1], [[0.1, 0.2]], 0.1])
def test_what_is_no_p_value_is_refused(wrong):
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(ValueError):
            adjust(wrong)


@given(tables)
def test_ranks_count_who_is_better_and_share_ties(table):
    for column, found in zip(table.T, ranks(table).T, strict=True):
        for place, value in enumerate(column):
            assert found[place] == 1 + (column > value).sum() + ((column == value).sum() - 1) / 2


def test_sums_that_are_equal_but_for_rounding_tie():
    assert ranks([0.1 + 0.2, 0.3, 0.1]).tolist() == [1.5, 1.5, 3]


def test_a_clear_order_has_narrow_ranks_and_a_close_one_wide_ranks():
    rng = np.random.default_rng(1)
    scores = np.array([0.9, 0.701, 0.7, 0.2])
    found = ranking(scores, scores[:, None] + rng.normal(0, 0.01, (4, 1000)))
    assert found.rank.tolist() == [1, 2, 3, 4]
    assert found.low.tolist() == [1, 2, 2, 4] and found.high.tolist() == [1, 3, 3, 4]
    assert found.best.tolist() == [1, 0, 0, 0]
    equal = ranking([0.5, 0.5], rng.normal(0.5, 0.01, (2, 1000)))
    assert equal.rank.tolist() == [1.5, 1.5] and equal.best == pytest.approx([0.5, 0.5], abs=0.05)


def test_interval_ends_are_ranks_that_occurred_and_no_narrower_than_the_quantiles():
    resampled = np.repeat([[0.6], [0.5]], 30, axis=1)
    resampled[:, 7] = 0.5, 0.6  # once in thirty the other way round
    found = ranking([0.6, 0.5], resampled)
    assert found.low.tolist() == [1, 1] and found.high.tolist() == [2, 2]
    assert found.best == pytest.approx([29 / 30, 1 / 30])


def test_a_detectable_difference_is_found_four_times_in_five():
    rng = np.random.default_rng(3)
    n, spread = 300, 0.4
    effect = detectable_difference(spread / np.sqrt(n))
    differences = rng.normal(effect, spread, (4000, n))
    found = stats.ttest_1samp(differences, 0, axis=1).pvalue <= 0.05
    assert 0.77 < found.mean() < 0.83


def test_resamples_detect_what_documents_detect_but_for_chance():
    rng = np.random.default_rng(5)
    scores = rng.normal([[0.5], [0.48]], 0.2, (2, 400))
    resampled = scores[:, rng.integers(0, 400, (4000, 400))].mean(axis=2)
    found = compare_resamples(tuple(scores.mean(axis=1)), tuple(resampled))
    assert found.detectable == pytest.approx(2.8 * (scores[0] - scores[1]).std() / 20, rel=0.05)
