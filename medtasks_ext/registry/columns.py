"""What the registry knows of its datasets, as columns: joined once to whatever has a row for a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from medtasks_ext.jsonfile import Json
from medtasks_ext.registry.groups import SHARED, SHARED_AXES, Registry, in_totals
from medtasks_ext.registry.tasks import Dataset


@lru_cache(maxsize=8)
def axis_values(tasks: Registry, axes: tuple[str, ...]) -> dict[str, dict[str, Sequence[str]]]:
    """Axis -> id of a dataset -> its values there, over all of its suites."""
    return {
        axis: {dataset.id: tasks.values(dataset, axis) for dataset in tasks.datasets.values()}
        for axis in axes
    }


def grouped_tasks(tasks: Registry, strategies: Iterable[str]) -> list[tuple[Dataset, str, str, str]]:
    """(dataset, suite, strategy, name of the task) of all datasets in groups, in the registry's order."""
    return [
        (dataset, dataset.metadata.suite, strategy, dataset.task(strategy))
        for dataset in tasks.datasets.values()
        if dataset.metadata.grouped
        for strategy in strategies
        if dataset.has(strategy)
    ]


@lru_cache(maxsize=8)
def listed(tasks: Registry) -> dict[str, frozenset[str]]:
    """Suite -> ids of the datasets that its paper has."""
    return {
        suite.id: frozenset(item.id for item in tasks.datasets.values() if suite.lists(item.key))
        for suite in tasks.suites.values()
    }


#: axis, value, and the suite inside which a group is; None across suites
Place = tuple[str, str, str | None]


@dataclass(frozen=True)
class NamedGroup:
    """A group's zero-shot name, and the ids that its score is taken over: a mean over parts."""

    name: str  # empty where the axis has no names
    parts: tuple[tuple[str, ...], ...] | None  # None where the registry has no group of the name


def named_groups(tasks: Registry, places: Iterable[Place]) -> dict[Place, NamedGroup]:
    groups = {}
    for axis, value, suite in places:
        name = f"{SHARED}_{SHARED_AXES[axis]}{value}" if axis in SHARED_AXES else None
        if suite or axis == "suite":
            name = tasks.suites[suite].group_name(axis, value) if suite and axis != "suite" else value
        parts = tuple(map(tuple, tasks.parts(name))) if name in tasks.groups else None
        groups[axis, value, suite] = NamedGroup(name or "", parts)
    return groups


@lru_cache(maxsize=8)
def dataset_facts(tasks: Registry) -> tuple[Json, ...]:
    axes = dict.fromkeys(axis for suite in tasks.suites.values() for axis in suite.axes)
    return tuple(_facts(tasks, dataset, [*axes]) for dataset in tasks.datasets.values())


def _facts(tasks: Registry, dataset: Dataset, axes: Sequence[str]) -> Json:
    record, suites = dataset.metadata, tasks.suites_of(dataset)
    assigned = [name for name in ("specialties", "stage", "access") if record.assigned_by(name) == "medtasks"]
    return {
        **{axis: _one_or_more(tasks.values(dataset, axis)) for axis in axes},
        "id": dataset.id,
        "name": f"{record.name} (draft)" if record.draft else record.name,
        "draft": record.draft,
        "suite": _one_or_more([suite.id for suite in suites]),
        "summary": record.summary,
        "language": record.language,
        "task_type": record.task_type,
        "stage": record.stage,
        "specialties": list(record.specialties),
        "document_types": list(record.document_types),
        "access": record.access,
        "scoreable": record.scoreable,
        "licence": record.licence.title,
        "use": record.use,
        "third_party_api": record.third_party_api,
        "url": record.url,
        "citation": record.citation,
        "n_test": record.n_test,
        "metric": record.primary_metric,
        "version": dataset.version,
        "oracle_max": record.oracle_max,
        "assigned": assigned,
        "control_of": record.control_of,
        "left_out": {
            suite.id: axes
            for suite in suites
            if (axes := [axis for axis in suite.left_out if suite.leaves_out(axis, dataset.key)])
        },
        "added": [dataset.suite.id] if dataset.joined_later else [],
        "in_totals": in_totals(tasks, dataset),
        "averaged": all(suite.averaged for suite in suites),
    }


def _one_or_more(values: list[str]) -> str | list[str] | None:
    """Almost all datasets have one suite, and one value on its axes."""
    return values if len(values) > 1 else next(iter(values), None)
