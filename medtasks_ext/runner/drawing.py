"""The documents that a run with a stated error asks, round by round: they follow from seed and keys alone, so
that two models are asked the same, and a later round adds to an earlier one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.harness import Task
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.registry import Registry
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.rollup import Members, nearness
from medtasks_ext.runner.run import loaded_record
from medtasks_ext.runs.manifest import Choice, Drawn
from medtasks_ext.runs.records import TaskRecord
from medtasks_ext.stats.sampling import ENOUGH, LEAST, Population
from medtasks_ext.stats.statistic import Statistic, unit_of

#: Documents that a label needs so that macro F1 is estimated: with fewer its bias is a matter of points.
_PER_LABEL = 15
#: Units of a task at least whose score is neither a mean nor a ratio of sums.
_OF_CURVED = 50
_SEED = 1234
_STRAIGHT = ("mean", "micro", "share", "accuracy", "precision", "recall")


class _Draw:
    """The units of one task in the order in which they are drawn, and how many of them are."""

    def __init__(self, task: Task, statistic: Statistic) -> None:
        rows, units = task.eval_docs, dict[Hashable, list[int]]()
        for place in range(len(rows)):
            units.setdefault(unit_of({"doc": rows[place], "doc_id": place}), []).append(place)
        key = [f"{_SEED} {document_key(row)}".encode(errors="surrogatepass") for row in rows]
        self.units = sorted(units.values(), key=lambda places: sha256(key[places[0]]).digest())
        self.drawn, self.documents = 0, len(rows)
        least = LEAST if any(word in statistic.name for word in _STRAIGHT) else _OF_CURVED
        if statistic.name.startswith(("f1_macro", "macro")):
            golds = (row["gold"] for row in rows)
            of_rows = ([gold] if isinstance(gold, str | int) else map(str, gold or ()) for gold in golds)
            labels = Counter[Hashable](label for of_row in of_rows for label in of_row)
            rarest = min(labels.values(), default=0)
            least = max(LEAST, -(-_PER_LABEL * len(units) // max(rarest, 1)))
        self.least = min(len(units), least)

    @property
    def places(self) -> list[int]:
        """Places of the documents that are drawn, in the order of the test file."""
        return sorted(place for unit in self.units[: self.drawn] for place in unit)


@dataclass
class _Score:
    """A group whose score has a stated error, and where it stands."""

    name: str
    words: str  # its name, and which part of it is asked
    weights: Mapping[str, float]  # task -> its weight
    population: Population  # of these tasks
    scale: float | None = None  # of the round; None before the first
    half: float | None = None  # of its interval, 0-1


class Design:
    """What is drawn of all tasks, round by round.

    `names`: of the tasks and groups whose scores are estimated. `tasks`: those that can be asked. `error`:
    half of the 95 % interval that each score may have, in points. `left_out`: task -> why it is not asked.
    `n_documents`: of all tasks.
    """

    def __init__(
        self, registry: Registry, names: Iterable[str], tasks: Mapping[str, Task], error: float
    ) -> None:
        self.error, self.left_out = error, dict[str, str]()
        self._draws, self._wished = dict[str, _Draw](), error / 100
        asked = {name: _weights(registry, name, tasks) for name in dict.fromkeys(names)}
        counted = {name for weights in asked.values() for name in weights}
        for name, task in tasks.items():
            record = loaded_record(task)
            if "score" not in task.aggregation():
                self.left_out[name] = "its score comes from judges"
            elif record["n_without_gold"] == record["n_test"]:
                self.left_out[name] = "its rows have no gold"
            elif name not in counted:
                self.left_out[name] = "counts in none of the scores"
            else:
                self._draws[name] = _Draw(task, score_statistic(*registry.tasks[name]))
        self.n_documents = sum(draw.documents for draw in self._draws.values())
        scored = {name: _weights(registry, name, self._draws) for name in asked}
        self.scores = [self._score(registry, *item) for item in scored.items() if item[1]]
        if not self.scores:
            what = f"no score of these tasks can be estimated: {some([*self.left_out])}"
            raise MedtasksError(what, where="--error", remedy="leave --error out")
        self._grow(self.scores)

    def _score(self, registry: Registry, name: str, weights: Mapping[str, float]) -> _Score:
        draws = [self._draws[task] for task in weights]
        sizes, least = np.array([(len(draw.units), draw.least) for draw in draws]).T
        of = len({task for part in registry.parts(name) for task in part})
        words = name if len(weights) == of else f"{name} ({len(weights)} of {of} tasks)"
        if (units := int(sizes.sum())) < ENOUGH:
            what = f"{words} has {units} documents, and an estimate needs {ENOUGH}"
            raise MedtasksError(what, where="--error", remedy="leave --error out")
        return _Score(name, words, weights, Population(sizes, np.array([*weights.values()]), least))

    def _grow(self, scores: list[_Score]) -> None:
        for score in scores:
            score.scale = score.population.following(score.scale, score.half, self._wished)
            for name, n in zip(score.weights, score.population.drawn(score.scale).tolist(), strict=True):
                self._draws[name].drawn = max(n, self._draws[name].drawn)

    @property
    def asked(self) -> dict[str, int]:
        """Task -> documents that are drawn so far, of the tasks that are asked."""
        return {name: len(draw.places) for name, draw in self._draws.items()}

    def settle(self, results: Mapping[str, TaskRecord]) -> bool:
        """Look at the results so far, and draw more for scores that are not near enough: another round?"""
        before = self.asked
        for score in self.scores:
            there = [name for name in score.weights if "score" in results[name]["metrics"]]
            total, found = sum(score.weights[name] for name in there), [results[name] for name in there]
            near = nearness(
                [score.weights[name] / total for name in there],
                [item["metrics"]["score"] for item in found],
                [item.get("estimate") for item in found],
                [item["n"] for item in found],
            )
            score.half = near.half if near else 0.0
        self._grow([score for score in self.scores if score.half and score.half > self._wished])
        return self.asked != before

    def choices(self) -> dict[str, Choice]:
        """Task -> what was drawn of it; all units are no draw."""
        scores, choices = tuple(score.name for score in self.scores), dict[str, Choice]()
        for name, draw in self._draws.items():
            units = len(draw.units)
            drawn = Drawn(error=self.error, scores=scores, documents=draw.documents, units=units)
            part = Choice(samples=tuple(draw.places), drawn=drawn)
            choices[name] = part if draw.drawn < units else Choice()
        return choices


def _weights(registry: Registry, name: str, tasks: Mapping[str, Any]) -> dict[str, float]:
    return Members(name, (), tuple(map(tuple, registry.parts(name)))).weights(tasks.keys())
