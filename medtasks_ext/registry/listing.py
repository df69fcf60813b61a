"""Whether what the files of suites list is there: datasets of their folders, and of other suites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError, near
from medtasks_ext.registry.suites import Suite, read_suite

if TYPE_CHECKING:
    from medtasks_ext.registry.tasks import Datasets


def check_suites(known: Datasets) -> None:
    """What the suites declare is there.

    Raises:
        MedtasksError: as for `check_suite`.
    """
    for file in known.suite_files:
        check_suite(known, file)


def check_suite(known: Datasets, file: Path) -> None:
    """What a suite declares is there, and is one thing.

    Raises:
        MedtasksError: the file cannot be read; the suite has no datasets, lists datasets that do not exist or
            that ask the rows of others, or has a group of two meanings.
    """
    suite = read_suite(file.parent)
    if not known.datasets_of(suite) and not suite.of_others:
        raise MedtasksError(
            "the suite has no dataset",
            where=file,
            remedy="add one (`medtasks new`), list some of other suites (`datasets`), or delete the folder",
        )
    named = {
        "datasets": suite.datasets,
        **{f"left_out.{axis}": names for axis, names in suite.left_out.items()},
    }
    for key, names in named.items():
        _check_listed(known, suite, key, names)
    _check_groups(known, suite)


def _check_listed(known: Datasets, suite: Suite, key: str, names: list[str]) -> None:
    found = {item.key: item for item in known.datasets.values()}
    if absent := [name for name in names if suite.key_of(name) not in found]:
        what, remedy = _absent(suite, absent[0], [*found])
        more = f", and {len(absent) - 1} more are not there" if absent[1:] else ""
        raise MedtasksError(f"{key}: {what}{more}", where=suite.file, remedy=remedy)
    for name in names:
        metadata = found[suite.key_of(name)].metadata
        if metadata.draft:
            raise MedtasksError(
                f"{key}: {name!r} is a draft, and counts in no suite",
                where=suite.file,
                remedy="leave it out until `draft` is gone from its card",
            )
        if control := metadata.control_of:
            raise MedtasksError(
                f"{key}: {name!r} asks the rows of {control} in another form, and counts in no suite",
                where=suite.file,
                remedy="leave it out",
            )


def _absent(suite: Suite, name: str, known: list[str]) -> tuple[str, str]:
    """What is wrong with the name of a dataset that is not there, and the remedy."""
    if "/" in name:
        return (
            f"no dataset {name!r}{near(name, known)}",
            "correct the name; datasets of your own are known where MEDTASKS_TASKS or --tasks-dir names them",
        )
    here = [key.partition("/")[2] for key in known if key.startswith(f"{suite.id}/")]
    elsewhere = [key for key in known if key.endswith(f"/{name}")]
    hint = f" (did you mean {elsewhere[0]}?)" if elsewhere else near(name, here)
    return (
        f"no dataset {name!r} in the folder{hint}",
        "correct the name, or bring the folder back; a dataset of another suite is written SUITE/NAME",
    )


def _check_groups(known: Datasets, suite: Suite) -> None:
    """No group is of two axes: datasets of others may have values that the suite's file does not know."""
    owner: dict[str, str] = {}
    for axis, prefix in suite.groups.items():
        owner |= dict.fromkeys((suite.named(prefix, value) for value in suite.titles(axis)), axis)
    for dataset in known.datasets_of(suite):
        for axis, prefix in suite.groups.items():
            for name in (suite.named(prefix, value) for value in dataset.values(suite, axis)):
                if (other := owner.setdefault(name, axis)) != axis:
                    raise MedtasksError(
                        f"groups: {name!r} is of {other} and of {axis} ({dataset.key})",
                        where=suite.file,
                        remedy=f"give groups.{axis} a prefix, or a value of {other} another name (`short`)",
                    )
