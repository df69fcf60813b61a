"""What installed packages add to medtasks: entry points of the groups that are named here.

They are read once, when the first of them is asked for. A module is imported when its hook is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError

#: Commands and their subcommands (`prompts candidates`): functions as `cli.app.command_of` describes them.
COMMANDS = "medtasks.commands"
#: Readers of files that label documents: `read(path, tasks)` gives `Labels`, or None where it is not theirs.
LABELS = "medtasks.labels"
#: The one that rebuilds rows from files as a data owner distributes them (`rows.sources.Originals`).
ORIGINALS = "medtasks.originals"
#: What a jury is asked besides about a run's answers: `red-team` asks about bundled attacks.
JUDGE = "medtasks.judge"
GROUPS = (COMMANDS, LABELS, ORIGINALS, JUDGE)


@dataclass(frozen=True)
class Hook:
    """One entry point: its group, its name, `module:object`, and the package that declares it."""

    group: str
    name: str
    value: str
    package: str

    @property
    def module(self) -> str:
        """The module that holds the object."""
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """The object; imports its module.

        Raises:
            MedtasksError: the module cannot be imported, or does not have it.
        """
        try:
            return metadata.EntryPoint(self.name, self.value, self.group).load()
        except MedtasksError:
            raise
        except Exception as error:
            raise MedtasksError(
                f"the hook {self.name!r} cannot be imported ({type(error).__name__}: {error})",
                where=f"package {self.package}, {self.group}",
                remedy=f"mend the package {self.package}, or remove it",
            ) from None

    def file(self) -> Path | None:
        """The file of the module; found without importing it or the packages that it lies in."""
        folders, name, file = None, "", None
        for part in self.module.split("."):
            name = f"{name}.{part}" if name else part
            found = (finder.find_spec(name, folders) for finder in sys.meta_path)
            spec = next((spec for spec in found if spec), None)
            if spec is None:
                return None
            folders, file = spec.submodule_search_locations, spec.origin
        return Path(file) if file and Path(file).is_file() else None


@lru_cache(maxsize=1)
def _all() -> tuple[Hook, ...]:
    found = metadata.entry_points()
    return tuple(
        Hook(group, point.name, point.value, point.dist.name if point.dist else "unknown")
        for group in GROUPS
        for point in found.select(group=group)
    )


def hooks(group: str) -> list[Hook]:
    """The hooks of a group; nothing is imported."""
    return [hook for hook in _all() if hook.group == group]


def loaded(group: str) -> Iterator[tuple[Hook, Any]]:
    """The hooks of a group with their objects. One that cannot be imported is said and left out."""
    for hook in hooks(group):
        try:
            yield hook, hook.load()
        except MedtasksError as error:
            print(f"medtasks: {error}; left out", file=sys.stderr)


def hook(group: str, name: str) -> Any:
    """The object of one hook.

    Raises:
        MedtasksError: no package adds it, or it cannot be imported.
    """
    for item in hooks(group):
        if item.name == name:
            return item.load()
    raise MedtasksError(
        f"no installed package adds {name!r} ({group})",
        remedy="install medtasks again: the installed entry points are older than its code",
    )
