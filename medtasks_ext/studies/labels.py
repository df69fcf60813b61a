"""Labels of documents in the files of studies: levels of difficulty, departments, leaked inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry.blocks import DIFFICULTY, LEVELS
from medtasks_ext.results.labels import Labels
from medtasks_ext.studies.contamination import FILE
from medtasks_ext.studies.departments import DEPARTMENT, departments
from medtasks_ext.studies.difficulty import read_levels

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

CONTAMINATION, NOT_LABELLED = "contamination", "not labelled"
CLEAN, LEAKED, TOO_SHORT = "clean", "leaked", "too short to probe"


def labels_in(path: Path, tasks: Registry) -> list[Labels] | None:
    """The labels in a file of a study, or in a folder of such files; None where there is no such file."""

    def asking(name: str) -> frozenset[str]:
        dataset = tasks.datasets.get(name)
        return frozenset(dataset.task(item) for item in dataset.strategies) if dataset else frozenset({name})

    probe = path / FILE if (path / FILE).is_file() else path
    if probe.name == FILE:
        content = read_json(probe)
        words = {True: LEAKED, False: CLEAN, None: TOO_SHORT}
        return [
            Labels(
                axis=CONTAMINATION,
                task=name,
                tasks=asking(name),
                origin=task["origin"],
                rows_hash=task["rows_hash"],
                by_question={item["id"]: (words[item["leaked"]],) for item in task["documents"]},
                values=(CLEAN, LEAKED, TOO_SHORT),
                where=str(probe),
                model=content["name"],
                wording="own",
            )
            for name, task in content["tasks"].items()
        ]
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [_labels(file, asking) for file in files] if files and files[0].is_file() else None


def _labels(file: Path, asking: Any) -> Labels:
    content = read_json(file)
    try:
        shared = {"task": content["task"], "origin": content["origin"], "rows_hash": content["rows_hash"]}
        if "method" in content:
            return Labels(
                axis=DIFFICULTY,
                tasks=frozenset({content["task"], *content["same_documents"]}),
                by_question={item["id"]: (item["level"],) for item in read_levels(file)["questions"]},
                values=LEVELS,
                where=str(file),
                **shared,
            )
        label = departments()
        shown = {item["id"]: label.shown(label.read(item[DEPARTMENT])) for item in content["questions"]}
        return Labels(
            axis=DEPARTMENT,
            tasks=frozenset({content["task"], *asking(content["task"])}),
            by_question={**shown, **dict.fromkeys(content["missing"], (NOT_LABELLED,))},
            values=(*label.order, NOT_LABELLED),
            where=str(file),
            wording="own",
            **shared,
        )
    except (KeyError, TypeError, ValueError):
        what, remedy = "is no file of labels of documents", "`medtasks study` writes them"
        raise MedtasksError(what, where=file, remedy=remedy) from None
