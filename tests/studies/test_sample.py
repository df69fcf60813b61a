"""Stratified samples with a target mix of levels: exact where it can be, as close as can be elsewhere."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.row_labels import LEVELS
from medtasks_lab.studies.sample import PoolItem, apportioned, draw, feasible_levels, parse_ratio

PAPERS = parse_ratio("3:5:2")
ratios = st.tuples(*[st.integers(0, 6)] * 3).filter(any).map(lambda parts: ":".join(map(str, parts)))


@st.composite
def pools(draw_):
    cells = draw_(
        st.dictionaries(
            st.tuples(st.sampled_from("abcdef"), st.sampled_from(LEVELS)), st.integers(1, 12), min_size=1
        )
    )
    return [
        PoolItem(f"{stratum}-{level}-{number}", level, stratum)
        for (stratum, level), n in cells.items()
        for number in range(n)
    ]


def size_for(data, pool, ratio) -> int:
    shares = parse_ratio(ratio)
    enough = sum(bool(shares[item.level]) for item in pool)
    return data.draw(st.integers(1, enough)) if enough else 0


def counts_of(ids, pool):
    by_id = {item.id: item for item in pool}
    return Counter((by_id[name].stratum, by_id[name].level) for name in ids)


# ---------------------------------------------------------------------- apportionment


@pytest.mark.parametrize(
    ("n", "hard", "medium", "easy"),
    [(100, 30, 50, 20), (150, 45, 75, 30), (200, 60, 100, 40), (300, 90, 150, 60)],
)
def test_the_sizes_of_the_paper_split_as_it_says(n, hard, medium, easy):
    assert apportioned(n, PAPERS) == {"hard": hard, "medium": medium, "easy": easy}


def test_what_is_left_over_goes_to_the_largest_remainders():
    assert apportioned(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert apportioned(7, {"a": 50, "b": 30, "c": 20}) == {"a": 4, "b": 2, "c": 1}  # 3.5, 2.1, 1.4


@given(st.integers(0, 500), st.dictionaries(st.text(max_size=2), st.integers(0, 50), min_size=1))
def test_every_part_is_within_one_of_its_exact_share(n, weights):
    total = sum(weights.values())
    if not total:
        return
    parts = apportioned(n, weights)
    assert sum(parts.values()) == n
    assert all(abs(parts[name] - Fraction(n * weight, total)) < 1 for name, weight in weights.items())


def test_a_level_that_is_short_gives_all_and_the_others_share_the_rest_by_the_ratio():
    pool = {"hard": 9, "medium": 500, "easy": 500}
    assert feasible_levels(100, PAPERS, pool) == {"hard": 9, "medium": 65, "easy": 26}


@pytest.mark.parametrize(
    "text", ["3:5", "3:5:2:1", "3:5:x", "-1:5:2", "0:0:0", "", "nan:1:1", "1/0:1:1", "3,5,2"]
)
def test_what_is_no_ratio_is_refused(text):
    with pytest.raises(MedtasksError, match="is no ratio") as error:
        parse_ratio(text)
    assert "3:5:2" in error.value.remedy


# ---------------------------------------------------------------------- drawing


@given(pools(), ratios, st.data(), st.integers(0, 5))
def test_levels_are_exact_where_the_pool_has_them_and_nothing_is_drawn_twice(pool, ratio, data, seed):
    if not (size := size_for(data, pool, ratio)):
        return
    sample = draw(pool, size, parse_ratio(ratio), seed)
    assert len(set(sample.ids)) == len(sample.ids) == size
    available = Counter(item.level for item in pool)
    drawn = counts_of(sample.ids, pool)
    ideal = apportioned(size, parse_ratio(ratio))
    for level in LEVELS:
        count = sample.levels[level]
        assert count.drawn == sum(n for (_, name), n in drawn.items() if name == level)
        assert (count.pool, count.wanted) == (available[level], ideal[level])
    if all(ideal[level] <= available[level] for level in LEVELS):
        assert all(count.drawn == count.wanted for count in sample.levels.values())
    for name, count in sample.strata.items():
        assert count.drawn == sum(n for (stratum, _), n in drawn.items() if stratum == name) <= count.pool


def least_harm(pool, levels, coverage):
    """The smallest sum of |drawn - share| over strata for given levels, by linear programming.

    The constraints are those of a transport problem, whose vertices are whole numbers.
    """
    strata = sorted(coverage)
    available = Counter((item.stratum, item.level) for item in pool)
    cells = [(stratum, level) for stratum in strata for level in LEVELS]
    n, s = len(cells), len(strata)
    cost = np.r_[np.zeros(n), np.ones(2 * s)]
    rows, right = [], []
    for level in LEVELS:
        rows.append(np.r_[[cell[1] == level for cell in cells], np.zeros(2 * s)])
        right.append(levels[level])
    for place, stratum in enumerate(strata):
        over, under = np.eye(s)[place], -np.eye(s)[place]
        rows.append(np.r_[[cell[0] == stratum for cell in cells], -over, -under])
        right.append(coverage[stratum])
    bounds = [(0, available[cell]) for cell in cells] + [(0, None)] * (2 * s)
    return linprog(cost, A_eq=np.array(rows, dtype=float), b_eq=right, bounds=bounds).fun


@given(pools(), ratios, st.data())
def test_coverage_suffers_as_little_as_it_can(pool, ratio, data):
    if not (size := size_for(data, pool, ratio)):
        return
    sample = draw(pool, size, parse_ratio(ratio))
    harm = sum(abs(count.drawn - count.wanted) for count in sample.strata.values())
    levels = {level: count.drawn for level, count in sample.levels.items()}
    coverage = {name: count.wanted for name, count in sample.strata.items()}
    assert coverage == apportioned(size, dict(sorted(Counter(item.stratum for item in pool).items())))
    assert harm == pytest.approx(least_harm(pool, levels, coverage), abs=1e-6)


@given(pools(), st.data(), st.randoms())
def test_the_order_of_the_pool_has_no_influence_and_the_seed_has(pool, data, random):
    size = size_for(data, pool, "3:5:2")
    shuffled = random.sample(pool, len(pool))
    assert draw(pool, size, PAPERS, 7) == draw(shuffled, size, PAPERS, 7)


def test_other_seeds_draw_other_questions():
    pool = [PoolItem(f"{number}", LEVELS[number % 3]) for number in range(300)]
    samples = [set(draw(pool, 100, PAPERS, seed).ids) for seed in range(20)]
    assert len(set(map(frozenset, samples))) == 20
    # each hard question has a chance of 30 in 100: its count over 20 draws is nowhere near 0 or 20 for all
    often = Counter(name for sample in samples for name in sample if int(name) % 3 == 0)
    assert 60 < len(often) <= 100 and max(often.values()) < 20


def test_nothing_is_swapped_where_coverage_alone_has_the_mix():
    pool = [
        PoolItem(f"{stratum}{level}{n}", level, stratum)
        for stratum in "ab"
        for level in LEVELS
        for n in range(10)
    ]
    sample = draw(pool, 60, parse_ratio("1:1:1"))
    assert sample.swapped == 0 and len(sample.ids) == 60


def test_hard_questions_come_from_where_they_are_and_each_stratum_keeps_its_share():
    def some(stratum, hard, medium, easy):
        levels = ["hard"] * hard + ["medium"] * medium + ["easy"] * easy
        return [PoolItem(f"{stratum}{number}", level, stratum) for number, level in enumerate(levels)]

    pool = some("heart", 0, 20, 80) + some("lung", 60, 20, 20)
    sample = draw(pool, 20, PAPERS)
    drawn = counts_of(sample.ids, pool)
    assert [sample.levels[level].drawn for level in LEVELS] == [6, 10, 4]
    assert drawn["lung", "hard"] == 6 and {count.drawn for count in sample.strata.values()} == {10}


@pytest.mark.parametrize(("size", "ratio"), [(31, "3:5:2"), (11, "0:1:0"), (0, "1:1:1")])
def test_a_size_that_the_pool_has_not_is_refused(size, ratio):
    pool = [PoolItem(f"{number}", LEVELS[number % 3]) for number in range(30)]
    with pytest.raises(MedtasksError, match=r"cannot be drawn: the pool has (30|10) at the levels") as error:
        draw(pool, size, parse_ratio(ratio))
    assert "--ratio" in error.value.remedy
