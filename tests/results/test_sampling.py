"""Scores of all documents from some: unbiased, as near as they say, for the cost that is promised."""

from __future__ import annotations

from dataclasses import astuple
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.metrics.single_label import f1_macro
from medtasks_ext.stats.sampling import (
    Estimate,
    Population,
    estimated,
    half_width,
    interval_of,
    linearised,
    of_drawn,
    strata_of_cost,
    weighted,
)
from medtasks_ext.stats.statistic import mean, value_and_one
from tests.results.drawn import NOISES, Sums, bridge, estimates, overall, run

nightly = pytest.mark.nightly


def times(few, many):
    """So many simulations every day, and so many at night."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=nightly)])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("wished", "least"), [(0.010, 20), (0.008, 14)])
@times(60, 2000)
def test_a_stated_error_is_held_and_saves(times, wished, least, noise):
    rng, suite = np.random.default_rng(11), bridge()
    found = [run(rng, suite.scores[rng.integers(3), rng.integers(98)], wished, noise) for _ in range(times)]
    assert all(item.half <= wished for item in found)
    assert np.mean([item.cost for item in found]) <= 1 / least
    held = np.mean([item.error <= item.half for item in found])
    assert held >= 0.94 - 2 * np.sqrt(0.05 * 0.95 / times) * (times < 2000)


@nightly
def test_every_model_is_held():
    """Coverage by model, weak ones and strong ones: none is far below."""
    rng, suite = np.random.default_rng(12), bridge()
    covered = [
        np.mean(
            [found.error <= found.half for found in (run(rng, scores, 0.01, "bernoulli") for _ in range(200))]
        )
        for scores in suite.scores[0]
    ]
    assert min(covered) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(covered) >= 0.945


def test_the_simulation_estimates_as_the_product_does():
    rng, suite = np.random.default_rng(15), bridge()
    documents = [rng.random(int(n)) for n in suite.sizes[:5]]
    drawn = np.array([8, 20, 9, 30, 12])
    together = estimates(Sums(documents), drawn[None], suite.sizes[:5])
    ours = [Estimate(*map(float, column)) for column in zip(*(item[0] for item in together), strict=True)]
    assert astuple(overall(np.full(5, 0.2), together)[0]) == pytest.approx(
        astuple(weighted(np.full(5, 0.2), ours))
    )
    for one, values, n, size in zip(ours, documents, drawn, suite.sizes, strict=False):
        counts, stratum = value_and_one(list(values[:n])), np.zeros(n, dtype=int)
        theirs = estimated(counts, stratum, np.array([size]), mean.value)
        assert (one.value, one.variance, one.beyond) == pytest.approx(
            (theirs.value, theirs.variance, theirs.beyond), rel=1e-6
        )


def strata(sizes):
    return Population(
        sizes=np.array(sizes, dtype=float), costs=np.ones(len(sizes)), weights=np.array(sizes) / sum(sizes),
        least=np.minimum(sizes, 8).astype(float), spreads=np.full(len(sizes), 0.42),
    )  # fmt: skip


def test_more_is_drawn_of_what_is_cheap_and_never_more_than_there_is():
    population = strata([1000, 1000, 10])
    population.costs[1] = 16.0
    cheap, dear, few = population.allocated(2000)
    assert cheap == pytest.approx(4 * dear, abs=4) and few == 8
    assert list(population.allocated(1e9)) == [1000, 1000, 10]


def test_rounds_grow_and_end_with_all():
    population = strata([500, 200, 9])
    rounds = list(population.rounds(1e-4))
    assert all((later >= earlier).all() for earlier, later in pairwise(rounds))
    assert list(rounds[-1]) == [500, 200, 9]


def test_an_error_that_the_least_units_reach_has_rounds_as_well():
    assert list(list(strata([100, 50]).rounds(1.0))[-1]) == [100, 50]


def pooled(rng, n):
    gold = rng.poisson(3, n)
    hits = rng.binomial(gold, 0.6)
    return np.column_stack([hits, rng.poisson(1, n), gold - hits]).astype(float), micro_f1.value


def labelled(rng, n):
    gold = rng.integers(3, size=n)
    given = np.where(rng.random(n) < 0.7, gold, rng.integers(3, size=n))
    items = [(int(one), int(two)) for one, two in zip(gold, given, strict=True)]
    return np.asarray(_dense(f1_macro.counts(items))), f1_macro.value


def _dense(matrix):
    return matrix if isinstance(matrix, np.ndarray) else matrix.todense()


def right(rng, n):
    return np.column_stack([(rng.random(n) < 0.3).astype(float), np.ones(n)]), mean.value


@pytest.mark.parametrize("draw", [right, pooled, labelled])
def test_intervals_hold_the_score_of_all_documents(draw):
    """Dear documents are harder, and fewer of them are drawn: without weights the score would be another."""
    rng, held, errors = np.random.default_rng(16), [], []
    for _ in range(400):
        (easy, value), (hard, _) = draw(rng, 600), draw(rng, 300)
        hard[:, 0] *= 0 if draw is right else 1
        counts = np.concatenate([easy, hard])
        found = estimated(
            np.concatenate([easy[:60], hard[:20]]), np.repeat([0, 1], [60, 20]), np.array([600, 300]), value
        )
        errors.append(found.value - float(value(counts.sum(axis=0))))
        held.append(abs(errors[-1]) <= half_width(found))
    assert np.mean(held) >= 0.925
    assert abs(np.mean(errors)) < 0.012


def every_draw(strata, drawn):
    """Counts and strata of all draws of so many units of each stratum."""
    picks = [combinations(range(len(units)), n) for units, n in zip(strata, drawn, strict=True)]
    for places in product(*map(list, picks)):
        counts = [units[list(some)] for units, some in zip(strata, places, strict=True)]
        yield np.concatenate(counts), np.repeat(np.arange(len(drawn)), drawn)


@pytest.mark.parametrize(
    ("right", "of", "drawn"),
    [((4,), (14,), (7,)), ((7,), (14,), (7,)), ((7, 2), (9, 7), (4, 4)), ((5, 4), (9, 8), (5, 3))],
)
def test_all_draws_of_a_small_population_hit_its_score_on_average(right, of, drawn):
    strata = [value_and_one([1.0] * hits + [0.0] * (n - hits)) for hits, n in zip(right, of, strict=True)]
    truth, sizes = sum(right) / sum(of), np.array(of, dtype=float)
    found = [estimated(*one, sizes, mean.value) for one in every_draw(strata, drawn)]
    errors = np.array([item.value for item in found]) - truth
    assert errors.mean() == pytest.approx(0, abs=1e-12)
    assert np.mean([item.variance for item in found]) == pytest.approx(np.mean(errors**2), rel=0.1)
    widths = np.array([half_width(item) for item in found])
    assert np.mean(np.abs(errors) <= widths + 1e-12) >= 0.93


def test_all_draws_of_clusters_of_unlike_sizes():
    """A ratio of sums is biased by less than a tenth of its error."""
    rng = np.random.default_rng(20)
    sizes = rng.integers(1, 6, 12)
    units = np.column_stack([rng.binomial(sizes, rng.beta(1, 1, 12)), sizes]).astype(float)
    truth = float(mean.value(units.sum(axis=0)))
    found = [estimated(*one, np.array([12.0]), mean.value) for one in every_draw([units], (6,))]
    errors = np.array([item.value for item in found]) - truth
    assert abs(errors.mean()) < 0.1 * errors.std()
    assert np.mean(np.abs(errors) <= [half_width(item) for item in found]) >= 0.92


@pytest.mark.parametrize("right", [5, 20, 100, 980])
def test_one_task_near_the_ends_is_held(right):
    """Rare hits: what is drawn shows none of them, or too few to know how they vary."""
    rng, held = np.random.default_rng(21), []
    sizes = np.array([1000.0])
    for _ in range(200):
        values = rng.permutation((np.arange(1000) < right).astype(float))
        for [n] in strata([1000]).rounds((0.05 / 1.96) ** 2):
            found = estimated(value_and_one(list(values[:n])), np.zeros(n, dtype=int), sizes, mean.value)
            if half_width(found) <= 0.05:
                break
        held.append(abs(found.value - right / 1000) <= half_width(found))
    assert np.mean(held) >= 0.93


def test_intervals_of_none_right_are_those_of_so_many_documents():
    found = estimated(value_and_one([0.0] * 30), np.zeros(30, dtype=int), np.array([1000]), mean.value)
    interval = interval_of(found).interval
    assert interval.low == 0 and 0.09 < interval.high < 0.15


def test_all_documents_have_no_error_and_the_same_score():
    rng = np.random.default_rng(17)
    counts, value = pooled(rng, 50)
    found = estimated(counts, np.repeat([0, 1], 25), np.array([25, 25]), value)
    assert found.value == pytest.approx(float(value(counts.sum(axis=0))), abs=1e-12)
    assert found.variance == 0 == half_width(found) and found.beyond > 0


def test_a_mean_moves_by_its_residuals():
    values = np.array([0.0, 1.0, 0.5])
    moved = linearised(value_and_one(list(values)), np.full(3, 10.0), mean.value)
    assert moved == pytest.approx((values - 0.5) / 30)


def test_a_stratum_without_a_drawn_unit_is_refused():
    with pytest.raises(ValueError, match="each stratum"):
        estimated(np.ones((2, 2)), np.array([0, 0]), np.array([5, 5]), mean.value)


def test_units_that_came_out_alike_still_leave_doubt():
    found = estimated(np.ones((8, 2)), np.zeros(8, dtype=int), np.array([100]), mean.value)
    assert found.value == 1.0 and 0.3 < half_width(found) < 0.4  # three of eight may be otherwise


def test_variances_without_replacement():
    assert of_drawn(1.0, [5, 10, 0], [10, 10, 10]) == pytest.approx([0.1, 0.0, np.inf])


def test_weights_count_squared():
    found = weighted([0.5, 0.5], [Estimate(0.2, 0.04, 0.04, 9), Estimate(0.6, 0.0, 0.01, 9)])
    assert (found.value, found.variance, found.beyond) == pytest.approx((0.4, 0.01, 0.0125))


def test_strata_of_cost_hold_enough_and_are_in_order():
    rng = np.random.default_rng(18)
    costs = rng.lognormal(0, 1.5, 1000)
    found = strata_of_cost(costs)
    assert set(found) == {0, 1, 2, 3} and np.bincount(found).min() >= 16
    assert (np.diff(found[np.argsort(costs)]) >= 0).all()
    assert set(strata_of_cost(costs[:40])) == {0} == set(strata_of_cost(np.full(1000, 3.0)))
