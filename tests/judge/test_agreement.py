"""Agreement of raters, also of ratings with gaps, against published examples and plain code."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medtasks_ext.stats import agreement

# Shrout & Fleiss (1979), Table 2: six targets, four judges; ICC(3,1) = .71, ICC(3,4) = .91
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
SCALE = [1, 2, 3, 4, 5]
ratings = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=40)


def anova(table):
    """Two-way analysis of variance by plain sums of squares."""
    n, k = len(table), len(table[0])
    grand = sum(map(sum, table)) / (n * k)
    rows = [sum(row) / k for row in table]
    columns = [sum(row[j] for row in table) / n for j in range(k)]
    total = sum((value - grand) ** 2 for row in table for value in row)
    between_rows = k * sum((mean - grand) ** 2 for mean in rows)
    between_columns = n * sum((mean - grand) ** 2 for mean in columns)
    error = total - between_rows - between_columns
    return between_rows / (n - 1), error / ((n - 1) * (k - 1))


def test_icc_of_shrout_and_fleiss():
    found = agreement.icc_3k(SHROUT_FLEISS)
    assert found.value == pytest.approx(0.909, abs=0.0005)
    cases, error = anova(SHROUT_FLEISS)
    assert (cases, error) == (pytest.approx(11.24, abs=0.01), pytest.approx(1.02, abs=0.01))
    assert found.value == pytest.approx((cases - error) / cases)
    assert (found.low, found.high) == (pytest.approx(0.676, abs=0.001), pytest.approx(0.986, abs=0.001))


# MedHELM, Extended Data Table 4: ICC(3,k) with its interval; 31 and 25 instances. The paper prints 0 for a
# negative lower limit, and two decimals.
@pytest.mark.parametrize(
    ("n", "icc", "low", "high"),
    [
        (56, 0.474, 0.10, 0.69), (56, 0.361, 0, 0.63), (56, 0.441, 0.05, 0.67),
        (31, 0.305, 0, 0.67), (31, 0.445, 0, 0.73), (31, 0.250, 0, 0.64),
        (25, 0.625, 0.15, 0.83), (25, 0.343, 0, 0.71), (25, 0.668, 0.25, 0.85),
    ],
)  # fmt: skip
def test_the_interval_is_the_papers(n, icc, low, high):
    found = agreement.icc_3k_interval(icc, n, k=2)
    assert (max(0, found[0]), found[1]) == (pytest.approx(low, abs=0.0056), pytest.approx(high, abs=0.0056))


@given(
    st.integers(2, 4).flatmap(
        lambda k: st.lists(st.tuples(*[st.integers(1, 5)] * k), min_size=3, max_size=12)
    )
)
def test_icc_is_the_analysis_of_variance(table):
    cases, error = anova(table)
    found = agreement.icc_3k(table)
    if cases < 1e-9:
        assert found.value is None
    else:
        assert found.value == pytest.approx((cases - error) / cases, abs=1e-9)
        assert found.low <= found.value + 1e-9 and found.value - 1e-9 <= found.high <= 1


def kappa_by_hand(pairs, weight):
    """1 - (weighted disagreement observed) / (expected), from the table of counts."""
    n = len(pairs)
    observed = sum(weight(a, b) for a, b in pairs) / n
    expected = sum(weight(a, b) for (a, _), (_, b) in product(pairs, pairs)) / n**2
    return None if expected == 0 else 1 - observed / expected


@given(ratings)
def test_kappa_is_the_textbooks(pairs):
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    for quadratic, weight in ((False, lambda a, b: a != b), (True, lambda a, b: (a - b) ** 2)):
        found = agreement.kappa(one, other, SCALE, quadratic=quadratic)
        expected = kappa_by_hand(pairs, weight)
        assert found is None if expected is None else found == pytest.approx(expected, abs=1e-9)


@given(ratings)
def test_spearman_is_pearson_of_ranks(pairs):
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found = agreement.spearman(one, other)
    if len(set(one)) < 2 or len(set(other)) < 2:
        assert found is None
    else:
        ranks = stats.rankdata(one), stats.rankdata(other)
        assert found == pytest.approx(float(np.corrcoef(*ranks)[0, 1]), abs=1e-9)


def test_groups_are_compared_by_the_means_of_z_scores():
    clinicians = {"x": {"1": 1, "2": 3, "3": 5}, "y": {"1": 2, "2": 2.5, "3": 3}}
    jury = {"j": {"1": 4, "2": 4.5, "3": 5, "4": 1}}
    found = agreement.group_agreement(clinicians, jury)
    assert found.value == pytest.approx(1) and found.n == 3  # all three are linear in each other
    # by hand: x and y are -1, 0, 1 as z-scores, and j (1, 0, -1) is their mirror image
    against = agreement.group_agreement(clinicians, {"j": {"1": 5, "2": 4, "3": 3}})
    assert against.value is None  # the means over both are 0 everywhere: no variance between cases


def test_the_baseline_is_the_mean_over_pairs_that_share_two_instances():
    raters = {
        "a": {"1": 1, "2": 2, "3": 4, "4": 3},
        "b": {"1": 2, "2": 3, "3": 4, "4": 1},
        "c": {"3": 1, "4": 5, "5": 3},
        "d": {"5": 2, "6": 4},
    }
    z = {
        rater: dict(zip(by, stats.zscore(list(by.values()), ddof=1), strict=True))
        for rater, by in raters.items()
    }
    expected = []
    for one, other in combinations("abcd", 2):
        shared = sorted(set(z[one]) & set(z[other]))
        if len(shared) >= 2:
            cases, error = anova([[z[one][i], z[other][i]] for i in shared])
            expected.append((cases - error) / cases)
    assert min(expected) < -100  # two instances and nearly no variance between them: it counts as 0
    expected = [max(0.0, value) for value in expected]
    found = agreement.pairwise_baseline(raters)
    assert found.n == len(expected) == 3
    assert found.value == pytest.approx(sum(expected) / 3)
    assert 0 <= found.low <= found.value <= found.high <= max(expected) + 1e-9
    assert agreement.pairwise_baseline(raters) == found


def test_the_icc_of_all_raters_counts_what_all_rated():
    table = np.array([[1, 2, 1], [2, 2, 3], [4, 5, 4], [5, 4, 5], [3, np.nan, 1]], dtype=float)
    raters = {
        name: {str(unit): float(x) for unit, x in enumerate(table[:, place]) if not np.isnan(x)}
        for place, name in enumerate("abc")
    }
    found = agreement.icc_of_raters(raters)
    assert found.value == pytest.approx(agreement.icc_3k(stats.zscore(table[:4], axis=0, ddof=1)).value)
    assert found.n == 4 and found.low < found.value < found.high
    assert agreement.icc_of_raters({**raters, "same": dict.fromkeys("0123", 3.0)}).value is None


def test_nothing_to_compare_gives_no_number():
    assert agreement.pairwise_baseline({"a": {"1": 1}}).value is None
    assert agreement.kappa([], [], SCALE) is None and agreement.kappa([3, 3], [3, 3], SCALE) is None
    for raters in (
        {},
        {"a": {"x": 1.0}, "b": {"y": 2.0}},
        {"a": {"x": 4.0, "y": 4.0}, "b": {"x": 4.0, "y": 4.0}},
    ):
        assert agreement.icc_of_raters(raters).value is None
