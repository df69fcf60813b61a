"""What installed packages add to medtasks: entry points of the groups named here (docs/add_a_dataset.md).

They are read once, when the first of them is asked for. A module is imported when its hook is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
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

    def load(self) -> Any:
        try:
            return self.point.load()
        except MedtasksError:
            raise
        except Exception as error:
            raise self.fault(f"cannot be imported ({type(error).__name__}: {error})") from None

    def file(self) -> Path | None:
        """Found without importing it or the packages that it lies in."""
        name, spec = "", None
        for part in self.point.module.split("."):
            folders, name = spec and spec.submodule_search_locations, f"{name}.{part}".lstrip(".")
            specs = (finder.find_spec(name, folders) for finder in sys.meta_path)
            if (spec := next(filter(None, specs), None)) is None:
                return None
        return Path(spec.origin) if spec and spec.origin and Path(spec.origin).is_file() else None

    def folder(self) -> Path:
        file = self.file()
        if file is None or file.name != "__init__.py":
            raise self.fault(f"{self.point.module} is no package with an __init__.py")
        return file.parent

    def fault(self, what: str) -> MedtasksError:
        return MedtasksError(
            f"{self.point.name!r} of the package {self.package} {what}",
            where=self.point.group,
            remedy=f"mend the package {self.package}, or remove it",
        )


@cache
def _all() -> list[Hook]:
    points = metadata.entry_points()
    named = (point for group in GROUPS for point in points.select(group=group))
    return [Hook(point, point.dist.name if point.dist else "unknown") for point in named]


def hooks(group: str) -> list[Hook]:
    """Nothing is imported."""
    return [hook for hook in _all() if hook.point.group == group]


def results(group: str, use: Callable[[Hook], Any] = Hook.load) -> Iterator[tuple[Hook, Any]]:
    """The hooks of a group with what is made of them. One that fails is named, and left out."""
    for item in hooks(group):
        try:
            result = use(item)
        except MedtasksError as error:
            leave_out(error)
        except Exception as error:
            leave_out(item.fault(f"failed: {what_happened(error)}"))
        else:
            yield item, result


@cache
def _say(line: str) -> None:
    print(line, file=sys.stderr)


def leave_out(error: MedtasksError) -> None:
    """Say once, in one line, that a hook does not count."""
    _say(f"medtasks: left out: {error.where}: {' '.join(error.what.split())}")
