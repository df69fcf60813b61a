"""Templates for data that a user brings: where files go, what their columns hold, two example rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from medtasks_ext.atomic import atomic_file
from medtasks_ext.registry import Dataset
from medtasks_ext.rows.columns import Column
from medtasks_ext.rows.fields import columns_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.sources import SPLIT_KEY
from medtasks_ext.rows.spec import DatasetSpec, dataset_spec
from medtasks_ext.tables import csv_text, table

if TYPE_CHECKING:
    from medtasks_ext.rows.row import Row

_EXAMPLES = 2
_NO_MEANING = "see the prompt in the task's YAML"


Form = Literal["csv", "xlsx", "jsonl"]
#: Column -> its type, what it holds, whether every row has it.
_Columns = dict[str, tuple[Column, str, bool]]


class TemplateFolder(NamedTuple):
    folder: Path
    written: list[Path]
    downloaded: bool  # the rows can be downloaded, so that none need be brought


def write_template(dataset: Dataset, root: Path, form: Form = "jsonl") -> TemplateFolder:
    """Write `README.md` and `example.FORM`, two synthetic rows, for one dataset.

    Nothing is written where the loader looks for rows: the owner's own files are never touched or hidden.
    """
    spec, authors = dataset_spec(dataset), authors_of(dataset, dataset_spec(dataset).rows)
    samples = [row for row in read_rows(dataset.sample_file) if row[SPLIT_KEY] == "test"][:_EXAMPLES]
    schemas = [*spec.rows.schemas, *([authors.schema] if authors else [])]
    schema = next(schema for schema in schemas if all(column in samples[0] for column in schema.columns))
    needed, optional = columns_of(spec, schema)
    stated = schema.columns
    meanings = stated if isinstance(stated, dict) else dict.fromkeys(stated, _NO_MEANING)
    columns = {
        name: (needed.get(name) or optional[name], meaning, name in needed)
        for name, meaning in {**meanings, **schema.optional}.items()
    }
    folder = root / dataset.metadata.suite / dataset.folder.name
    example = _example([{name: row.get(name) for name in columns} for row in samples], form)
    files = {"README.md": _readme(dataset, spec, columns, form).encode(), f"example.{form}": example}
    for name, content in files.items():
        with atomic_file(folder / name, remedy="choose another folder: -o DIR") as file:
            file.write(content)
    return TemplateFolder(folder, [folder / name for name in files], spec.rows.download is not None)


def _example(rows: list[Row], form: Form) -> bytes:
    if form == "jsonl":
        given = ({name: value for name, value in row.items() if value is not None} for row in rows)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in given).encode()
    records = [list(rows[0])]
    for row in rows:  # as texts: lists and objects are JSON
        values = ("" if value is None else value for value in row.values())
        records.append([v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values])
    if form == "csv":
        return csv_text(records).encode("utf-8-sig")  # with the mark by which Excel knows UTF-8
    from openpyxl import Workbook

    book, content = Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    for record in records:
        sheet.append(record)
    for cell in (cell for line in sheet.iter_rows() for cell in line):
        cell.data_type = "s"  # a text that begins with = is no formula
    book.save(content)
    return content.getvalue()


def _readme(dataset: Dataset, spec: DatasetSpec, columns: _Columns, form: Form) -> str:
    metadata = dataset.metadata
    lines = [
        f"# {metadata.name} ({dataset.id})",
        "",
        metadata.summary,
        "",
        f"Source: {metadata.url} ({metadata.access})",
        "",
        f"Write your rows into `test.{form}`, in the form of `example.{form}`, which holds two invented rows",
        "and is not read; or let `medtasks data import FILE --task TASK` make it of yours. The columns:",
        "",
        *table(
            ["column", "type", "what it holds"],
            (
                (f"`{name}`", column.expected, meaning + ("" if is_needed else " (optional)"))
                for name, (column, meaning, is_needed) in columns.items()
            ),
        ),
        "",
        "In CSV and Excel cells lists and objects are JSON. No cell of a column that is needed is empty.",
        "",
        f"The gold answer is read as: `{json.dumps(spec.answer, ensure_ascii=False)}`",
        "",
        f"`fewshot.{form}`, if any, holds at least five rows of the same kind, none of them a test row;",
        "without it, five test rows are held out of the 5-shot task. A column `id` is optional.",
        "",
    ]
    return "\n".join(lines)
