"""Two entries, or the ways in which one was asked: lines by group and task, with adjusted p-values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.changes import (
    Shared,
    group_change,
    group_changes,
    settings_that_differ,
    suite_groups,
    task_changes,
)
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.labels import Labels, labelled, restricted
from medtasks_ext.results.ways import Pair, pairs_to_compare

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.entries import Results

ALPHA = 0.05


@dataclass(frozen=True)
class Compared:
    pairs: list[Pair]  # entries that were compared
    groups: pa.Table  # frame `group_changes`: a row for each group
    tasks: pa.Table  # frame `task_changes`: a row for each task
    labels: pa.Table  # frame `group_changes`: a row for each label of documents
    flipped: pa.Table  # frame `flipped`: the documents whose score changed
    faults: list[Fault]  # what was left out

    @property
    def sample(self) -> bool:
        return self.pairs[0].before.sample

    def record(self) -> Json:
        return {
            "pairs": [
                {
                    "pair": pair.words,
                    "question": pair.question,
                    "before": pair.before.label,
                    "after": pair.after.label,
                    "settings": settings_that_differ(pair.before, pair.after),
                }
                for pair in self.pairs
            ],
            "sample": self.sample,
            "groups": self.groups.to_pylist(),
            "tasks": self.tasks.to_pylist(),
            "labels": self.labels.to_pylist(),
            "flipped": self.flipped.to_pylist(),
        }


def compare_results(results: Results, tasks: Registry, labels: Sequence[Labels] = ()) -> Compared:
    """Compare the two entries that were read, or the strategies of one; each label gets a line."""
    pairs = pairs_to_compare(results.entries)
    changes: list[tuple[Pair, list[Shared]]] = []
    faults: list[Fault] = list(results.faults)
    for pair in pairs:
        found, more = task_changes(pair.before, pair.after)
        changes.append((pair, found))
        faults += more
    if not any(found for _, found in changes):
        why = f": {faults[0].where} {faults[0].what}" if faults else ""
        raise MedtasksError(
            f"{pairs[0].before.label} and {pairs[0].after.label} have no scored task in common that can be "
            f"compared{why}",
            remedy=(faults[0].remedy if faults else "") or "run both on the same tasks and rows",
        )
    of_labels = [
        {"pair": pair.words, **row} for pair in pairs for row in _label_changes(pair, labels, faults)
    ]
    flipped = [
        {"pair": pair.words, **row} for pair, found in changes for change in found for row in change.flips
    ]
    of_tasks = [{"pair": pair.words, **change.row} for pair, found in changes for change in found]
    return Compared(
        pairs,
        table_of("group_changes", _group_rows(changes, tasks)),
        table_of("task_changes", _adjusted(of_tasks)),
        table_of("group_changes", _adjusted(of_labels)),
        table_of("flipped", flipped),
        faults,
    )


def _label_changes(pair: Pair, labels: Sequence[Labels], faults: list[Fault]) -> Iterator[Json]:
    """The change on the documents of each label, over the tasks that both have with such documents."""
    by_axis: dict[str, list[Labels]] = {}
    for one in labels:
        if one.model in (None, pair.before.model) and one.model in (None, pair.after.model):
            by_axis.setdefault(one.axis, []).append(one)
        else:
            what = f"says what {one.model} knows, and two models are compared"
            faults.append(Fault(one.where, what, "leave it out", skipped=False))
    for axis, some in by_axis.items():
        for value in dict.fromkeys(value for one in some for value in one.values):
            sides = [_labelled(entry, some, value, faults) for entry in (pair.before, pair.after)]
            found, _ = task_changes(*sides)  # a task with one such document says nothing
            if found:
                yield group_change(f"{axis}: {value}", [found], len(found))


def _labelled(entry: Entry, labels: Sequence[Labels], value: str, faults: list[Fault]) -> Entry:
    kept: dict[str, Experiment] = {}
    for name, item in entry.experiments.items():
        for one in labels:
            if item.task not in one.tasks or item.score is None:
                continue
            try:
                part = restricted(labelled(item, one), value)
            except MedtasksError as error:
                fault = Fault(str(error.where), error.what, error.remedy)
                faults += [] if fault in faults else [fault]
                continue
            if part:
                kept[name] = part
    return replace(entry, experiments=kept)


def _group_rows(changes: Sequence[tuple[Pair, list[Shared]]], tasks: Registry) -> list[Json]:
    """Suites and strategies are one family of tests; other groups, each set of tasks once, a second."""
    suites, others = [], []
    names = suite_groups(tasks)
    for pair, found in changes:
        rows = [{"pair": pair.words, **row} for row in group_changes(found, tasks)]
        first = [row for row in rows if row["name"] in names]
        suites += first
        known = {frozenset(tasks.leaves(row["name"])) for row in first}
        for row in rows:
            if row["name"] not in names and (members := frozenset(tasks.leaves(row["name"]))) not in known:
                known.add(members)
                others.append(row)
    return [*_adjusted(suites), *_adjusted(others)]


def _adjusted(rows: Sequence[Json]) -> list[Json]:
    """Rows of one family of tests, with their adjusted p-values."""
    from medtasks_ext.stats.comparison import benjamini_hochberg, holm

    raw = np.array([row["p"] for row in rows])
    adjusted = zip(rows, holm(raw), benjamini_hochberg(raw), strict=True) if len(rows) else ()
    return [{**row, "p_holm": one, "p_bh": other} for row, one, other in adjusted]
