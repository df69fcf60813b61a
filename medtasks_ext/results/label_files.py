"""Labels of documents from files of studies; packages that have studies read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.hooks import LABELS, loaded

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.labels import Labels

_REMEDY = "name files of `medtasks study difficulty` or `departments`, or the folder of a contamination probe"


def read_labels(paths: Iterable[Path], tasks: Registry) -> list[Labels]:
    """The labels in files of studies, or in folders of such files.

    Raises:
        MedtasksError: a path holds none, or two files label the same task alike.
    """
    labels = [one for path in paths for one in _read(path, tasks)]
    seen: dict[tuple[str, str, str | None], str] = {}
    for one in labels:
        if (other := seen.setdefault((one.axis, one.task, one.model), one.where)) is not one.where:
            raise MedtasksError(
                f"{one.axis} of {one.task} is in {other}, too",
                where=one.where,
                remedy="name one of the files",
            )
    return labels


def _read(path: Path, tasks: Registry) -> list[Labels]:
    for _, labels_in in loaded(LABELS):
        labels: list[Labels] | None = labels_in(path, tasks)
        if labels is not None:
            return labels
    raise MedtasksError("holds no labels of documents", where=path, remedy=_REMEDY)
