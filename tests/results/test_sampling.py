"""Scores of all documents from some: unbiased, as near as they say, and of fewer documents."""

from functools import lru_cache

import numpy as np
import pytest

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.metrics.labels import f1_macro
from medtasks_ext.registry import registry
from medtasks_ext.results.published import published_entries
from medtasks_ext.stats.sampling import LEAST, Estimate, Population, estimated, half_width, weighted
from medtasks_ext.stats.statistic import mean, value_and_one

STRATEGIES = ("", "_cot", "_5shot")


@lru_cache(maxsize=1)
def bridge():
    """BRIDGE's 98 models on 87 tasks: scores (strategies, models, tasks), and the overall score."""
    entries = [entry for entry in published_entries(registry()) if entry.paper == "bridge"]
    first = [item for name, item in entries[0].experiments.items() if not name.endswith(STRATEGIES[1:])]
    names = [item.task for item in first]
    scores = [
        [[entry.experiments[name + end].metrics["score"] for name in names] for entry in entries]
        for end in STRATEGIES
    ]
    return np.array(scores), population(*(item.n for item in first), least=LEAST)


def population(*sizes, least=8):
    weights = np.full(len(sizes), 1 / len(sizes))
    return Population(np.array(sizes, dtype=float), weights, np.minimum(sizes, least).astype(float))


def estimates(found, drawn, sizes):
    """What `estimated` gives of means, without derivatives; a test holds both together."""
    estimates = []
    for values, n, size in zip(found, drawn.tolist(), sizes.tolist(), strict=True):
        some = values[:n]
        mean, variance = float(some.mean()), float(some.var(ddof=1)) if n > 1 else 0.0
        counted = 0 if variance == 0 and mean in (0, 1) else n
        middle = (mean * n + 0.5) / (n + 1)
        variance = (counted * variance + middle * (1 - middle)) / (counted + 1)
        estimates.append(Estimate(mean, variance / n * (1 - n / size), variance / n, max(1.0, n - 1)))
    return estimates


def asked_in_rounds(documents, asked, wished):
    """Until the interval is narrow enough: estimate, half width of the interval, share of the documents."""
    scale, half = asked.following(None, None, wished), None
    while half is None or half > wished:
        scale = scale if half is None else asked.following(scale, half, wished)
        drawn = asked.drawn(scale)
        now = weighted(asked.weights, estimates(documents, drawn, asked.sizes))
        half = half_width(now)
    return now.value, half, drawn.sum() / asked.sizes.sum()


@pytest.mark.parametrize("noise", ["bernoulli", "beta"])
@pytest.mark.parametrize(("wished", "least"), [(0.010, 20), (0.008, 14)])
@pytest.mark.parametrize("times", [60, pytest.param(2000, marks=pytest.mark.nightly)])
def test_a_stated_error_is_held_and_saves(times, wished, least, noise):
    """Simulated runs of the published models, whose published scores are the truth."""
    rng, (scores, asked) = np.random.default_rng(11), bridge()
    held, shares = [], []
    for _ in range(times):
        documents = []
        for score, n in zip(scores[rng.integers(3), rng.integers(98)], asked.sizes.astype(int), strict=True):
            near = 2 * np.clip([score, 1 - score], 1e-3, 1 - 1e-3)
            documents.append(rng.random(n) < score if noise == "bernoulli" else rng.beta(*near, n))
        found, half, share = asked_in_rounds([1.0 * one for one in documents], asked, wished)
        assert half <= wished
        held.append(abs(found - asked.weights @ [one.mean() for one in documents]) <= half)
        shares.append(share)
    assert np.mean(shares) <= 1 / least
    assert np.mean(held) >= 0.94 - 2 * np.sqrt(0.05 * 0.95 / times) * (times < 2000)


def test_the_simulation_estimates_as_the_product_does():
    rng, sizes = np.random.default_rng(15), np.array([40.0, 90, 20, 30, 12])
    documents = [rng.random(int(n)) for n in sizes]
    drawn = np.array([8, 20, 9, 30, 12])
    ours = estimates(documents, drawn, sizes)
    for one, values, n, size in zip(ours, documents, drawn, sizes.astype(int), strict=True):
        theirs = estimated(value_and_one(list(values[:n])), size, mean.value)
        assert (one.value, one.variance, one.beyond) == pytest.approx(
            (theirs.value, theirs.variance, theirs.beyond), rel=1e-6
        )


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


def right(rng, n):
    return np.column_stack([(rng.random(n) < 0.3).astype(float), np.ones(n)]), mean.value


def pooled(rng, n):
    gold = rng.poisson(3, n)
    hits = rng.binomial(gold, 0.6)
    return np.column_stack([hits, rng.poisson(1, n), gold - hits]).astype(float), micro_f1.value


def labelled(rng, n):
    gold = rng.integers(3, size=n)
    given = np.where(rng.random(n) < 0.7, gold, rng.integers(3, size=n))
    counts = f1_macro.counts(list(zip(gold.tolist(), given.tolist(), strict=True)))
    return counts if isinstance(counts, np.ndarray) else np.asarray(counts.todense()), f1_macro.value


@pytest.mark.parametrize("draw", [right, pooled, labelled])
def test_intervals_hold_the_score_of_all_documents(draw):
    rng, held, errors = np.random.default_rng(16), [], []
    for _ in range(400):
        counts, value = draw(rng, 900)
        found = estimated(counts[:80], 900, value)
        errors.append(found.value - float(value(counts.sum(axis=0))))
        held.append(abs(errors[-1]) <= half_width(found))
    assert np.mean(held) >= 0.925 and abs(np.mean(errors)) < 0.012
    whole = estimated(counts, 900, value)  # all documents have no error
    assert whole.value == pytest.approx(float(value(counts.sum(axis=0))), abs=1e-12)
    assert whole.variance == 0 == half_width(whole) and whole.beyond > 0
