"""The models of a suite's table: published ones and own runs, with scores by dataset and known facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.suites import function
from medtasks_ext.results.result_frame import result_parts

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.report.groups import Group
    from medtasks_ext.results.experiments import Entry


@dataclass(frozen=True)
class PaperModel:
    """One row of a paper's table."""

    name: str
    own: bool
    scores: Mapping[str, Mapping[str, float]]  # strategy -> dataset -> score, 0-1
    lengths: Mapping[str, float]  # strategy -> output tokens per answer, where they were counted
    groups: Mapping[str, float]  # what the paper prints without scores of tasks
    facts: Mapping[str, str]
    #: strategy -> datasets asked under other conditions than the paper's, or in part: in no rank beside these
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
    return ", ".join([f"{n}/{of} tasks"] * (n < of) + ["other conditions"] * otherwise)


def published_models(tasks: Registry, suite: Suite) -> list[PaperModel]:
    """The models that a suite's paper prints."""
    assert suite.published
    entries: list[Entry] = function(suite, suite.published.entries)(tasks, suite)
    return [
        PaperModel(entry.model, False, *_figures(rows), entry.groups, entry.details)
        for entry, rows in _rows(entries, tasks, suite)
    ]


def own_models(
    entries: Sequence[Entry], tasks: Registry, suite: Suite, published: Sequence[PaperModel]
) -> list[PaperModel]:
    """Runs with scores of a suite. Facts are those of the published model of that name or hub id.

    Raises:
        MedtasksError: a run is on synthetic rows.
    """
    models = []
    for entry, rows in _rows(entries, tasks, suite):
        if entry.sample:
            raise MedtasksError(
                "synthetic sample rows cannot stand beside published scores",
                where=entry.label,
                remedy="run the tasks on their own data",
            )
        if rows:
            known = (item for item in published if entry.model in (item.name, item.facts.get("hub_id")))
            facts = next((item.facts for item in known), {})
            conditions = _otherwise(entry, rows)
            models.append(PaperModel(entry.label, True, *_figures(rows), entry.groups, facts, *conditions))
    return models


def _rows(entries: Sequence[Entry], tasks: Registry, suite: Suite) -> Iterator[tuple[Entry, list[Json]]]:
    """Each entry with its rows of the frame `results`: the scores of the suite, as its paper asks them."""
    parts = result_parts(entries, tasks, ["score"])
    rows = parts.rows(["task", "dataset", "strategy", "value", "n", "output_tokens"])
    of_entry: list[list[Json]] = [[] for _ in entries]
    for place, row in zip(parts.entries.tolist(), rows, strict=True):
        dataset = tasks.datasets[row["dataset"]]
        # what a paper calls zero-shot may ask to reason first
        asked = dataset.metadata.published_strategy
        replaced = asked != "zero_shot" and row["strategy"] == "zero_shot"
        if row["value"] is not None and suite.lists(dataset.key) and not replaced:
            strategy = "zero_shot" if row["strategy"] == asked else row["strategy"]
            of_entry[place].append({**row, "strategy": strategy})
    return zip(entries, of_entry, strict=True)


def _figures(rows: Sequence[Json]) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Scores and lengths of answers."""
    scores: dict[str, dict[str, float]] = {}
    lengths: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["strategy"], {})[row["dataset"]] = row["value"]
        if row["output_tokens"] is not None:
            lengths.setdefault(row["strategy"], []).append(row["output_tokens"] / max(row["n"], 1))
    return scores, {strategy: float(np.mean(values)) for strategy, values in lengths.items()}


def _otherwise(entry: Entry, rows: Sequence[Json]) -> tuple[dict[str, frozenset[str]], Counter[str]]:
    """What was asked under other conditions than the paper's, or in part, and which these are."""
    unlike: dict[str, set[str]] = {}
    reasons: Counter[str] = Counter()
    for row in rows:
        item = entry.experiments[row["task"]]
        if not item.may_stand_beside:
            unlike.setdefault(row["strategy"], set()).add(row["dataset"])
            named = dict.fromkeys(one.condition for one in item.unlike_the_paper)
            reasons.update([*named] if item.coverage.whole else [*named, "a part of the rows or judgements"])
    return {strategy: frozenset(names) for strategy, names in unlike.items()}, reasons


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
