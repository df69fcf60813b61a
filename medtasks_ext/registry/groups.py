"""Tags and groups, derived from metadata.

A tag is written in every variant and ends in `_tasks`; a group is built from tags, so that a new
dataset joins by its metadata alone. Names carry the strategy's suffix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.registry.tasks import SUFFIX

if TYPE_CHECKING:
    from medtasks_ext.registry.metadata import Metadata
    from medtasks_ext.registry.tasks import Registry

#: Axes that become groups inside a suite: metadata field -> prefix of the group name.
SUITE_AXES: dict[str, dict[str, str]] = {
    "bridge": {"language": "", "task_type": "", "specialties": "spec_", "stage": "stage_"},
    "medhelm": {"category": ""},
    "clinicbench": {"scenario": "", "clinical_task": "task_"},
    "mlb": {"dimension": ""},
}
#: Axes that join the suites.
SHARED_AXES = {"language": "", "specialties": "spec_", "stage": "stage_"}
#: Axes kept as tags only: finer than a table row deserves, and rolled up by reports.
TAG_AXES = {
    "bridge": {"application": "app_", "documents": "doc_"},
    "medhelm": {"subcategory": "sub_"},
    "clinicbench": {},
    "mlb": {"domain": "", "tertiary": "tertiary_"},
}
#: Axes that split a suite into parts without overlap: the children of its umbrella group. Each
#: task then counts equally often in the umbrella's mean, which lm-eval takes over all leaves.
PARTITIONS = {
    "bridge": ("language", "task_type", "stage"),
    "medhelm": ("category",),
    "clinicbench": ("scenario",),
    "mlb": ("dimension",),
}
#: Short names that the suites' users know, where the full value would be unwieldy.
SHORT = {
    "administration": "admin",
    "clinical_decision_support": "decision_support",
    "clinical_note_generation": "notes",
    "patient_communication": "communication",
    "medical_research": "research",
}


def _names(metadata: Metadata, owner: str, axes: dict[str, str]) -> list[str]:
    return [
        f"{owner}_{prefix}{SHORT.get(value, value)}"
        for axis, prefix in axes.items()
        for value in metadata.axis(axis)
    ]


def _memberships(metadata: Metadata) -> list[str]:
    """What a dataset belongs to: its suite first, then the axes that have groups."""
    suite = metadata.benchmark
    owners = [suite, "medtasks"]
    return [
        suite,
        *_names(metadata, suite, SUITE_AXES[suite]),
        *_names(metadata, "medtasks", SHARED_AXES),
        *(f"{owner}_open" for owner in owners if metadata.access.value == "open"),
        *(f"{owner}_scoreable" for owner in owners if metadata.access.scoreable),
    ]


def tags_of(metadata: Metadata, strategy: str) -> list[str]:
    """The tags of one variant of a dataset, coarse axes first."""
    suite = metadata.benchmark
    names = [*_memberships(metadata), *_names(metadata, suite, TAG_AXES[suite])]
    return [f"{name}{SUFFIX[strategy]}_tasks" for name in dict.fromkeys(names)]


def groups_of(registry: Registry) -> dict[str, list[str]]:
    """Group name -> members, for all strategies."""
    groups: dict[str, list[str]] = {}
    records = [dataset.metadata for dataset in registry.datasets.values()]
    for suffix in SUFFIX.values():
        for metadata in records:
            for name in _memberships(metadata)[1:]:
                groups[name + suffix] = [f"{name}{suffix}_tasks"]
        for suite, axes in PARTITIONS.items():
            parts = [
                name + suffix
                for axis in axes
                for metadata in records
                if metadata.benchmark == suite
                for name in _names(metadata, suite, {axis: SUITE_AXES[suite][axis]})
            ]
            if parts:
                groups[suite + suffix] = list(dict.fromkeys(parts))
    return dict(sorted(groups.items()))
