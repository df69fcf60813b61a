"""Labels of documents in the files of studies: levels of difficulty, departments, leaked inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry import STRATEGIES
from medtasks_ext.registry.levels import LEVELS
from medtasks_ext.results.labels import DIFFICULTY, Labels
from medtasks_ext.studies.contamination.folder import FILE as PROBE
from medtasks_ext.studies.contamination.folder import ProbeFolder
from medtasks_ext.studies.departments import read_labelling
from medtasks_ext.studies.difficulty import read_grading

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

CONTAMINATION = "contamination"
#: What the probe says of an input; those too short have no verdict.
CLEAN, LEAKED, TOO_SHORT = "clean", "leaked", "too short to probe"
_REMEDY = (
    "name files of `medtasks difficulty` or `medtasks departments`, or the folder of a contamination probe"
)


def read_labels(paths: Iterable[Path], tasks: Registry) -> list[Labels]:
    """The labels in files of studies, or in folders of such files.

    Raises:
        MedtasksError: a path holds none, or two files label the same task alike.
    """
    found = [one for path in paths for one in _read(path, tasks)]
    seen: dict[tuple[str, str, str | None], str] = {}
    for one in found:
        if (other := seen.setdefault((one.axis, one.task, one.model), one.where)) is not one.where:
            raise MedtasksError(
                f"{one.axis} of {one.task} is in {other}, too",
                where=one.where,
                remedy="name one of the files",
            )
    return found


def _read(path: Path, tasks: Registry) -> Iterator[Labels]:
    if (path / PROBE).is_file() or path.name == PROBE:
        yield from _probe(path if path.is_dir() else path.parent, tasks)
        return
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise MedtasksError("holds no labels of documents", where=path, remedy=_REMEDY)
    for file in files:
        content = read_json(file)
        name = content.get("task", "") if isinstance(content, dict) else ""
        yield _grading(file) if "method" in content else read_labelling(file, _strategies(name, tasks))


def _grading(file: Path) -> Labels:
    grading = read_grading(file)
    return Labels(
        axis=DIFFICULTY,
        task=grading.task,
        tasks=frozenset({grading.task, *grading.same_documents}),
        origin=grading.origin,
        rows_hash=grading.rows_hash,
        by_question={item.id: (item.level,) for item in grading.questions},
        values=LEVELS,
        where=str(file),
    )


def _strategies(name: str, tasks: Registry) -> frozenset[str]:
    """The tasks that ask a dataset's test rows."""
    dataset = tasks.datasets.get(name)
    return frozenset(dataset.task(strategy) for strategy in STRATEGIES) if dataset else frozenset({name})


def _probe(folder: Path, tasks: Registry) -> Iterator[Labels]:
    probe = ProbeFolder(folder)
    probe.load()
    words = {True: LEAKED, False: CLEAN, None: TOO_SHORT}
    for name, task in probe.tasks.items():
        yield Labels(
            axis=CONTAMINATION,
            task=name,
            tasks=_strategies(name, tasks),
            origin=task["origin"],
            rows_hash=task["rows_hash"],
            by_question={item["id"]: (words[item["leaked"]],) for item in task["documents"]},
            values=(CLEAN, LEAKED, TOO_SHORT),
            where=str(probe.file),
            model=probe.model,
            wording="own",
        )
