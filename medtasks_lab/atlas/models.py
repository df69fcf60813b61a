"""The models of a suite's table: published ones and own runs, with scores by dataset and known facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.suites import function

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.report.groups import Group
    from medtasks_ext.results.experiments import Entry


@dataclass(frozen=True)
class PaperModel:
    """One row of a paper's table."""

    name: str
    own: bool
    scores: Mapping[str, Mapping[str, float]]  # strategy -> dataset -> score, 0-1
    groups: Mapping[str, float]  # what the paper prints without scores of tasks
    facts: Mapping[str, str]
    lengths: Mapping[str, float]  # strategy -> output tokens per answer, where they were counted
    #: strategy -> datasets that were asked otherwise than the paper's, or in part: in no rank beside these
    unlike: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)  # what differs -> of how many tasks

    def score(self, group: Group, strategy: str, *, whole: bool = True) -> float | None:
        """The mean over a group's tasks; None where it lacks one, or all if that is allowed."""
        scores = self.scores.get(strategy, {})
        if strategy == "zero_shot" and group.name in self.groups:
            return self.groups[group.name]
        weights = group.weights(frozenset(scores) & group.counted)
        if not weights or (whole and len(weights) < group.n_tasks):
            return None
        return sum(weight * scores[name] for name, weight in weights.items())

    def counted(self, group: Group, strategy: str = "zero_shot") -> frozenset[str]:
        """The group's tasks that it has a score for."""
        return frozenset(self.scores.get(strategy, {})) & group.counted

    def stands_beside(self, group: Group, strategy: str) -> bool:
        """Whether it has all tasks of a group, and was asked them as the published models were."""
        counted = self.counted(group, strategy)
        return len(counted) == group.n_tasks and not counted & self.unlike.get(strategy, frozenset())

    def note(self, group: Group, strategy: str) -> str:
        """What to know of its score in a group; nothing of published ones."""
        counted = self.counted(group, strategy)
        otherwise = bool(counted & self.unlike.get(strategy, frozenset()))
        return marks(len(counted), group.n_tasks, otherwise) if self.own else ""

    def has(self, facts: Mapping[str, str]) -> bool:
        """Whether it is one of the models with these facts; own ones always are."""
        return self.own or all(self.facts.get(name) == value for name, value in facts.items())


def marks(n: int, of: int, otherwise: bool) -> str:
    """How a score stands beside published ones, in words."""
    return ", ".join([f"{n}/{of} tasks"] * (n < of) + ["asked otherwise"] * otherwise)


def published_models(tasks: Registry, suite: Suite) -> list[PaperModel]:
    """The models that a suite's paper prints."""
    assert suite.published
    entries: list[Entry] = function(suite, suite.published.entries)(tasks, suite)
    return [_model(entry, suite, entry.details) for entry in entries]


def own_models(entries: Iterable[Entry], suite: Suite, published: Sequence[PaperModel]) -> list[PaperModel]:
    """Runs with scores of a suite. Facts are those of the published model of that name or hub id.

    Raises:
        MedtasksError: a run is on synthetic rows.
    """
    models = []
    for entry in entries:
        if entry.sample:
            raise MedtasksError(
                "synthetic sample rows cannot stand beside published scores",
                where=entry.label,
                remedy="run the tasks on their own data",
            )
        known = (item for item in published if entry.model in (item.name, item.facts.get("hub_id")))
        model = _model(entry, suite, next((item.facts for item in known), {}))
        if model.scores:
            models.append(model)
    return models


def _model(entry: Entry, suite: Suite, facts: Mapping[str, str]) -> PaperModel:
    scores: dict[str, dict[str, float]] = {}
    lengths: dict[str, list[float]] = {}
    unlike: dict[str, set[str]] = {}
    reasons: Counter[str] = Counter()
    for item in entry.experiments.values():
        if item.score is None or not suite.lists(item.dataset.key):
            continue
        # what a paper calls zero-shot may ask to reason first
        asked, strategy = item.dataset.metadata.published_strategy, item.strategy
        if asked != "zero_shot" and strategy == "zero_shot":
            continue
        strategy = "zero_shot" if strategy == asked else strategy
        scores.setdefault(strategy, {})[item.dataset.id] = item.score
        if item.tokens:
            lengths.setdefault(strategy, []).append(item.tokens["output"] / max(item.n, 1))
        if entry.kind != "published" and not item.may_stand_beside:
            unlike.setdefault(strategy, set()).add(item.dataset.id)
            named = {one.condition for one in item.unlike_the_paper}
            reasons.update(named if item.coverage.whole else {*named, "a part of the rows or judgements"})
    return PaperModel(
        entry.label if entry.kind != "published" else entry.model,
        entry.kind != "published",
        scores,
        entry.groups,
        facts,
        {strategy: float(np.mean(values)) for strategy, values in lengths.items()},
        {strategy: frozenset(names) for strategy, names in unlike.items()},
        reasons,
    )


# ---------------------------------------------------------------------- facts as numbers


def covariate(model: PaperModel, name: str, strategy: str) -> float | None:
    """A fact of a model as a number; None where it is not known.

    Args:
        model: which one.
        name: size (log10 of billions), date (days), open, medical, reasoning (0 or 1), output_length.
        strategy: of the scores, for the length of answers in tokens.
    """
    facts = model.facts
    if name == "output_length":
        return model.lengths.get(strategy)
    if name == "size":
        sizes = (_billions(facts.get(key, "")) for key in _SIZES)
        return next((float(np.log10(size)) for size in sizes if size), None)
    if name == "date":
        text = facts.get("release_date") or facts.get("release_date_models_log")
        return float(date.fromisoformat(text).toordinal()) if text else None
    key, one, zero = _TWO[name]
    return {one: 1.0, **dict.fromkeys(zero, 0.0)}.get(facts.get(key, ""))


_SIZES = ("parameters_b", "parameters_b_leaderboard", "parameters")
#: covariate -> the fact, its value that counts as 1, and those that count as 0
_TWO = {
    "open": ("access", "open", ("proprietary", "closed")),
    "medical": ("domain", "medical", ("general",)),
    "reasoning": ("reasoning", "yes", ("no",)),
}


@lru_cache(maxsize=256)
def _billions(text: str) -> float | None:
    try:
        return float(text.strip("~B "))
    except ValueError:
        return None
