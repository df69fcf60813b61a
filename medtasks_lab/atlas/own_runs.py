"""Detectable effects, departments and levels of own runs, since published models' answers are not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.registry.row_labels import DIFFICULTY
from medtasks_ext.results.suite_figures import minimum_detectable_effect
from medtasks_lab.atlas.cells import Cell, printed_figures
from medtasks_lab.studies.departments import DEPARTMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_lab.atlas.cells import Data
    from medtasks_lab.atlas.spec import Item


def experiments_of(entry: Entry, data: Data) -> dict[str, Experiment]:
    """Dataset -> zero-shot experiment with a score, of the paper's datasets."""
    return {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.score is not None and item.strategy == "zero_shot" and data.suite.lists(item.dataset.key)
    }


def detectable_effects(item: Item, data: Data) -> Iterator[Cell]:
    """Published effects, and beside them those of own runs over all pairs of these; jury scores as x / 5."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    found = [experiments_of(entry, data) for entry in data.entries]
    shared = set.intersection(*map(set, found)) if len(found) > 1 else set()
    for name in (dataset for dataset in data.tasks.datasets if dataset in shared):
        documents = [_scores(experiments[name]) for experiments in found]
        keys = sorted(set.intersection(*map(set, documents)))
        title = data.tasks.datasets[name].metadata.name
        if not keys or any(len(scores) != len(keys) for scores in documents):
            yield Cell(title, "of own runs", own=True, note="no mean over the same documents")
            continue
        scale = 4 / 5 if "judged" in found[0][name].metrics else 1.0
        effect = minimum_detectable_effect([[scale * scores[key] for key in keys] for scores in documents])
        note = f"{len(found)} runs, n = {len(keys)}"
        yield Cell(title, "of own runs", None, effect.mean, own=True, note=note)
        yield Cell(title, "s.d. of own runs", None, effect.sd, own=True, note=note)


def _scores(item: Experiment) -> dict[str, float]:
    if item.read_documents is None:
        return {}
    found = item.read_documents()
    return {
        name: float(score)
        for name, score in zip(found.documents, found.scores, strict=True)
        if np.isfinite(score)
    }


def experts(item: Item, data: Data) -> Iterator[Cell]:
    """Published rates of wins and ties; those of experts of one's own, against the run that they compared."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    for rate in data.compared:
        if rate.dataset == item.dataset:
            note = f"{rate.documents} documents, {rate.experts} experts"
            row = f"{rate.model} against {rate.rival}"
            yield Cell(row, rate.criterion, None, item.scale * rate.win_tie, own=True, note=note)


def departments(item: Item, data: Data) -> Iterator[Cell]:
    """Zero-shot scores of own runs by department, where files or rows name one."""
    for row in _by_label(data, DEPARTMENT):
        yield Cell(row["value"], row["entry"], None, row["score"], own=True, note=_of(row))


def levels(item: Item, data: Data) -> Iterator[Cell]:
    """The same by level of difficulty."""
    for row in _by_label(data, DIFFICULTY):
        yield Cell(row["entry"], row["value"], None, item.scale * row["score"], own=True, note=_of(row))


def _by_label(data: Data, axis: str) -> Iterator[Json]:
    found = (axis, data.suite.id, "zero_shot")
    return (row for row in data.labels if (row["axis"], row["suite"], row["strategy"]) == found)


def _of(row: Json) -> str:
    return f"{row['tasks']} tasks, {row['documents']} documents"
