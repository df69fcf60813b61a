"""Stratified samples with a target mix of levels: exact where it can be, as close as can be elsewhere."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.blocks import LEVELS
from medtasks_ext.studies.difficulty import RATIO, apportioned, draw, feasible


@st.composite
def pools(draw_):
    """Question -> (level, stratum)."""
    cells = st.tuples(st.sampled_from("abcdef"), st.sampled_from(LEVELS))
    drawn = draw_(st.dictionaries(cells, st.integers(1, 12), min_size=1))
    return {
        f"{stratum}-{level}-{number}": (level, stratum)
        for (stratum, level), n in drawn.items()
        for number in range(n)
    }


def drawn_of(pool, size):
    levels, strata = ({name: of[place] for name, of in pool.items()} for place in (0, 1))
    return draw(levels, strata, size)


@pytest.mark.parametrize(("n", "parts"), [(100, [30, 50, 20]), (150, [45, 75, 30]), (300, [90, 150, 60])])
def test_the_sizes_of_the_paper_split_as_it_says(n, parts):
    assert apportioned(n, RATIO) == parts


@given(st.integers(0, 500), st.lists(st.integers(0, 50), min_size=1).filter(any))
def test_every_part_is_within_one_of_its_exact_share(n, weights):
    parts = apportioned(n, weights)
    assert sum(parts) == n
    pairs = zip(parts, weights, strict=True)
    assert all(abs(part - Fraction(n * weight, sum(weights))) < 1 for part, weight in pairs)


def test_a_level_that_is_short_gives_all_and_the_others_share_the_rest_by_the_ratio():
    assert feasible(100, [9, 500, 500]) == [9, 65, 26]


def least_harm(pool, levels, coverage):
    """The smallest sum of |drawn - share| over strata for given levels, by linear programming."""
    strata = sorted(coverage)
    available = Counter((stratum, level) for level, stratum in pool.values())
    cells = [(stratum, level) for stratum in strata for level in LEVELS]
    n, s = len(cells), len(strata)
    rows = [np.r_[[cell[1] == level for cell in cells], np.zeros(2 * s)] for level in LEVELS]
    for place, stratum in enumerate(strata):
        over = np.eye(s)[place]
        rows.append(np.r_[[cell[0] == stratum for cell in cells], -over, over])
    right = [*(levels[level] for level in LEVELS), *(coverage[stratum] for stratum in strata)]
    bounds = [(0, available[cell]) for cell in cells] + [(0, None)] * (2 * s)
    cost = np.r_[np.zeros(n), np.ones(2 * s)]
    return linprog(cost, A_eq=np.array(rows, dtype=float), b_eq=right, bounds=bounds).fun


@given(pools(), st.data())
def test_the_mix_comes_first_and_coverage_suffers_as_little_as_it_can(pool, data):
    size = data.draw(st.integers(1, len(pool)))
    ids, frame = drawn_of(pool, size)
    assert len(ids) == size and drawn_of(dict(reversed(pool.items())), size)[0] == ids
    by_level, by_stratum = (Counter(pool[name][place] for name in ids) for place in (0, 1))
    levels, strata = (
        {row["name"]: row for row in frame if row["of"] == name} for name in ("level", "department")
    )
    assert {name: row["drawn"] for name, row in levels.items()} == {name: by_level[name] for name in LEVELS}
    assert {name: row["drawn"] for name, row in strata.items()} == {name: by_stratum[name] for name in strata}
    if all(row["wanted"] <= row["pool"] for row in levels.values()):
        assert all(row["drawn"] == row["wanted"] for row in levels.values())
    coverage = {name: row["wanted"] for name, row in strata.items()}
    harm = sum(abs(row["drawn"] - row["wanted"]) for row in strata.values())
    assert harm == pytest.approx(least_harm(pool, by_level, coverage), abs=1e-6)


def test_a_size_that_the_pool_has_not_is_refused():
    pool = {f"{number}": (LEVELS[number % 3], "") for number in range(30)}
    with pytest.raises(MedtasksError, match="31 questions cannot be drawn: the pool has 30"):
        drawn_of(pool, 31)
