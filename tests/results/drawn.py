"""Simulated runs of the published models over some documents: their published scores are the truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from medtasks_ext.registry import registry
from medtasks_ext.results.published import published_entries
from medtasks_ext.stats.sampling import LEAST, SPREAD, Estimate, Population, half_width, of_drawn
from medtasks_ext.stats.statistic import Array
from tests.rows.published_lengths import published_lengths

STRATEGIES = ("", "_cot", "_5shot")
#: Tokens by assumption: of a word, of the instruction, and of reasoning that a prompt asks for.
WORD, INSTRUCTION, STEPS = 1.35, 200, 300


@dataclass(frozen=True)
class Suite:
    """The suite that publishes most: scores (strategies, models, tasks), documents and costs (tasks,)."""

    scores: Array
    sizes: Array
    costs: Array  # (strategies, tasks)

    def population(self, strategy: int = 0) -> Population:
        """One stratum a task, since no more than its mean length is published."""
        tasks = len(self.sizes)
        return Population(
            sizes=self.sizes, costs=self.costs[strategy], weights=np.full(tasks, 1 / tasks),
            least=np.minimum(self.sizes, LEAST), spreads=np.full(tasks, SPREAD),
        )  # fmt: skip


@lru_cache(maxsize=1)
def bridge() -> Suite:
    """BRIDGE's 98 models on 87 tasks."""
    entries = [entry for entry in published_entries(registry()) if entry.paper == "bridge"]
    first = [item for name, item in entries[0].experiments.items() if not name.endswith(STRATEGIES[1:])]
    names = [item.task for item in first]
    scores = [
        [[entry.experiments[name + end].metrics["score"] for name in names] for entry in entries]
        for end in STRATEGIES
    ]
    lengths = [published_lengths()[item.dataset.id] for item in first]
    prompts = np.array([(WORD * item.input + INSTRUCTION) / 4 for item in lengths])
    answers = np.array([WORD * (item.output or 0) + 1 for item in lengths])
    costs = [prompts + answers + (STEPS if end == "_cot" else 0) for end in STRATEGIES]
    return Suite(np.array(scores), np.array([item.n for item in first], dtype=float), np.array(costs))


#: Noise of a document around its task's score: right or wrong, or anything between.
NOISES = ("bernoulli", "beta")


def documents(rng: np.random.Generator, scores: Array, sizes: Array, noise: str) -> list[Array]:
    """The score of each document of each task, in the random order in which they are drawn."""
    if noise == "bernoulli":
        return [(rng.random(int(n)) < p).astype(float) for p, n in zip(scores, sizes, strict=True)]
    p = np.clip(scores, 1e-3, 1 - 1e-3)
    return [rng.beta(2 * one, 2 * (1 - one), int(n)) for one, n in zip(p, sizes, strict=True)]


class Sums:
    """Sums of the first so many documents of each task."""

    def __init__(self, found: list[Array]) -> None:
        self._ends = np.concatenate([[0], np.cumsum([len(one) + 1 for one in found])])[:-1]
        self._first = np.concatenate([np.concatenate([[0.0], np.cumsum(one)]) for one in found])
        self._second = np.concatenate([np.concatenate([[0.0], np.cumsum(one**2)]) for one in found])

    def means(self, drawn: Array) -> tuple[Array, Array]:
        """Mean and variance of the first so many documents of each task, (..., tasks)."""
        first, second = self._first[self._ends + drawn], self._second[self._ends + drawn]
        mean = first / drawn
        return mean, np.maximum(second - drawn * mean**2, 0) / (drawn - 1)


def estimates(sums: Sums, drawn: Array, sizes: Array) -> tuple[Array, ...]:
    """What `sampling.estimated` gives of one stratum a task: values, variances, beyond, degrees.

    Args:
        drawn: (..., tasks), as all that comes back; a test holds both together.
    """
    means, variances = sums.means(drawn)
    found = []
    middle = (means * drawn + 0.5) / (drawn + 1)
    spread = middle * (1 - middle)
    alike = (variances == 0) & ((means == 0) | (means == 1))
    counted = np.where(alike, 0, drawn)
    for there in (sizes, np.full(len(sizes), np.inf)):
        share = of_drawn(1.0, drawn, there)
        found.append((counted * variances + spread) * share / (counted + 1))
    return means, found[0], found[1], np.maximum(drawn - 1.0, 1.0)


def overall(weights: Array, tasks: tuple[Array, ...]) -> list[Estimate]:
    """What `sampling.weighted` gives of each round; a test holds both together."""
    values, variances, beyond, degrees = tasks
    parts = weights**2 * variances
    below = (parts**2 / degrees).sum(axis=-1)
    free = np.divide(parts.sum(axis=-1) ** 2, below, out=np.ones(len(parts)), where=below > 0)
    columns = (values @ weights, parts.sum(axis=-1), beyond @ weights**2, free)
    return [Estimate(*map(float, column)) for column in zip(*columns, strict=True)]


@lru_cache
def rounds_of(aimed: float) -> tuple[Array, Array]:
    """Units drawn up to each round, (rounds, tasks), and the share of the cost that they are."""
    population = bridge().population()
    drawn = np.array(list(population.rounds(aimed)))
    return drawn, drawn @ population.costs / population.cost


@dataclass(frozen=True)
class Ended:
    """One simulated run that stopped."""

    error: float  # distance to the score of all documents
    half: float
    cost: float  # share of the cost of all documents


def run(rng: np.random.Generator, scores: Array, wished: float, noise: str) -> Ended:
    """Ask in rounds until the interval of the overall score is narrow enough."""
    suite, weights = bridge(), bridge().population().weights
    found = documents(rng, scores, suite.sizes, noise)
    truth = float(np.mean([one.mean() for one in found]))
    rounds, costs = rounds_of((wished / 1.96) ** 2)
    for number, now in enumerate(overall(weights, estimates(Sums(found), rounds, suite.sizes))):
        half = half_width(now)
        if half <= wished:
            return Ended(abs(now.value - truth), half, float(costs[number]))
    raise AssertionError("of all documents there is no error")
