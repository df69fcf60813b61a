"""Simulated runs of the published models over some documents: their published scores are the truth."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from medtasks_ext.registry import registry
from medtasks_ext.results.published import published_entries
from medtasks_ext.stats.sampling import LEAST, Estimate, Population, half_width, weighted
from medtasks_ext.stats.statistic import Array

STRATEGIES = ("", "_cot", "_5shot")
#: Scores of documents around the one of their task: right or wrong, or anything between.
NOISES = ("bernoulli", "beta")


@lru_cache(maxsize=1)
def bridge() -> tuple[Array, Population]:
    """BRIDGE's 98 models on 87 tasks: scores (strategies, models, tasks), and the overall score."""
    entries = [entry for entry in published_entries(registry()) if entry.paper == "bridge"]
    first = [item for name, item in entries[0].experiments.items() if not name.endswith(STRATEGIES[1:])]
    names = [item.task for item in first]
    scores = [
        [[entry.experiments[name + end].metrics["score"] for name in names] for entry in entries]
        for end in STRATEGIES
    ]
    sizes = np.array([item.n for item in first], dtype=float)
    weights = np.full(len(sizes), 1 / len(sizes))
    return np.array(scores), Population(sizes, weights, np.minimum(sizes, LEAST))


def documents(rng: np.random.Generator, scores: Array, sizes: Array, noise: str) -> list[Array]:
    """The score of each document of each task, in the random order in which they are drawn."""
    if noise == "bernoulli":
        return [(rng.random(int(n)) < p).astype(float) for p, n in zip(scores, sizes, strict=True)]
    p = np.clip(scores, 1e-3, 1 - 1e-3)
    return [rng.beta(2 * one, 2 * (1 - one), int(n)) for one, n in zip(p, sizes, strict=True)]


def estimates(found: list[Array], drawn: Array, sizes: Array) -> list[Estimate]:
    """What `sampling.estimated` gives of means, without derivatives; a test holds both together."""
    estimates = []
    for values, n, size in zip(found, drawn.tolist(), sizes.tolist(), strict=True):
        some = values[:n]
        mean, variance = float(some.mean()), float(some.var(ddof=1)) if n > 1 else 0.0
        counted = 0 if variance == 0 and mean in (0, 1) else n
        middle = (mean * n + 0.5) / (n + 1)
        variance = (counted * variance + middle * (1 - middle)) / (counted + 1)
        estimates.append(Estimate(mean, variance / n * (1 - n / size), variance / n, max(1.0, n - 1)))
    return estimates


@dataclass(frozen=True)
class Ended:
    error: float  # distance to the score of all documents
    half: float
    share: float  # of all documents


def run(rng: np.random.Generator, scores: Array, population: Population, wished: float, noise: str) -> Ended:
    """Ask in rounds until the interval of the overall score is narrow enough."""
    found = documents(rng, scores, population.sizes, noise)
    truth = float(population.weights @ [one.mean() for one in found])
    scale = population.following(None, None, wished)
    while True:
        drawn = population.drawn(scale)
        now = weighted(population.weights, estimates(found, drawn, population.sizes))
        half = half_width(now)
        if half <= wished:
            return Ended(abs(now.value - truth), half, float(drawn.sum() / population.sizes.sum()))
        scale = population.following(scale, half, wished)
