"""Records and the rows of other tables that have their key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from medtasks_ext.rows.row import Row
from medtasks_ext.rows.spec import Join, RowsReader
from medtasks_lab.originals.readers import Record, lacks, records
from medtasks_lab.originals.tree import SourceFile


def joined(found: Iterable[Record], join: Join, files: list[SourceFile]) -> Iterator[Record]:
    """The records that have a row in the table, with its columns, in their order.

    Raises:
        MedtasksError: the table cannot be read, or a record or row lacks a column.
    """
    table: dict[str, list[Row]] = {}
    for row in records(RowsReader(kind="rows"), files, join.files):
        rows = table.setdefault(_value(row, join.key), [])
        if join.every or not rows:
            rows.append({new: _column(row, name) for new, name in join.columns.items()})
    for record in found:
        for columns in table.get(_value(record, join.key), []):
            yield Record({**record.fields, **columns}, record.where, record.file)


def drop_duplicates(found: Iterable[Record], field: str) -> Iterator[Record]:
    """The records without those that are alike in the field to an earlier one."""
    seen = set()
    for record in found:
        value = _value(record, field)
        if value not in seen:
            seen.add(value)
            yield record


def _value(record: Record, name: str) -> str:
    return str(_column(record, name))


def _column(record: Record, name: str) -> Any:
    if name not in record.fields:
        raise lacks(record, name)
    return record.fields[name]
