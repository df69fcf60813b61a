"""Tags and groups, derived from metadata and from what the suites declare.

A tag is written in every variant and ends in `_tasks`; a group is built from tags, so that a new
dataset joins by its metadata alone. Names carry the strategy's suffix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from medtasks_ext.registry.strategies import SUFFIX

if TYPE_CHECKING:
    from medtasks_ext.registry.suites import Suite
    from medtasks_ext.registry.tasks import Dataset, Registry

#: Whose groups join the suites.
SHARED = "medtasks"
#: Axes that join the suites: axis -> what the names of its groups begin with.
SHARED_AXES = {"language": "", "specialties": "spec_", "stage": "stage_"}


def shared_group_name(axis: str, value: str) -> str | None:
    """The zero-shot name of the group of a value across suites; None where the axis has none."""
    return f"{SHARED}_{SHARED_AXES[axis]}{value}" if axis in SHARED_AXES else None


def suite_of_group(registry: Registry, name: str) -> Suite | None:
    """The suite whose task, group or tag a name is; None across suites.

    Of two suites of which one's name begins as the other's do, the longer name counts.
    """
    named = [item for item in registry.suites.values() if name == item.id or name.startswith(f"{item.id}_")]
    return max(named, key=lambda suite: len(suite.id), default=None)


def _own_names(dataset: Dataset, suite: Suite, axes: dict[str, str]) -> list[str]:
    return [
        suite.named(prefix, value) for axis, prefix in axes.items() for value in dataset.values(suite, axis)
    ]


def _memberships(registry: Registry, dataset: Dataset) -> list[str]:
    """What a dataset belongs to: its suites with the axes that have groups, then the groups across suites."""
    metadata, suites = dataset.metadata, registry.suites_of(dataset)
    across = [] if is_apart(registry, dataset) else [SHARED]
    owners = [*(suite.id for suite in suites), *across]
    shared = [
        f"{owner}_{prefix}{value}"
        for owner in across
        for axis, prefix in SHARED_AXES.items()
        for value in metadata.axis(axis)
    ]
    return [
        *(
            name
            for suite in suites
            for name in (suite.id, *_own_names(dataset, suite, suite.groups), *_sets(dataset, suite))
        ),
        *shared,
        *(f"{owner}_{metadata.access}" for owner in owners),
        *(f"{owner}_scoreable" for owner in owners if metadata.scoreable),
    ]


def is_apart(registry: Registry, dataset: Dataset) -> bool:
    """Whether a dataset is in no group across suites: all suites that have it stand apart."""
    suites = registry.suites_of(dataset)
    return bool(suites) and all(suite.apart for suite in suites)


def _sets(dataset: Dataset, suite: Suite) -> list[str]:
    """The suite's groups of several values of an axis."""
    return [
        f"{suite.id}_{name}"
        for axis, named in suite.sets.items()
        for name, values in named.items()
        if set(values) & set(dataset.values(suite, axis))
    ]


def tags_of(registry: Registry, dataset: Dataset, strategy: str) -> list[str]:
    """The tags of one variant of a dataset, coarse axes first.

    The twin of a dataset asks its rows in another form, and a draft is not ready: neither is a dataset of the
    suite, so neither has a tag, belongs to a group or counts in a mean.
    """
    if not dataset.metadata.grouped:
        return []
    finer = (_own_names(dataset, suite, suite.tags) for suite in registry.suites_of(dataset))
    names = [*_memberships(registry, dataset), *(name for names in finer for name in names)]
    return [f"{name}{SUFFIX[strategy]}_tasks" for name in dict.fromkeys(names)]


def parts_of(registry: Registry, name: str) -> list[list[str]] | None:
    """The tasks of a group whose score is not the plain mean over its tasks, part by part.

    A suite may take its own figure as the mean over the values of an axis, and may leave datasets out of the
    means of an axis (`averaged_over` and `left_out` of `suite.yaml`). A suite's groups are means over its
    paper's datasets; those that joined later count where a group holds nothing else. None for any other name.
    No part: several tasks of a suite that says that they have no mean (`averaged: false`).
    """
    known = name in registry.groups or name in registry.tags
    suite = suite_of_group(registry, name) if known else None
    if suite is None:
        return None
    leaves = registry.leaves(name)
    if not suite.averaged and len(leaves) > 1:
        return []
    if name in registry.tags:
        return None
    bare = name.removesuffix(SUFFIX[registry.tasks[leaves[0]][1]])
    counted = counted_in(registry, leaves, bare, suite)
    if bare == suite.id and suite.averaged_over:
        parts: dict[str, list[str]] = {}
        for leaf in counted:
            value = registry.tasks[leaf][0].values(suite, suite.averaged_over)[0]
            parts.setdefault(value, []).append(leaf)
        return list(parts.values())
    return [counted] if len(counted) < len(leaves) else None


def counted_in(registry: Registry, leaves: Iterable[str], group: str, suite: Suite) -> list[str]:
    """The tasks that the mean of a suite's group is taken over.

    Args:
        leaves: tasks of the group.
        group: its zero-shot name.
    """
    datasets = {leaf: registry.tasks[leaf][0] for leaf in leaves}
    of_paper = [leaf for leaf, dataset in datasets.items() if suite.lists(dataset.key)] or list(datasets)
    left_out = {
        leaf
        for axis in suite.left_out
        for leaf in of_paper
        if suite.leaves_out(axis, datasets[leaf].key)
        and group in {suite.group_name(axis, value) for value in datasets[leaf].values(suite, axis)}
    }
    return [leaf for leaf in of_paper if leaf not in left_out] or of_paper


def groups_of(registry: Registry) -> dict[str, list[str]]:
    """Group name -> members, for all strategies."""
    groups: dict[str, list[str]] = {}
    datasets = [item for item in registry.datasets.values() if item.metadata.grouped]
    for suffix in SUFFIX.values():
        for dataset in datasets:
            suites = {suite.id for suite in registry.suites_of(dataset)}
            for name in _memberships(registry, dataset):
                if name not in suites:  # a suite's own group holds the groups of its partition
                    groups[name + suffix] = [f"{name}{suffix}_tasks"]
        for suite in registry.suites.values():
            parts = [
                name + suffix
                for axis in suite.partition
                for dataset in registry.datasets_of(suite)
                if dataset.metadata.grouped
                for name in _own_names(dataset, suite, {axis: suite.groups[axis]})
            ]
            if parts:
                groups[suite.id + suffix] = list(dict.fromkeys(parts))
    return dict(sorted(groups.items()))
