"""The documents that a run with a stated error asks: a design that is fixed before the first answer.

Units of each task are in strata of cost, and in each stratum in an order that follows from the seed and the
documents' keys alone: two models are asked the same documents, and a later round adds to an earlier one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.documents import Document, document_key
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.drawn import estimate_of
from medtasks_ext.results.rollup import Members
from medtasks_ext.runner.evaluate import Reader
from medtasks_ext.runner.plan_model import count_bytes
from medtasks_ext.runner.run import loaded_record
from medtasks_ext.runs.choice import Choice, Drawn, Stratum
from medtasks_ext.stats.counts import unit_of
from medtasks_ext.stats.intervals import Z
from medtasks_ext.stats.sampling import (
    LEAST,
    PER_LABEL,
    SPREAD,
    Estimate,
    Population,
    half_width,
    strata_of_cost,
    weighted,
)

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.registry import Registry
    from medtasks_ext.stats.statistic import Array, Statistic

SEED = 1234
#: A share of the cost above which an error is no estimate's: all documents are asked instead.
WORTH_IT = 0.9
#: Units of a score below which its interval would be a guess.
ENOUGH = 100
#: Units of a task at least whose score is neither a mean nor a ratio of sums.
_OF_CURVED = 50
_STRAIGHT = ("mean", "micro", "share", "accuracy", "precision", "recall")


@dataclass(frozen=True)
class ErrorTarget:
    """What `--error` asks for."""

    error: float  # half of the 95 % interval, in points
    scores: tuple[str, ...] = ()  # groups; by default the overall score of each suite
    seed: int = SEED

    @property
    def half(self) -> float:
        """On the scale of scores."""
        return self.error / 100

    @property
    def variance(self) -> float:
        """That is aimed at."""
        return (self.half / Z) ** 2


class TaskDraw:
    """The units of one task in the order in which they are drawn.

    Args:
        task: as built.
        statistic: how its score follows.
        seed: of the order.
    """

    def __init__(self, task: Task, statistic: Statistic, seed: int) -> None:
        self.task, self.statistic, self.name = task, statistic, task.task_name
        rows = task.eval_docs
        units: dict[Hashable, list[int]] = {}
        for place in range(len(rows)):
            units.setdefault(unit_of({"doc": rows[place], "doc_id": place}), []).append(place)
        self.units = {place: unit for unit, places in units.items() for place in places}
        costs = document_costs(rows)
        unit_costs = np.array([sum(costs[place] for place in places) for places in units.values()])
        strata = strata_of_cost(unit_costs)
        ordered = sorted(
            zip(strata, unit_costs, units.values(), strict=True),
            key=lambda item: (item[0], _luck(seed, document_key(rows[item[2][0]]))),
        )
        self._strata: list[list[list[int]]] = [[] for _ in range(int(strata.max()) + 1)]
        for stratum, _, places in ordered:
            self._strata[stratum].append(places)
        self.sizes = np.array([len(found) for found in self._strata], dtype=float)
        self.costs = np.array([unit_costs[strata == i].mean() for i in range(len(self.sizes))])
        self.documents = len(rows)

    @cached_property
    def least(self) -> Array:
        """Units that are drawn of each stratum at least."""
        wished = self._least_of_task()
        of_stratum = np.ceil(wished * self.sizes / self.sizes.sum())
        at_least: Array = np.minimum(np.maximum(of_stratum, LEAST), self.sizes)
        return at_least

    def _least_of_task(self) -> float:
        if any(self.statistic.name.startswith(word) for word in ("f1_macro", "macro")):
            labels = Counter(label for row in self.task.eval_docs for label in _labels(row["gold"]))
            rarest = min(labels.values(), default=0)
            return self.sizes.sum() if rarest < PER_LABEL else PER_LABEL * self.documents / rarest
        straight = any(word in self.statistic.name for word in _STRAIGHT)
        return 0 if straight else _OF_CURVED

    def places(self, drawn: Array) -> list[int]:
        """Places of the documents of so many units of each stratum, in the order of the test file."""
        found = [
            place
            for units, n in zip(self._strata, drawn, strict=True)
            for unit in units[: int(n)]
            for place in unit
        ]
        return sorted(found)

    def strata(self, drawn: Array) -> tuple[Stratum, ...]:
        """So many units of each stratum, with their documents."""
        return tuple(
            Stratum(
                units=len(units), samples=tuple(sorted(place for unit in units[: int(n)] for place in unit))
            )
            for units, n in zip(self._strata, drawn, strict=True)
        )

    def choice(self, drawn: Array, target: ErrorTarget, scores: tuple[str, ...]) -> Choice:
        """What a result over so many units of each stratum says of them; all are no draw."""
        if (np.asarray(drawn) >= self.sizes).all():
            return Choice()
        strata = self.strata(drawn)
        record = Drawn(
            error=target.error,
            scores=scores,
            seed=target.seed,
            documents=self.documents,
            strata=strata,
        )
        return Choice(samples=tuple(self.places(drawn)), drawn=record)


def document_costs(documents: Sequence[Document]) -> list[float]:
    """What each document costs beside the others: a token of an answer as much as four of a prompt."""
    prompts = count_bytes([item["system"] + shown(item) for item in documents])
    answers = count_bytes([item["target"] for item in documents])
    return [prompt + 4.0 * (answer + 1) for prompt, answer in zip(prompts, answers, strict=True)]


def _luck(seed: int, key: str) -> bytes:
    return sha256(f"{seed} {key}".encode(errors="surrogatepass")).digest()


def _labels(gold: Any) -> list[Hashable]:
    return [gold] if isinstance(gold, str | int) else [str(label) for label in gold or ()]


def check_error(name: str, population: Population, target: ErrorTarget) -> None:
    """Refuse an error that is no estimate's.

    Args:
        name: of the score, in words.

    Raises:
        MedtasksError: too few documents; nearly all of them are needed, and what half of the cost gives.
    """
    if (units := int(population.sizes.sum())) < ENOUGH:
        raise MedtasksError(
            f"{name} has {units} documents, and an estimate needs {ENOUGH}",
            where="--error",
            remedy="leave --error out",
        )
    planned = population.allocated(population.scale_of(target.variance))
    share = population.cost_of(planned) / population.cost
    if share > WORTH_IT:
        raise MedtasksError(
            f"±{target.error:g} points of {name} need {share:.0%} of the cost of all its documents; half of "
            f"it gives about ±{_reached(population, 0.5):.1f}",
            where="--error",
            remedy="give a larger error, or leave --error out",
        )


def _reached(population: Population, share: float) -> float:
    """The error in points that a share of the cost gives by the assumed spread."""
    low, high = 1e-9, 1.0
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        planned = population.allocated(population.scale_of(middle))
        dear = population.cost_of(planned) > share * population.cost
        low, high = (middle, high) if dear else (low, middle)
    return 100 * float(Z * high**0.5)


def _nothing_estimated(names: Sequence[str]) -> MedtasksError:
    return MedtasksError(
        f"no score of these tasks can be estimated: {some(names)}",
        where="--error",
        remedy="leave --error out",
    )


@dataclass(frozen=True)
class Score:
    """A group whose score has a stated error."""

    name: str
    words: str  # its name, and which part of it is asked
    weights: Mapping[str, float]  # task -> its weight
    population: Population  # the strata of its tasks, one after the other
    strata: Mapping[str, slice]  # task -> its strata


class Design:
    """What is drawn of all tasks, round by round.

    Attributes:
        left_out: task -> why it is not asked.
    """

    def __init__(self, registry: Registry, tasks: Mapping[str, Task], target: ErrorTarget) -> None:
        self.target, self.left_out = target, dict[str, str]()
        self._registry, self._draws = registry, dict[str, TaskDraw]()
        asked = _scores(registry, tasks, target)
        counted = {name for weights in asked.values() for name in weights}
        for name, task in tasks.items():
            if why := not_estimated(task):
                self.left_out[name] = why
            elif name not in counted:
                self.left_out[name] = "counts in none of the scores"
            else:
                dataset, strategy = registry.tasks[name]
                self._draws[name] = TaskDraw(task, score_statistic(dataset, strategy), target.seed)
        self.scores = [
            score
            for name in asked
            if (score := self._score(name, _weights(registry, name, tasks, self._draws)))
        ]
        self._drawn = {name: np.zeros(len(draw.sizes), dtype=int) for name, draw in self._draws.items()}
        self._rounds = [score.population.rounds(target.variance) for score in self.scores]
        self._open = [True] * len(self.scores)

    def _score(self, name: str, weights: Mapping[str, float]) -> Score | None:
        if not weights:
            return None
        draws, places, first = [self._draws[task] for task in weights], {}, 0
        for draw in draws:
            places[draw.name] = slice(first, first := first + len(draw.sizes))
        joined = {
            field: np.concatenate([getattr(draw, field) for draw in draws])
            for field in ("sizes", "costs", "least")
        }
        shares = [weights[draw.name] * draw.sizes / draw.sizes.sum() for draw in draws]
        spreads = np.full(len(joined["sizes"]), SPREAD)
        population = Population(weights=np.concatenate(shares), spreads=spreads, **joined)
        return Score(name, _in_words(self._registry, name, weights), weights, population, places)

    def check(self) -> None:
        """Refuse an error that is no estimate's.

        Raises:
            MedtasksError: no score can be estimated; too few documents; nearly all of them are needed, and
                what a part of them gives.
        """
        if not self.scores:
            raise _nothing_estimated([*self.left_out])
        for score in self.scores:
            check_error(score.words, score.population, self.target)

    @property
    def tasks(self) -> list[str]:
        """The tasks that are asked."""
        return list(self._draws)

    @property
    def n_asked(self) -> int:
        """Documents that are drawn so far."""
        return sum(len(self._draws[name].places(drawn)) for name, drawn in self._drawn.items())

    @property
    def n_documents(self) -> int:
        """Documents of all tasks."""
        return sum(draw.documents for draw in self._draws.values())

    def cost_share(self) -> float:
        """What is drawn so far, as a share of the cost of all documents."""
        spent = sum(float((self._drawn[name] * draw.costs).sum()) for name, draw in self._draws.items())
        return spent / sum(float((draw.sizes * draw.costs).sum()) for draw in self._draws.values())

    def planned(self) -> dict[str, int]:
        """Task -> documents that the assumed spread plans for."""
        by_task = dict.fromkeys(self._draws, 0)
        for score in self.scores:
            units = score.population.allocated(score.population.scale_of(self.target.variance))
            for name, place in score.strata.items():
                by_task[name] = max(by_task[name], len(self._draws[name].places(units[place])))
        return by_task

    def draw(self) -> dict[str, list[int]] | None:
        """Task -> places of documents that the next round asks besides; None where all scores are settled."""
        before = {name: set(self._draws[name].places(drawn)) for name, drawn in self._drawn.items()}
        for i, score in enumerate(self.scores):
            following = next(self._rounds[i], None) if self._open[i] else None
            if following is None:
                self._open[i] = False
                continue
            for name, place in score.strata.items():
                self._drawn[name] = np.maximum(self._drawn[name], following[place])
        if not any(self._open):
            return None
        return {
            name: [place for place in self._draws[name].places(drawn) if place not in before[name]]
            for name, drawn in self._drawn.items()
        }

    def settle(self, scored: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> None:
        """Close the scores whose interval is narrow enough.

        Args:
            scored: task -> place -> metrics of the document; a task without any counts in no score.
        """
        estimated = {name: self._estimate(name, some) for name, some in scored.items()}
        estimates = {name: estimate for name, estimate in estimated.items() if estimate is not None}
        for i, score in enumerate(self.scores):
            there = [name for name in score.weights if name in estimates]
            total = sum(score.weights[name] for name in there)
            if not total:
                continue
            weights = [score.weights[name] / total for name in there]
            estimate = weighted(weights, [estimates[name] for name in there])
            self._open[i] = self._open[i] and half_width(estimate) > self.target.half

    def choices(self) -> dict[str, Choice]:
        """Task -> what was drawn of it."""
        scores = tuple(score.name for score in self.scores)
        return {
            name: draw.choice(self._drawn[name], self.target, scores) for name, draw in self._draws.items()
        }

    def _estimate(self, name: str, scored: Mapping[int, Mapping[str, Any]]) -> Estimate | None:
        """A task's score on what has come; None where a stratum has nothing yet."""
        draw = self._draws[name]
        samples = [{"doc": draw.task.eval_docs[i], "doc_id": i, **item} for i, item in scored.items()]
        return estimate_of(samples, draw.statistic, draw.strata(self._drawn[name]))


