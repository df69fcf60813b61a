"""Two entries, or the ways in which one was asked: lines by group and task, with adjusted p-values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.changes import (
    GroupChange,
    TaskChange,
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
_Change = TypeVar("_Change", GroupChange, TaskChange)


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
    changes: list[tuple[Pair, TaskChange]] = []
    faults: list[Fault] = list(results.faults)
    for pair in pairs:
        found, more = task_changes(pair.before, pair.after)
        changes += [(pair, change) for change in found]
        faults += more
    if not changes:
        why = f": {faults[0].where} {faults[0].what}" if faults else ""
        raise MedtasksError(
            f"{pairs[0].before.label} and {pairs[0].after.label} have no scored task in common that can be "
            f"compared{why}",
            remedy=(faults[0].remedy if faults else "") or "run both on the same tasks and rows",
        )
    of_groups = [
        (pair, change)
        for pair in pairs
        for change in group_changes([item for of, item in changes if of is pair], tasks)
    ]
    of_labels = [item for pair in pairs for item in _label_changes(pair, labels, faults)]
    return Compared(
        pairs,
        table_of("group_changes", _group_rows(of_groups, tasks)),
        table_of("task_changes", _rows(changes, _of_task)),
        table_of("group_changes", _rows(of_labels, _of_group)),
        table_of("flipped", _flipped(changes)),
        faults,
    )


def _label_changes(
    pair: Pair, labels: Sequence[Labels], faults: list[Fault]
) -> Iterator[tuple[Pair, GroupChange]]:
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
                yield pair, group_change(f"{axis}: {value}", [found], len(found))


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


def _group_rows(changes: Sequence[tuple[Pair, GroupChange]], tasks: Registry) -> list[Json]:
    """Suites and strategies are one family of tests; other groups, each set of tasks once, a second."""
    suites = suite_groups(tasks)
    known = {(id(pair), frozenset(tasks.leaves(item.name))) for pair, item in changes if item.name in suites}
    others: dict[tuple[int, frozenset[str]], tuple[Pair, GroupChange]] = {}
    for pair, item in changes:
        members = id(pair), frozenset(tasks.leaves(item.name))
        if item.name not in suites and members not in known:
            others.setdefault(members, (pair, item))
    first = [(pair, item) for pair, item in changes if item.name in suites]
    return [*_rows(first, _of_group), *_rows(others.values(), _of_group)]


def _rows(changes: Iterable[tuple[Pair, _Change]], own: Callable[[_Change], Json]) -> list[Json]:
    """Rows of one family of tests, with what a row says besides before, after and the test."""
    from medtasks_ext.stats.comparison import benjamini_hochberg, holm

    changes = list(changes)
    if not changes:
        return []
    raw = np.array([change.comparison.p_value for _, change in changes])
    adjusted = zip(changes, holm(raw), benjamini_hochberg(raw), strict=True)
    return [
        {
            "pair": pair.words,
            **{"before": change.before, "after": change.after},
            "difference": change.comparison.difference,
            "interval_low": change.comparison.interval.low,
            "interval_high": change.comparison.interval.high,
            **{"p": change.comparison.p_value, "p_holm": one, "p_bh": other},
            **{"method": change.comparison.method, "detectable": change.comparison.detectable},
            **own(change),
        }
        for (pair, change), one, other in adjusted
    ]


def _of_group(change: GroupChange) -> Json:
    return {"name": change.name, "tasks": change.n_shared, "of": change.n_tasks}


def _of_task(change: TaskChange) -> Json:
    return {
        **{"name": change.task, "documents": change.shared.n, "documents_of_one_alone": change.alone},
        "gained": sum(flip.after > flip.before for flip in change.flips),
        "lost": sum(flip.after < flip.before for flip in change.flips),
        "differs": ", ".join(change.differs),
    }


def _flipped(changes: Iterable[tuple[Pair, TaskChange]]) -> Iterator[Json]:
    for pair, change in changes:
        yield from ({"pair": pair.words, **vars(flip)} for flip in change.flips)
