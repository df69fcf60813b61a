"""Tables as people read them: CSV and Markdown.

A cell of a CSV that a spreadsheet would take for a formula is shown as text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import check_regular, write_text
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    import pyarrow as pa

#: What a formula begins with, in spreadsheets of any maker.
_BEGIN = ("=", "+", "-", "@", "\t", "\r")


def plain(cell: Any) -> Any:
    """The cell; a text that a spreadsheet would compute gets an apostrophe. Numbers stay numbers."""
    if not isinstance(cell, str) or not cell.startswith(_BEGIN):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def as_written(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and plain(cell[1:]) == cell else cell


def read_sheet(path: Path, columns: Sequence[str], *, remedy: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a sheet that people filled in, counted from 2; their cells as they were before `plain`.

    Spreadsheets write commas, semicolons or tabs between cells, and a byte order mark or none.
    """
    check_regular(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        header = text.partition("\n")[0]
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count))
        if absent := [name for name in columns if name not in (reader.fieldnames or ())]:
            raise MedtasksError(f"columns are missing: {', '.join(absent)}", where=path, remedy=remedy)
        for number, row in enumerate(reader, start=2):
            yield number, {name: as_written(cell or "") for name, cell in row.items() if name is not None}
    except (FileNotFoundError, UnicodeDecodeError, csv.Error) as error:
        missing, kind = isinstance(error, FileNotFoundError), type(error).__name__
        what = "no such file" if missing else f"not a CSV file in UTF-8 ({kind})"
        raise MedtasksError(what, where=path, remedy=remedy) from None


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def csv_lines(table: pa.Table) -> list[str]:
    """The header first; numbers as Python writes them, 1.0 and not 1, so that readers guess their types."""
    import pyarrow as pa

    columns = [column.cast(pa.string()) if column.type == pa.bool_() else column for column in table.columns]
    lines: list[str] = []
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*map(_cells, columns), strict=True))
    return lines


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """A text that stands in many rows is looked at once."""
    import pyarrow as pa

    if pa.types.is_list(column.type):
        return [plain(";".join(map(str, values or ()))) for values in column.to_pylist()]
    if column.type != pa.string():
        return list(column.to_pylist())
    shown = {word: plain(word) for word in column.unique().to_pylist()}
    return [shown[word] for word in column.to_pylist()]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    """Nothing where there are neither records nor columns."""
    names = list(columns or (rows[0] if rows else ()))
    text = csv_text([names, *([row.get(name) for name in names] for row in rows)]) if names else ""
    write_text(path, text)


def cell(text: object) -> str:
    """On one line, and a bar in it divides nothing."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    def line(cells: Iterable[object]) -> str:
        return f"| {' | '.join(map(cell, cells))} |"

    return [line(head), "|" + " --- |" * len(head), *map(line, rows)]