class Scoring:
    """Scores of single documents, as answers come."""

    def __init__(self, task: Task) -> None:
        self._task, self._reader = task, Reader(task)
        self._place = {document_key(task.eval_docs[i]): i for i in range(len(task.eval_docs))}
        self.scored: dict[int, Mapping[str, Any]] = {}  # place -> metrics of the document

    def add(self, document: str, text: str) -> None:
        """Read an answer and score it."""
        place = self._place[document]
        row = self._task.eval_docs[place]
        metrics = self._task.process_results(row, [self._reader.read(row, text)])
        self.scored[place] = {"score": metrics["score"]} if "score" in metrics else {}


def not_estimated(task: Task) -> str:
    """Why a task's score cannot be estimated as it is asked; nothing where it can."""
    if "score" not in task.aggregation():
        return "its score comes from judges"
    record = loaded_record(task)
    return "its rows have no gold" if record["n_without_gold"] == record["n_test"] else ""


def _scores(registry: Registry, tasks: Mapping[str, Any], target: ErrorTarget) -> dict[str, dict[str, float]]:
    """Group -> task -> weight of the scores that are wished for."""
    names = list(target.scores)
    if not names:
        for name in tasks:
            dataset, strategy = registry.tasks[name]
            group = (dataset.metadata.suite or "") + SUFFIX.get(strategy, "")
            known = group in registry.groups or group in registry.tags
            names.append(group if known else name)
    by_name = {}
    for name in dict.fromkeys(names):
        registry.resolve([name])  # an unknown one is refused
        by_name[name] = _weights(registry, name, tasks, tasks)
    return by_name


def _weights(
    registry: Registry, name: str, tasks: Mapping[str, Any], scored: Mapping[str, Any]
) -> dict[str, float]:
    return Members(name, (), tuple(map(tuple, registry.parts(name)))).weights(tasks.keys() & scored.keys())


def _in_words(registry: Registry, name: str, weights: Collection[str]) -> str:
    """The name of a score, and which part of it is asked."""
    of = len({task for part in registry.parts(name) for task in part})
    return name if len(weights) == of else f"{name} ({len(weights)} of {of} tasks)"
