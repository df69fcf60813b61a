"""Alpha, weighted kappa and ICC of ratings with gaps, against published examples and plain code."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from medtasks_ext.stats.agreement import (
    group_agreement,
    icc_3k,
    icc_of_groups,
    icc_of_raters,
    krippendorff_alpha,
    mean_kappa,
    rating_table,
)
from medtasks_ext.stats.bootstrap import resampling_weights

SCALE = [1, 2, 3, 4, 5]
#: Krippendorff (2011), "Computing Krippendorff's alpha-reliability", C: four observers, twelve units
KRIPPENDORFF = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
example = np.array(
    [[np.nan if x == "." else float(x) for x in line.split()] for line in KRIPPENDORFF.strip().splitlines()]
).T
some_rating = st.one_of(st.integers(1, 5), st.just(np.nan))
tables = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(some_rating, min_size=k, max_size=k), min_size=2, max_size=8)
)


@pytest.mark.parametrize(("metric", "printed"), [("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_krippendorffs_example(metric, printed):
    found = krippendorff_alpha(example, metric, "an example")
    assert (
        found.value == pytest.approx(printed, abs=0.0005) and found.n == 11
    )  # a unit with one rating is none
    assert found.low < found.value < found.high <= 1


def plain_alpha(units, metric):
    """Mean disagreement within units over that of all pairs of ratings, pair by pair."""
    units = [[x for x in unit if not np.isnan(x)] for unit in units]
    units = [unit for unit in units if len(unit) > 1]
    everything = [x for unit in units for x in unit]
    if not everything or len(set(everything)) == 1:
        return None
    ranks = dict(zip(everything, stats.rankdata(everything), strict=True))  # midranks
    far = (lambda a, b: (ranks[a] - ranks[b]) ** 2) if metric == "ordinal" else (lambda a, b: (a - b) ** 2)
    within = sum(
        sum(far(a, b) for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j) / (len(unit) - 1)
        for unit in units
    )
    n = len(everything)
    chance = sum(far(a, b) for i, a in enumerate(everything) for j, b in enumerate(everything) if i != j)
    return 1 - (within / n) / (chance / (n * (n - 1)))


@settings(max_examples=40)
@given(tables, st.sampled_from(["ordinal", "interval"]))
def test_alpha_and_its_interval_are_the_plain_ones(table, metric):
    table = np.array(table, dtype=float)
    found, expected = krippendorff_alpha(table, metric, "key"), plain_alpha(table, metric)
    assert found.value is expected is None or found.value == pytest.approx(expected)
    pairable = table[(~np.isnan(table)).sum(axis=1) > 1]
    if expected is None or len(pairable) < 2:
        return
    drawn = [np.repeat(pairable, times, axis=0) for times in resampling_weights("key", len(pairable))[:1000]]
    again = [value for units in drawn if (value := plain_alpha(units, metric)) is not None]
    assert (found.low, found.high) == pytest.approx(np.percentile(again, [2.5, 97.5]))


@settings(max_examples=settings().max_examples // 4)  # a thousand resamples of each
@given(tables, st.sampled_from(["linear", "quadratic"]))
def test_kappa_is_the_mean_of_scikit_learns_over_pairs(table, weighting):
    table = np.array(table, dtype=float)

    def plain(table):
        kappas = {}
        for one, other in combinations(range(table.shape[1]), 2):
            both = table[~np.isnan(table[:, [one, other]]).any(axis=1)]
            if len(both) and len(np.unique(both[:, [one, other]])) > 1:
                kappas[one, other] = cohen_kappa_score(
                    both[:, one].astype(int), both[:, other].astype(int), labels=SCALE, weights=weighting
                )
        return kappas

    found, expected = mean_kappa(table, SCALE, weighting, "key"), plain(table)
    assert found.n == len(expected)
    if not expected:
        assert found.value is None
        return
    assert found.value == pytest.approx(np.mean(list(expected.values())))
    again = []
    for times in resampling_weights("key", len(table)):
        drawn = plain(np.repeat(table, times, axis=0))
        if kept := [drawn[pair] for pair in expected if pair in drawn]:
            again.append(np.mean(kept))
    assert (found.low, found.high) == pytest.approx(np.percentile(again, [2.5, 97.5]))


def test_kappa_of_a_worked_example():
    table = np.array([[1, 1], [2, 1], [2, 2], [1, 3]], dtype=float)
    # margins: the first has 1 and 2 twice; the second 1 twice, 2 and 3 once
    linear = 1 - (3 / 4) / ((2 * (0 * 2 + 1 * 1 + 2 * 1) + 2 * (1 * 2 + 0 + 1 * 1)) / 16)
    quadratic = 1 - (5 / 4) / ((2 * (0 + 1 + 4) + 2 * (2 + 0 + 1)) / 16)
    assert mean_kappa(table, [1, 2, 3], "linear", "k").value == pytest.approx(linear)
    assert mean_kappa(table, [1, 2, 3], "quadratic", "k").value == pytest.approx(quadratic)


def test_the_icc_of_groups_is_that_of_their_mean_z_scores():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=30)
    people = truth[:, None] + rng.normal(size=(30, 4))
    people[rng.random((30, 4)) < 0.4] = np.nan
    jury = truth[:, None] + rng.normal(size=(30, 3))
    as_dicts = [
        {
            f"r{rater}": {f"u{u:02}": x for u, x in enumerate(table[:, rater]) if not np.isnan(x)}
            for rater in range(table.shape[1])
        }
        for table in (people, jury)
    ]
    expected, found = group_agreement(*as_dicts), icc_of_groups([people, jury], "key")
    assert found.value == pytest.approx(expected.value) and found.n == expected.n
    assert found.low < found.value < found.high
    # the interval by drawing the units themselves
    rated = ~np.isnan(people).all(axis=1)
    people, jury, again = people[rated], jury[rated], []
    for times in resampling_weights("key", int(rated.sum()))[:60]:
        drawn = [np.repeat(table, times, axis=0) for table in (people, jury)]
        means = []
        for table in drawn:
            z = (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0, ddof=1)
            means.append(np.nanmean(z, axis=1))
        again.append(icc_3k(np.column_stack(means)).value)
    assert found.low < np.median(again) < found.high
    table = rating_table({"a": {"x": 1, "y": 3}, "b": {"y": 2}})
    assert np.array_equal(table, [[1, np.nan], [3, 2]], equal_nan=True)


def test_the_icc_of_all_raters_counts_what_all_rated():
    table = np.array([[1, 2, 1], [2, 2, 3], [4, 5, 4], [5, 4, 5], [3, np.nan, 1]], dtype=float)
    z = stats.zscore(table[:4], axis=0, ddof=1)
    found = icc_of_raters(table, "key")
    assert found.value == pytest.approx(icc_3k(z).value) and found.n == 4


def test_nothing_to_compare_gives_no_number():
    empty, same = np.empty((0, 2)), np.full((3, 2), 4.0)
    for table in (empty, same, np.array([[1.0, np.nan], [np.nan, 2.0]])):
        assert krippendorff_alpha(table, "interval", "k").value is None
        assert mean_kappa(table, SCALE, "quadratic", "k").value is None
        assert icc_of_raters(table, "k").value is None
