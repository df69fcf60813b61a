"""Tags and groups, derived from metadata and from what the suites declare.

A tag is written in every variant and ends in `_tasks`; a group is built from tags, so that a new
dataset joins by its metadata alone. Names carry the strategy's suffix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.registry.strategies import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medtasks_ext.registry.metadata import Metadata
    from medtasks_ext.registry.suites import Suite
    from medtasks_ext.registry.tasks import Registry

#: Whose groups join the suites.
SHARED = "medtasks"
#: Axes that join the suites: axis -> what the names of its groups begin with.
SHARED_AXES = {"language": "", "specialties": "spec_", "stage": "stage_"}


def shared_group_name(axis: str, value: str) -> str | None:
    """The zero-shot name of the group of a value across suites; None where the axis has none."""
    return f"{SHARED}_{SHARED_AXES[axis]}{value}" if axis in SHARED_AXES else None


def _own_names(metadata: Metadata, axes: dict[str, str]) -> list[str]:
    suite = metadata.declared
    return [suite.named(prefix, value) for axis, prefix in axes.items() for value in metadata.axis(axis)]


def _memberships(metadata: Metadata) -> list[str]:
    """What a dataset belongs to: its suite first, then the axes that have groups."""
    suite = metadata.declared
    owners = [suite.id, SHARED]
    shared = [
        f"{SHARED}_{prefix}{value}" for axis, prefix in SHARED_AXES.items() for value in metadata.axis(axis)
    ]
    return [
        suite.id,
        *_own_names(metadata, suite.groups),
        *_sets(metadata, suite),
        *shared,
        *(f"{owner}_{metadata.access}" for owner in owners),
        *(f"{owner}_scoreable" for owner in owners if metadata.scoreable),
    ]


def _sets(metadata: Metadata, suite: Suite) -> list[str]:
    """The suite's groups of several values of an axis."""
    return [
        f"{suite.id}_{name}"
        for axis, named in suite.sets.items()
        for name, values in named.items()
        if set(values) & set(metadata.axis(axis))
    ]


def tags_of(metadata: Metadata, strategy: str) -> list[str]:
    """The tags of one variant of a dataset, coarse axes first.

    The twin of a dataset asks its rows in another form: it is no dataset of the suite, so it has no tag,
    belongs to no group and counts in no mean.
    """
    if metadata.twin_of:
        return []
    names = [*_memberships(metadata), *_own_names(metadata, metadata.declared.tags)]
    return [f"{name}{SUFFIX[strategy]}_tasks" for name in dict.fromkeys(names)]


def parts_of(registry: Registry, name: str) -> list[list[str]] | None:
    """The tasks of a group whose score is not the plain mean over its tasks, part by part.

    A suite may take its own figure as the mean over the values of an axis, and may leave datasets out of the
    means of an axis (`averaged_over` and `left_out` of `suite.yaml`). A suite's groups are means over its
    paper's datasets; those that joined later count where a group holds nothing else. None for any other name.
    """
    if name not in registry.groups or name.startswith(f"{SHARED}_"):
        return None
    leaves = registry.leaves(name)
    strategy = registry.tasks[leaves[0]][1]
    bare, suite = name.removesuffix(SUFFIX[strategy]), registry.tasks[leaves[0]][0].suite
    counted = counted_in(registry, leaves, bare, suite)
    if bare == suite.id and suite.averaged_over:
        parts: dict[str, list[str]] = {}
        for leaf in counted:
            value = registry.tasks[leaf][0].metadata.axis(suite.averaged_over)[0]
            parts.setdefault(value, []).append(leaf)
        return list(parts.values())
    return [counted] if len(counted) < len(leaves) else None


def counted_in(registry: Registry, leaves: Iterable[str], group: str, suite: Suite) -> list[str]:
    """The tasks that the mean of a suite's group is taken over.

    Args:
        registry: of the tasks.
        leaves: tasks of the group.
        group: its zero-shot name.
        suite: whose group it is.
    """
    leaves = list(leaves)
    of_paper = [leaf for leaf in leaves if registry.tasks[leaf][0].of_paper] or leaves
    left_out = {
        leaf
        for axis, names in suite.left_out.items()
        for leaf in of_paper
        if registry.tasks[leaf][0].folder.name in names
        and group in {suite.group_name(axis, value) for value in registry.tasks[leaf][0].metadata.axis(axis)}
    }
    return [leaf for leaf in of_paper if leaf not in left_out] or of_paper


def groups_of(registry: Registry) -> dict[str, list[str]]:
    """Group name -> members, for all strategies."""
    groups: dict[str, list[str]] = {}
    records = [item.metadata for item in registry.datasets.values() if not item.metadata.twin_of]
    for suffix in SUFFIX.values():
        for metadata in records:
            for name in _memberships(metadata)[1:]:
                groups[name + suffix] = [f"{name}{suffix}_tasks"]
        for suite in registry.suites.values():
            parts = [
                name + suffix
                for axis in suite.partition
                for metadata in records
                if metadata.suite == suite.id
                for name in _own_names(metadata, {axis: suite.groups[axis]})
            ]
            if parts:
                groups[suite.id + suffix] = list(dict.fromkeys(parts))
    return dict(sorted(groups.items()))
