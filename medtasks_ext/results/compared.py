"""Two entries, or the ways in which one was asked: lines by group and task, with adjusted p-values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.changes import (
    GroupChange,
    TaskChange,
    group_changes,
    mean_change,
    settings_that_differ,
    suite_groups,
    task_changes,
)
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.labels import Labels, labelled, restricted
from medtasks_ext.results.ways import Pair, pairs_to_compare

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.entries import Results

ALPHA = 0.05


@dataclass(frozen=True)
class Line:
    """One line of a table: a group or a task, with p-values adjusted for all lines of the table."""

    pair: Pair
    change: GroupChange | TaskChange
    name: str
    p_holm: float
    p_bh: float

    @property
    def significant(self) -> bool:
        """Whether it stands after Holm's adjustment."""
        return self.p_holm < ALPHA

    def record(self) -> Json:
        """As files hold it."""
        change = self.change
        found = change.comparison
        record = {
            "pair": self.pair.words,
            "name": self.name,
            "before": change.before,
            "after": change.after,
            "difference": found.difference,
            "interval_low": found.interval.low,
            "interval_high": found.interval.high,
            "p": found.p_value,
            "p_holm": self.p_holm,
            "p_bh": self.p_bh,
            "method": found.method,
            "detectable": found.detectable,
        }
        if isinstance(change, GroupChange):
            return {**record, "tasks": change.n_shared, "of": change.n_tasks}
        return {
            **record,
            "documents": change.shared.n,
            "documents_of_one_alone": change.alone,
            "gained": sum(flip.after > flip.before for flip in change.flips),
            "lost": sum(flip.after < flip.before for flip in change.flips),
            "differs": ", ".join(change.differs),
        }


@dataclass(frozen=True)
class Compared:
    """What changed."""

    pairs: list[Pair]  # entries that were compared
    changes: list[tuple[Pair, TaskChange]]  # a task in two entries each
    groups: list[Line]  # a line for each group
    tasks: list[Line]  # a line for each task
    faults: list[Fault]  # what was left out
    labels: list[Line] = field(default_factory=list)  # a line for each label of documents

    @property
    def sample(self) -> bool:
        """Whether the rows are synthetic."""
        return self.pairs[0].before.sample

    def flipped(self) -> list[Json]:
        """The documents whose score changed, as files hold them."""
        return [
            {
                "pair": pair.words,
                "task": flip.task,
                "document": flip.document,
                "before": flip.before,
                "after": flip.after,
            }
            for pair, change in self.changes
            for flip in change.flips
        ]

    def record(self) -> Json:
        """As files hold it."""
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
            "groups": [line.record() for line in self.groups],
            "tasks": [line.record() for line in self.tasks],
            "labels": [line.record() for line in self.labels],
            "flipped": self.flipped(),
        }


def compare_results(results: Results, tasks: Registry, labels: Sequence[Labels] = ()) -> Compared:
    """Compare the two entries that were read, or the strategies of one.

    Args:
        labels: of documents, each of which gets a line.

    Raises:
        MedtasksError: there are no two entries, or they have no scored task in common.
    """
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
        changes,
        _group_lines(of_groups, tasks),
        _lines(changes, "task"),
        faults,
        _lines(of_labels, "name"),
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
                yield pair, _mean_of(f"{axis}: {value}", found)


def _labelled(entry: Entry, labels: Sequence[Labels], value: str, faults: list[Fault]) -> Entry:
    """An entry on the documents with one label."""
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


def _mean_of(name: str, changes: Sequence[TaskChange]) -> GroupChange:
    n = len(changes)
    return GroupChange(
        name,
        sum(item.before for item in changes) / n,
        sum(item.after for item in changes) / n,
        mean_change([[item.shared for item in changes]]),
        n,
        n,
    )


def _group_lines(changes: Sequence[tuple[Pair, GroupChange]], tasks: Registry) -> list[Line]:
    """Suites and strategies are one family of tests; other groups, each set of tasks once, a second."""
    suites = suite_groups(tasks)
    known = {(id(pair), frozenset(tasks.leaves(item.name))) for pair, item in changes if item.name in suites}
    others: dict[tuple[int, frozenset[str]], tuple[Pair, GroupChange]] = {}
    for pair, item in changes:
        members = id(pair), frozenset(tasks.leaves(item.name))
        if item.name not in suites and members not in known:
            others.setdefault(members, (pair, item))
    first = [(pair, item) for pair, item in changes if item.name in suites]
    return [*_lines(first, "name"), *_lines(others.values(), "name")]


def _lines(changes: Iterable[tuple[Pair, Any]], name: str) -> list[Line]:
    from medtasks_ext.stats.comparison import benjamini_hochberg, holm

    changes = list(changes)
    if not changes:
        return []
    raw = np.array([change.comparison.p_value for _, change in changes])
    adjusted = zip(changes, holm(raw), benjamini_hochberg(raw), strict=True)
    return [
        Line(pair, change, getattr(change, name), float(one), float(other))
        for (pair, change), one, other in adjusted
    ]
