"""Writes what is derived from the hand-written task files: tags, variants, groups."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.groups import parts_of, tags_of
from medtasks_ext.registry.suites import SUITE_FILE, near, read_suite
from medtasks_ext.registry.tasks import STRATEGIES, SUFFIX, Dataset, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from medtasks_ext.registry.metadata import Metadata

_TAG_BLOCK = re.compile(r"\n*# written by `medtasks sync`[^\n]*\ntag:.*\Z", re.DOTALL)
_VARIANT = {
    "cot": "custom_dataset: !function medtasks_ext.data.cot\nnum_fewshot: 0\n",
    "five_shot": "custom_dataset: !function medtasks_ext.data.five_shot\nnum_fewshot: 5\n",
}


@dataclass(frozen=True)
class Change:
    """A file whose content differs from what the metadata says; None: it should not exist."""

    path: Path
    content: str | None


def changes(registry: Registry) -> list[Change]:
    """What `medtasks sync` would write or delete.

    Raises:
        MedtasksError: a suite's or a task's file cannot be read, or two names clash.
    """
    for file in registry.root.glob(f"*/{SUITE_FILE}"):
        read_suite(file.absolute().parent)
    if registry.broken:
        folder, reason = next(iter(registry.broken.items()))
        raise MedtasksError(
            reason, where=None if str(folder) in reason else folder, remedy="mend it, then sync"
        )
    check_names(registry)
    check_suites(registry)
    expected: dict[Path, str] = {}
    for dataset in registry.datasets.values():
        expected.update(dataset_files(dataset))
    folder = registry.root / "groups"
    for name, members in registry.groups.items():
        expected[folder / f"{name}.yaml"] = _group(name, members, plain_mean=parts_of(registry, name) is None)
    orphans = [Change(path, None) for path in sorted(folder.glob("*.yaml")) if path not in expected]
    return stale(expected) + orphans


def stale(expected: Mapping[Path, str]) -> list[Change]:
    """The files that are missing or hold something else than they should."""
    return [
        Change(path, content)
        for path, content in expected.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]


def apply(pending: list[Change]) -> None:
    """Write the changes."""
    for change in pending:
        if change.content is None:
            change.path.unlink()
        else:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            change.path.write_text(change.content, encoding="utf-8")


def check_suites(registry: Registry) -> None:
    """What the suites declare is there.

    Raises:
        MedtasksError: a suite has no datasets, or lists datasets that do not exist.
    """
    for file in sorted(registry.root.glob(f"*/{SUITE_FILE}")):
        suite = read_suite(file.absolute().parent)
        folders = [item.folder.name for item in registry.datasets.values() if item.suite.id == suite.id]
        if not folders:
            raise MedtasksError(
                "the suite has no dataset",
                where=file,
                remedy="add one (`medtasks new`), or delete the folder",
            )
        named = {
            "datasets": suite.datasets,
            **{f"left_out.{axis}": names for axis, names in suite.left_out.items()},
        }
        for key, names in named.items():
            if absent := [name for name in names if name not in folders]:
                raise MedtasksError(
                    f"{key}: no dataset {absent[0]!r} in the folder{near(absent[0], folders)}"
                    + (f", and {len(absent) - 1} more are not there" if absent[1:] else ""),
                    where=file,
                    remedy="correct the name, or bring the folder back",
                )


def check_names(registry: Registry) -> None:
    """Names are unique over tasks, tags and groups; lm-eval drops or replaces clashing ones silently.

    Raises:
        MedtasksError: a name stands for two things, or a task does not begin with its suite's name.
    """
    owner: dict[str, str] = {}
    ids: dict[str, Path] = {}
    for file in sorted(registry.root.glob("*/*/zero_shot.yaml")):
        dataset = Dataset(file.parent)
        if not dataset.id.startswith(f"{dataset.suite.id}_"):
            raise MedtasksError(
                f"task {dataset.id!r} does not begin with {dataset.suite.id}_",
                where=file,
                remedy="rename it",
            )
        if other := ids.get(dataset.id):
            raise MedtasksError(
                f"task {dataset.id!r} is also in {other}", where=file, remedy="rename one of them"
            )
        ids[dataset.id] = file
    kinds = (("task", registry.tasks), ("tag", registry.tags), ("group", registry.groups))
    for kind, names in kinds:
        for name in names:
            if name in owner:
                raise MedtasksError(
                    f"{name!r} is both a {owner[name]} and a {kind}", remedy="rename one of them"
                )
            owner[name] = kind


def dataset_files(dataset: Dataset) -> dict[Path, str]:
    """What the YAML files of one dataset should hold."""
    written = dataset.file.read_text(encoding="utf-8")
    files = task_files(written, dataset.id, dataset.metadata)
    return {dataset.folder / name: content for name, content in files.items()}


def task_files(written: str, task: str, metadata: Metadata) -> dict[str, str]:
    """The YAML files of a dataset: the one written by hand, with its tags, and its variants.

    Args:
        written: `zero_shot.yaml`, with or without tags.
        task: the dataset's id.
        metadata: its record.

    Returns:
        File name -> content.
    """
    by_hand = _TAG_BLOCK.sub("", written).rstrip("\n") + "\n"
    files = {"zero_shot.yaml": by_hand + "\n" + _tags(metadata, "zero_shot", "from the metadata above")}
    for strategy in STRATEGIES[1:]:
        files[f"{strategy}.yaml"] = (
            f"include: zero_shot.yaml\ntask: {task}{SUFFIX[strategy]}\n{_VARIANT[strategy]}"
            + "\n"
            + _tags(metadata, strategy, "from zero_shot.yaml")
        )
    return files


def _tags(metadata: Metadata, strategy: str, origin: str) -> str:
    tags = textwrap.fill(
        ", ".join(tags_of(metadata, strategy)),
        width=110,
        initial_indent="tag: [",
        subsequent_indent="  ",
        break_long_words=False,
    )
    return f"# written by `medtasks sync` {origin}\n{tags or 'tag: ['}]\n"


def _group(name: str, members: list[str], *, plain_mean: bool) -> str:
    aggregation = [
        "aggregate_metric_list:",
        *(
            f"  - {{metric: {metric}, weight_by_size: false}}"
            for metric in ("score", "scored", "SAMPLE_DATA")
        ),
    ]
    lines = [
        "# written by `medtasks sync` from the tasks' metadata",
        f"group: {name}",
        "task:",
        *(f"  - {member}" for member in members),
        *(
            aggregation
            if plain_mean
            else ["# its score is no plain mean over tasks: `medtasks run` prints it"]
        ),
        "metadata: {version: 1-A}",
    ]
    return "\n".join(lines) + "\n"
