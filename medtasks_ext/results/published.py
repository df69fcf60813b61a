"""Published scores that come with the package (`results/reference`)."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import STRATEGIES
from medtasks_ext.registry.suites import function
from medtasks_ext.results.conditions import of_the_paper, read_jury
from medtasks_ext.results.experiments import Entry, Experiment

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite


def reference_folder() -> Path:
    """The checkout's own folder, else the copy inside this package."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "results" / "reference"
    return checkout if checkout.is_dir() else package / "reference"


@lru_cache(maxsize=32)
def published(name: str) -> tuple[dict[str, str], ...]:
    with (reference_folder() / name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def published_entries(tasks: Registry) -> list[Entry]:
    """The published models as lines of a leaderboard, suite by suite (`published.entries` there)."""
    entries: list[Entry] = []
    for suite in tasks.suites.values():
        if suite.published is not None:
            entries += function(suite, suite.published.entries)(tasks, suite)
    papers = Counter(entry.model for entry in entries)
    for entry in entries:
        if papers[entry.model] > 1:
            title = tasks.suites[entry.paper].title
            entry.label = f"{entry.model} ({title}, published)"
    return entries


def published_experiments(
    tasks: Registry, suite: Suite, model: str, scores: Mapping[tuple[str, str], float]
) -> dict[str, Experiment]:
    """Printed scores (name in the paper's tables, strategy) -> 0-1; names that the registry lacks are left
    out.

    What a paper calls zero-shot may have asked to reason first; such a score goes where the dataset says
    (`published_strategy`).
    """
    of_suite = (
        item for item in tasks.datasets_of(suite) if suite.lists(item.key) or item.metadata.control_of
    )
    by_name = {item.metadata.name: item for item in of_suite}
    aliases = suite.published.aliases if suite.published else {}
    found = {}
    for (name, strategy), score in scores.items():
        assert strategy in STRATEGIES
        if (dataset := by_name.get(aliases.get(name, name))) is None:
            continue
        if strategy == "zero_shot":
            strategy = dataset.metadata.published_strategy
        task = dataset.task(strategy)
        found[task] = Experiment(
            task=task,
            dataset=dataset,
            metrics={"score": score},
            intervals={},
            n=dataset.metadata.n_test or 0,
            conditions=of_the_paper(dataset, strategy, model),
            printed=model,
        )
    return found


def published_entry(
    suite: Suite, model: str, experiments: dict[str, Experiment], facts: Mapping[str, str], **printed: Any
) -> Entry:
    """`printed`: what is printed of groups, under their zero-shot names, 0-1."""
    notes = (suite.published.note,) if suite.published else ()
    details = {key: value for key, value in facts.items() if value}
    of_paper: dict[str, Any] = {
        "paper": suite.id,
        "experiments": experiments,
        "notes": notes,
        "details": details,
    }
    return Entry(model=model, label=f"{model} (published)", kind="published", **of_paper, **printed)


def score_list(tasks: Registry, suite: Suite) -> list[Entry]:
    """A list of zero-shot scores in percent: model, dataset, score.

    Columns `jury` and `source` say who judged a score, and who states it, where that differs from row to row.
    """
    by_model: dict[str, list[dict[str, str]]] = {}
    for row in published(f"{suite.id}_scores.csv"):
        by_model.setdefault(row["model"], []).append(row)
    entries = []
    for model, rows in by_model.items():
        scores = {(row["dataset"], "zero_shot"): float(row["score"]) / 100 for row in rows}
        experiments = published_experiments(tasks, suite, model, scores)
        juries = {row["dataset"]: row["jury"] for row in rows if row.get("jury")}
        for item in experiments.values():
            if jury := juries.get(item.dataset.metadata.name):
                item.conditions = replace(item.conditions, jury=read_jury(jury))
        entries.append(published_entry(suite, model, experiments, {}))
        sources = dict.fromkeys(row["source"] for row in rows if row.get("source"))
        entries[-1].notes += tuple(f"stated by {source}" for source in sources)
    return entries
