"""Scores of all documents from some: unbiased, as near as they say, and of fewer documents."""

from itertools import combinations

import numpy as np
import pytest

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.metrics.labels import f1_macro
from medtasks_ext.stats.sampling import (
    Estimate,
    Population,
    estimated,
    half_width,
    interval_of,
    linearised,
    weighted,
)
from medtasks_ext.stats.statistic import mean, value_and_one
from tests.results.drawn import NOISES, bridge, estimates, run

nightly = pytest.mark.nightly


def times(few, many):
    """So many simulations every day, and so many at night."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=nightly)])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("wished", "least"), [(0.010, 20), (0.008, 14)])
@times(60, 2000)
def test_a_stated_error_is_held_and_saves(times, wished, least, noise):
    rng, (scores, population) = np.random.default_rng(11), bridge()
    found = [
        run(rng, scores[rng.integers(3), rng.integers(98)], population, wished, noise) for _ in range(times)
    ]
    assert all(item.half <= wished for item in found)
    assert np.mean([item.share for item in found]) <= 1 / least
    held = np.mean([item.error <= item.half for item in found])
    assert held >= 0.94 - 2 * np.sqrt(0.05 * 0.95 / times) * (times < 2000)


@nightly
def test_every_model_is_held():
    """Coverage by model, weak ones and strong ones: none is far below."""
    rng, (scores, population) = np.random.default_rng(12), bridge()
    runs = ([run(rng, one, population, 0.01, "bernoulli") for _ in range(200)] for one in scores[0])
    covered = [np.mean([found.error <= found.half for found in some]) for some in runs]
    assert min(covered) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(covered) >= 0.945


def test_the_simulation_estimates_as_the_product_does():
    rng, sizes = np.random.default_rng(15), np.array([40.0, 90, 20, 30, 12])
    documents = [rng.random(int(n)) for n in sizes]
    drawn = np.array([8, 20, 9, 30, 12])
    for one, values, n, size in zip(
        estimates(documents, drawn, sizes), documents, drawn, sizes.astype(int), strict=True
    ):
        theirs = estimated(value_and_one(list(values[:n])), size, mean.value)
        assert (one.value, one.variance, one.beyond) == pytest.approx(
            (theirs.value, theirs.variance, theirs.beyond), rel=1e-6
        )


def population(*sizes):
    weights = np.full(len(sizes), 1 / len(sizes))
    return Population(np.array(sizes, dtype=float), weights, np.minimum(sizes, 8).astype(float))


def test_rounds_ask_what_the_interval_says_and_end_with_all():
    tasks = population(500, 200, 9)
    scale = tasks.following(None, None, 0.01)
    assert list(tasks.drawn(scale)) == [34, 34, 9]
    assert list(tasks.drawn(tasks.following(scale, 0.012, 0.01))) == [48, 48, 9]
    assert list(tasks.drawn(tasks.following(scale, 0.5, 0.01))) == [67, 67, 9]  # twice as many at most
    rounds = 0
    while tuple(tasks.drawn(scale)) != (500, 200, 9):
        before, scale, rounds = tasks.drawn(scale), tasks.following(scale, 0.0101, 0.01), rounds + 1
        assert (tasks.drawn(scale) >= before).all() and tasks.drawn(scale).sum() > before.sum()
    assert rounds < 40


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
    rng, held, errors = np.random.default_rng(16), [], []
    for _ in range(400):
        counts, value = draw(rng, 900)
        found = estimated(counts[:80], 900, value)
        errors.append(found.value - float(value(counts.sum(axis=0))))
        held.append(abs(errors[-1]) <= half_width(found))
    assert np.mean(held) >= 0.925
    assert abs(np.mean(errors)) < 0.012


def every_draw(units, n):
    return (units[list(places)] for places in combinations(range(len(units)), n))


@pytest.mark.parametrize(("right", "of", "drawn"), [(4, 14, 7), (7, 14, 7), (5, 9, 5)])
def test_all_draws_of_a_small_population_hit_its_score_on_average(right, of, drawn):
    units = value_and_one([1.0] * right + [0.0] * (of - right))
    found = [estimated(some, of, mean.value) for some in every_draw(units, drawn)]
    errors = np.array([item.value for item in found]) - right / of
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
    found = [estimated(some, 12, mean.value) for some in every_draw(units, 6)]
    errors = np.array([item.value for item in found]) - truth
    assert abs(errors.mean()) < 0.1 * errors.std()
    assert np.mean(np.abs(errors) <= [half_width(item) for item in found]) >= 0.92


@pytest.mark.parametrize("right", [5, 20, 100, 400, 980])
def test_one_task_is_held_near_the_ends_too(right):
    """Rare hits: what is drawn shows none of them, or too few to know how they vary."""
    rng, held, one = np.random.default_rng(21), [], population(1000)
    for _ in range(200):
        values = rng.permutation((np.arange(1000) < right).astype(float))
        scale, half = one.following(None, None, 0.05), 1.0
        while half > 0.05:
            [found] = estimates([values], one.drawn(scale), one.sizes)
            half = half_width(found)
            scale = one.following(scale, half, 0.05)
        held.append(abs(found.value - right / 1000) <= half)
    assert np.mean(held) >= 0.93


def test_intervals_of_none_right_are_those_of_so_many_documents():
    interval = interval_of(estimated(value_and_one([0.0] * 30), 1000, mean.value)).interval
    assert interval.low == 0 and 0.09 < interval.high < 0.15


def test_all_documents_have_no_error_and_the_same_score():
    counts, value = pooled(np.random.default_rng(17), 50)
    found = estimated(counts, 50, value)
    assert found.value == pytest.approx(float(value(counts.sum(axis=0))), abs=1e-12)
    assert found.variance == 0 == half_width(found) and found.beyond > 0


def test_a_mean_moves_by_its_residuals():
    values = np.array([0.0, 1.0, 0.5])
    moved = linearised(value_and_one(list(values)), 10.0, mean.value)
    assert moved == pytest.approx((values - 0.5) / 30)


def test_units_that_came_out_alike_still_leave_doubt():
    found = estimated(np.ones((8, 2)), 100, mean.value)
    assert found.value == 1.0 and 0.3 < half_width(found) < 0.4  # three of eight may be otherwise


def test_weights_count_squared():
    found = weighted([0.5, 0.5], [Estimate(0.2, 0.04, 0.04, 9), Estimate(0.6, 0.0, 0.01, 9)])
    assert (found.value, found.variance, found.beyond) == pytest.approx((0.4, 0.01, 0.0125))
