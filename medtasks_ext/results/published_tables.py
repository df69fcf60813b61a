"""A list of scores, the plain form of what a paper prints; other forms stand in `suites`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.results.published import published, published_entry, published_experiments

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry

#: (name of the dataset in the paper's tables, strategy) -> score, 0-1
_Scores = dict[tuple[str, str], float]


def score_list(tasks: Registry, suite: Suite) -> list[Entry]:
    """A list of zero-shot scores in percent: model, dataset, score."""
    scores: dict[str, _Scores] = {}
    for row in published(f"{suite.id}_scores.csv"):
        scores.setdefault(row["model"], {})[row["dataset"], "zero_shot"] = float(row["score"]) / 100
    return [
        published_entry(suite, model, published_experiments(tasks, suite, model, found), {})
        for model, found in scores.items()
    ]
