"""Labels of documents in the files of studies: levels of difficulty, departments, leaked inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry.row_labels import DIFFICULTY, LEVELS
from medtasks_ext.results.labels import Labels
from medtasks_lab.studies.contamination.folder import FILE as PROBE
from medtasks_lab.studies.contamination.folder import ProbeFolder
from medtasks_lab.studies.departments import read_labelling
from medtasks_lab.studies.difficulty import read_grading

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

CONTAMINATION = "contamination"
#: What the probe says of an input; those too short have no verdict.
CLEAN, LEAKED, TOO_SHORT = "clean", "leaked", "too short to probe"


def labels_in(path: Path, tasks: Registry) -> list[Labels] | None:
    """The labels in a file of a study, or in a folder of such files; None where there is no such file.

    Raises:
        MedtasksError: a file is none of a study.
    """
    if (path / PROBE).is_file() or path.name == PROBE:
        return list(_probe(path if path.is_dir() else path.parent, tasks))
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        return None
    labels = []
    for file in files:
        content = read_json(file)
        name = content.get("task", "") if isinstance(content, dict) else ""
        graded = "method" in content
        labels.append(_grading(file) if graded else read_labelling(file, _strategies(name, tasks)))
    return labels


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
    return (
        frozenset(dataset.task(strategy) for strategy in dataset.strategies) if dataset else frozenset({name})
    )


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
