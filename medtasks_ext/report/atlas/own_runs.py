"""Detectable effects, costs and departments: of own runs, since published models' answers are not at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.report.atlas.cells import Cell, printed_figures
from medtasks_ext.results.departments import score_by_department
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.suite_figures import cost_bound, minimum_detectable_effect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from medtasks_ext.report.atlas.cells import Data
    from medtasks_ext.report.atlas.spec import Item
    from medtasks_ext.results.experiments import Entry, Experiment


def _experiments(entry: Entry, data: Data) -> dict[str, Experiment]:
    """Dataset -> zero-shot experiment with a score, of the paper's datasets."""
    return {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.score is not None and item.strategy == "zero_shot" and data.suite.lists(item.dataset.key)
    }


def detectable_effects(item: Item, data: Data) -> Iterator[Cell]:
    """Published effects; those of own runs over all pairs of them, jury scores on the paper's x / 5."""
    for (row, column), value in printed_figures(item.printed).items():
        yield Cell(row, column, value)
    found = [_experiments(entry, data) for entry in data.entries]
    shared = set.intersection(*map(set, found)) if len(found) > 1 else set()
    for name in (dataset for dataset in data.tasks.datasets if dataset in shared):
        documents = [_scores(experiments[name]) for experiments in found]
        keys = sorted(set.intersection(*map(set, documents)))
        title = data.tasks.datasets[name].metadata.name
        if not keys or any(len(scores) != len(keys) for scores in documents):
            yield Cell(title, "effect", own=True, note="no mean over the same documents")
            continue
        scale = 4 / 5 if "judged" in found[0][name].metrics else 1.0
        effect = minimum_detectable_effect([[scale * scores[key] for key in keys] for scores in documents])
        note = f"{len(found)} runs, n = {len(keys)}"
        yield Cell(title, "effect", None, effect.mean, own=True, note=note)
        yield Cell(title, "s.d.", None, effect.sd, own=True, note=note)


def _scores(item: Experiment) -> dict[str, float]:
    if item.read_documents is None:
        return {}
    found = item.read_documents()
    return {
        name: float(score)
        for name, score in zip(found.documents, found.scores, strict=True)
        if np.isfinite(score)
    }


def costs(item: Item, data: Data) -> Iterator[Cell]:
    """Published bounds, and those of own runs: every answer fills its budget. Judges are not included."""
    printed = printed_figures(item.printed)
    sums: dict[str, list[float]] = {}
    for (row, column), value in printed.items():
        if column != "total":
            assert isinstance(value, float)
            sums.setdefault(row, []).append(value)
    for (row, column), value in printed.items():
        yield Cell(row, column, value, sum(sums[row]) if column == "total" else None)
    for entry in data.entries:
        price, done = data.prices.get(entry.label), list(_experiments(entry, data).values())
        counted = [one for one in done if one.tokens]
        note = _missing(counted, done)
        if price is None or not counted:
            yield Cell(entry.label, "benchmarks", own=True, note="no price" if price is None else note)
            continue
        used = sum(price.of(one.tokens["input"], one.tokens["output"]) for one in counted if one.tokens)
        bound = sum(
            cost_bound(
                price, one.tokens["input"], one.n, int(one.config["generation_kwargs"]["max_gen_toks"])
            )
            for one in counted
            if one.tokens
        )
        yield Cell(entry.label, "benchmarks", None, bound, own=True, note=note)
        yield Cell(entry.label, "used", None, used, own=True, note=note)


def _budget(item: Experiment) -> int:
    return int(item.config["generation_kwargs"]["max_gen_toks"])


def _missing(counted: Sequence[Experiment], done: Sequence[Experiment]) -> str:
    return "" if len(counted) == len(done) else f"tokens counted in {len(counted)} of {len(done)} tasks"


def departments(item: Item, data: Data) -> Iterator[Cell]:
    """Scores of own runs by department, where rows carry one; a secondary one after its primary one."""
    for entry in data.entries:
        samples = {
            name: (one.read_samples(), {"score": score_statistic(one.dataset)})
            for name, one in _experiments(entry, data).items()
            if one.read_samples is not None
        }
        for line in score_by_department(samples):
            row = f"{line.primary}, {line.name}" if line.primary else line.name
            note = f"{line.n_tasks} tasks, {line.n_documents} documents"
            yield Cell(row, entry.label, None, line.score, own=True, note=note)
