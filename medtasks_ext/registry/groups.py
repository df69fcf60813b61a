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
    "medhelm": {"category": "", "subcategory": "sub_"},
    "clinicbench": {"scenario": "", "clinical_task": "task_"},
    "mlb": {"dimension": "", "domain": "", "tertiary": "tertiary_"},
}
#: Axes that join the suites.
SHARED_AXES = {"language": "", "specialties": "spec_", "stage": "stage_"}
#: Axes kept as tags only: finer than a table row deserves, and rolled up by reports.
TAG_AXES = {
    "bridge": {"application": "app_", "documents": "doc_"},
    "medhelm": {},
    "clinicbench": {},
    "mlb": {},
}
#: Axes that split a suite into parts without overlap: the children of its umbrella group. Each
#: task then counts equally often in the umbrella's mean, which lm-eval takes over all leaves.
PARTITIONS = {
    "bridge": ("language", "task_type", "stage"),
    "medhelm": ("category",),
    "clinicbench": ("scenario",),
    "mlb": ("dimension",),
}
#: ClinicBench's complex clinical tasks, one new dataset each; the others are machine-learning tasks.
CLINICAL_TASKS = {
    "referral_qa",
    "treatment_recommendation",
    "hospitalization_summarization",
    "patient_education",
    "pharmacology_qa_emerging_drugs",
    "drug_interaction_emerging_drugs",
}
#: Suites whose overall figure is the mean over such parts, each counting once, whatever its number of
#: tasks (MLB Table 4). lm-eval cannot average like that, so these groups have no score in its table.
AVERAGED_OVER = {"mlb": "dimension"}
#: Short names that the suites' users know, where the full value would be unwieldy.
SHORT = {
    "administration": "admin",
    "clinical_decision_support": "decision_support",
    "clinical_note_generation": "notes",
    "patient_communication": "communication",
    "medical_research": "research",
}


def group_name(owner: str, prefix: str, value: str) -> str:
    """The zero-shot name of the group of one value of an axis; the owner is a suite or `medtasks`."""
    return f"{owner}_{prefix}{SHORT.get(value, value)}"


def _names(metadata: Metadata, owner: str, axes: dict[str, str]) -> list[str]:
    return [
        group_name(owner, prefix, value) for axis, prefix in axes.items() for value in metadata.axis(axis)
    ]


def _memberships(metadata: Metadata) -> list[str]:
    """What a dataset belongs to: its suite first, then the axes that have groups."""
    suite = metadata.benchmark
    owners = [suite, "medtasks"]
    return [
        suite,
        *_names(metadata, suite, SUITE_AXES[suite]),
        *_kind_of_task(metadata),
        *_names(metadata, "medtasks", SHARED_AXES),
        *(f"{owner}_{metadata.access.value}" for owner in owners),
        *(f"{owner}_scoreable" for owner in owners if metadata.access.scoreable),
    ]


def _kind_of_task(metadata: Metadata) -> list[str]:
    """ClinicBench's own division of its tasks."""
    if metadata.benchmark != "clinicbench":
        return []
    return ["clinicbench_clinical" if metadata.clinical_task in CLINICAL_TASKS else "clinicbench_ml"]


def tags_of(metadata: Metadata, strategy: str) -> list[str]:
    """The tags of one variant of a dataset, coarse axes first.

    The twin of a dataset asks its rows in another form: it is no dataset of the suite, so it has no tag,
    belongs to no group and counts in no mean.
    """
    if metadata.twin_of:
        return []
    suite = metadata.benchmark
    names = [*_memberships(metadata), *_names(metadata, suite, TAG_AXES[suite])]
    return [f"{name}{SUFFIX[strategy]}_tasks" for name in dict.fromkeys(names)]


def parts_of(registry: Registry, name: str) -> list[list[str]] | None:
    """The tasks of a group whose score is not the plain mean over its tasks, part by part.

    MLB's overall is the mean of its dimensions. ClinicBench's scenario averages leave out datasets
    that say so (Table 5: the two long-document sets). None for any other name.
    """
    leaves = registry.leaves(name)
    records = {leaf: registry.tasks[leaf][0].metadata for leaf in leaves}
    for suite, axis in AVERAGED_OVER.items():
        if name in {suite + suffix for suffix in SUFFIX.values()}:
            parts: dict[str, list[str]] = {}
            for leaf in leaves:
                parts.setdefault(records[leaf].axis(axis)[0], []).append(leaf)
            return list(parts.values())
    counted = [leaf for leaf in leaves if records[leaf].in_scenario_average]
    scenarios = {
        _names(record, record.benchmark, {"scenario": ""})[0]
        for record in records.values()
        if record.scenario
    }
    if len(counted) < len(leaves) and name in {
        f"{item}{suffix}" for item in scenarios for suffix in SUFFIX.values()
    }:
        return [counted]
    return None


def groups_of(registry: Registry) -> dict[str, list[str]]:
    """Group name -> members, for all strategies."""
    groups: dict[str, list[str]] = {}
    records = [item.metadata for item in registry.datasets.values() if not item.metadata.twin_of]
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
