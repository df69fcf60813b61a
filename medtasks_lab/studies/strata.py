"""Where the strata of questions come from: a column of the task's rows, or of another file with their ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.sources import find_origin, forced_origin, load_rows
from medtasks_ext.rows.spec import dataset_spec

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.row import Row
    from medtasks_lab.studies.difficulty import Grading

#: The label that documents carry themselves (MLB's 64 secondary departments).
DEPARTMENT = "department"
#: Stratum of questions for which the column is empty.
NONE = "(none)"


def strata_of(grading: Grading, dataset: Dataset, column: str, file: Path | None = None) -> dict[str, str]:
    """Question id -> stratum.

    Where a cell holds several values (departments), the first counts, since strata must not overlap.

    Args:
        grading: whose questions are to be drawn.
        dataset: of its task; its rows are read, unless a file is given or documents carry the label.
        column: for example `risk_type`.
        file: rows with columns `id` and that one.

    Raises:
        MedtasksError: the rows are not at hand, lack the column, or lack a question.
    """
    if column == DEPARTMENT and file is None and any(item.department for item in grading.questions):
        return {item.id: _stratum(item.department) for item in grading.questions}
    rows, where = (read_rows(file), str(file)) if file else _own_rows(grading, dataset)
    other = "name a file with the columns id and that one: --rows FILE"
    if file and not all("id" in row for row in rows):
        raise MedtasksError("a row has no id", where=where, remedy="every row needs the columns id and --by")
    if not any(column in row for row in rows):
        names = ", ".join(dict.fromkeys(name for row in rows for name in row))
        raise MedtasksError(f"no column {column!r}; there is: {names}", where=where, remedy=other)
    by_question = {
        str(row.get("id", place)): _stratum(row.get(column)) for place, row in enumerate(rows, start=1)
    }
    missing = [item.id for item in grading.questions if item.id not in by_question]
    if missing:
        raise MedtasksError(
            f"{len(missing)} of {len(grading.questions)} questions of {grading.task} are not there "
            f"(first: id {missing[0]})",
            where=where,
            remedy="use the rows that the panel was run on"
            if file is None
            else "add a row for each question",
        )
    return by_question


def _own_rows(grading: Grading, dataset: Dataset) -> tuple[Sequence[Row], str]:
    spec = dataset_spec(dataset)
    if any(schema.each or "id" in schema.fields for schema in spec.rows.schemas):
        raise MedtasksError(
            f"the questions of {grading.task} have ids that its rows do not have",
            where="--by",
            remedy="name a file with the columns id and that one: --rows FILE",
        )
    origin = find_origin(dataset, spec.rows, forced_origin(grading.origin))
    if origin is None:
        raise MedtasksError(
            f"the rows of {grading.task} ({grading.origin}) are not at hand",
            where="--by",
            remedy="set MEDTASKS_DATA_DIR as for the panel's runs, or name a file: --rows FILE",
        )
    rows = load_rows(dataset, spec.rows, origin)
    return rows.test, rows.where


def _stratum(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return next((text for item in values if item is not None and (text := str(item).strip())), NONE)
