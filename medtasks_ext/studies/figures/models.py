"""The models of a paper's table, with scores by dataset and known facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.registry.suites import function

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.report.groups import Group
    from medtasks_ext.results.experiments import Entry


@dataclass(frozen=True)
class PaperModel:
    """One row of a paper's table."""

    name: str
    scores: Mapping[str, Mapping[str, float]]  # strategy -> dataset -> score, 0-1
    groups: Mapping[str, float]  # what the paper prints without scores of tasks
    facts: Mapping[str, str]

    def score(self, group: Group, strategy: str) -> float | None:
        """The mean over a group's tasks; None where it lacks one."""
        scores = self.scores.get(strategy, {})
        if strategy == "zero_shot" and group.name in self.groups:
            return self.groups[group.name]
        weights = group.weights(frozenset(scores) & group.counted)
        if not weights or len(weights) < group.n_tasks:
            return None
        return sum(weight * scores[name] for name, weight in weights.items())

    def covariate(self, name: str) -> float | None:
        """A fact as a number: size as a logarithm, date as a day, what is one of two as 1 or 0."""
        if name == "size":
            size = next((size for key in _SIZES if (size := _billions(self.facts.get(key, "")))), None)
            return float(np.log10(size)) if size else None
        if name == "date":
            text = self.facts.get("release_date") or self.facts.get("release_date_models_log")
            return float(date.fromisoformat(text).toordinal()) if text else None
        key, one, zero = _TWO[name]
        return {one: 1.0, **dict.fromkeys(zero, 0.0)}.get(self.facts.get(key, ""))


_SIZES = ("parameters_b", "parameters_b_leaderboard", "parameters")
#: covariate -> the fact, its value that counts as 1, and those that count as 0
_TWO = {
    "open": ("access", "open", ("proprietary", "closed")),
    "medical": ("domain", "medical", ("general",)),
    "reasoning": ("reasoning", "yes", ("no",)),
}


def _billions(text: str) -> float | None:
    try:
        return float(text.strip("~B "))
    except ValueError:
        return None


def published_models(tasks: Registry, suite: Suite) -> list[PaperModel]:
    """The models that a suite's paper prints."""
    assert suite.published
    entries: list[Entry] = function(suite, suite.published.entries)(tasks, suite)
    return [PaperModel(entry.model, _scores(entry, suite), entry.groups, entry.details) for entry in entries]


def _scores(entry: Entry, suite: Suite) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for item in entry.experiments.values():
        # what a paper calls zero-shot may ask to reason first
        asked = item.dataset.metadata.published_strategy
        replaced = asked != "zero_shot" and item.strategy == "zero_shot"
        if item.score is not None and suite.lists(item.dataset.key) and not replaced:
            strategy = "zero_shot" if item.strategy == asked else item.strategy
            found.setdefault(strategy, {})[item.dataset.id] = item.score
    return found
