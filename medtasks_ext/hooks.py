"""What installed packages add to medtasks: entry points of the groups named here (docs/add_a_dataset.md).

They are read once, when the first of them is asked for. A module is imported when its hook is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import what_happened

#: Commands and commands of groups (`study gold`): functions, or Typer apps; a group by itself: a module.
COMMANDS = "medtasks.commands"
#: Packages whose folder holds suites and datasets, as a folder in MEDTASKS_TASKS does.
SUITES = "medtasks.suites"
#: Kinds of answers: subclasses of `answers.formats.AnswerFormat`, each under the name of its kind.
ANSWERS = "medtasks.answers"
#: Packages whose folder holds families of metrics, as `metrics/families` does.
METRICS = "medtasks.metrics"
#: What a report writes besides: functions from a `report.gather.Report` to file name -> text.
REPORT_VIEWS = "medtasks.report_views"
#: Readers of files that label documents: `read(path, tasks)` gives `Labels`, or None where it is not theirs.
LABELS = "medtasks.labels"
GROUPS = (COMMANDS, SUITES, ANSWERS, METRICS, REPORT_VIEWS, LABELS)


@dataclass(frozen=True)
class Hook:
    """One entry point, and the package that declares it."""

    point: metadata.EntryPoint
    package: str

    @property
    def name(self) -> str:
        return self.point.name

    def load(self) -> Any:
        try:
            return self.point.load()
        except MedtasksError:
            raise
        except Exception as error:
            raise self.fault(f"cannot be imported ({type(error).__name__}: {error})") from None

    def file(self) -> Path | None:
        """Found without importing it or the packages that it lies in."""
        folders, name, file = None, "", None
        for part in self.point.module.split("."):
            name = f"{name}.{part}" if name else part
            specs = (finder.find_spec(name, folders) for finder in sys.meta_path)
            spec = next((spec for spec in specs if spec), None)
            if spec is None:
                return None
            folders, file = spec.submodule_search_locations, spec.origin
        return Path(file) if file and Path(file).is_file() else None

    def folder(self) -> Path:
        file = self.file()
        if file is None or file.name != "__init__.py":
            raise self.fault(f"{self.point.module} is no package with an __init__.py")
        return file.parent

    def fault(self, what: str) -> MedtasksError:
        return MedtasksError(
            f"{self.name!r} of the package {self.package} {what}",
            where=self.point.group,
            remedy=f"mend the package {self.package}, or remove it",
        )


@lru_cache(maxsize=1)
def _all() -> tuple[Hook, ...]:
    points = metadata.entry_points()
    return tuple(
        Hook(point, point.dist.name if point.dist else "unknown")
        for group in GROUPS
        for point in points.select(group=group)
    )


def hooks(group: str) -> list[Hook]:
    """Nothing is imported."""
    return [hook for hook in _all() if hook.point.group == group]


def loaded(group: str, load: Callable[[Hook], Any] = Hook.load) -> Iterator[tuple[Hook, Any]]:
    """The hooks of a group with their objects. One that cannot be imported is named, and left out."""
    for item in hooks(group):
        try:
            yield item, load(item)
        except MedtasksError as error:
            leave_out(error)


def results(group: str, *arguments: Any) -> Iterator[tuple[Hook, Any]]:
    """A hook that fails is named with its package, and left out."""
    for item, function in loaded(group):
        try:
            yield item, function(*arguments)
        except Exception as error:
            leave_out(item.fault(f"failed: {what_happened(error)}"))


def folders(group: str) -> list[tuple[Hook, Path]]:
    """The folders that the hooks of a group name. One that is not there is named, and left out."""
    return list(loaded(group, Hook.folder))


_said: set[str] = set()


def leave_out(error: MedtasksError) -> None:
    """Say once, in one line, that a hook does not count."""
    line = f"medtasks: left out: {error.where}: {' '.join(error.what.split())}"
    if line not in _said:
        _said.add(line)
        print(line, file=sys.stderr)
