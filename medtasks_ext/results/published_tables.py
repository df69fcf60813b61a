"""A list of scores, the plain form of what a paper prints; other forms stand in `suites`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from medtasks_ext.results.conditions import read_jury
from medtasks_ext.results.published import published, published_entry, published_experiments

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry


def score_list(tasks: Registry, suite: Suite) -> list[Entry]:
    """A list of zero-shot scores in percent: model, dataset, score.

    Columns `jury` and `source` say who judged a score, and who states it, where that differs from row to row.
    """
    rows: dict[str, list[dict[str, str]]] = {}
    for row in published(f"{suite.id}_scores.csv"):
        rows.setdefault(row["model"], []).append(row)
    return [_entry(tasks, suite, model, said) for model, said in rows.items()]


def _entry(tasks: Registry, suite: Suite, model: str, rows: list[dict[str, str]]) -> Entry:
    scores = {(row["dataset"], "zero_shot"): float(row["score"]) / 100 for row in rows}
    experiments = published_experiments(tasks, suite, model, scores)
    juries = {row["dataset"]: row["jury"] for row in rows if row.get("jury")}
    for item in experiments.values():
        if (jury := juries.get(item.dataset.metadata.name)) and (said := item.conditions):
            item.conditions = replace(said, jury=read_jury(jury))
    entry = published_entry(suite, model, experiments, {})
    sources = dict.fromkeys(row["source"] for row in rows if row.get("source"))
    return replace(entry, notes=(*entry.notes, *(f"stated by {source}" for source in sources)))
