"""The tables of a file that a hospital exported: headers below titles, several sheets, text encoded twice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medtasks_ext.rows.cells import csv_records, decoded, sheets_of, table_rows
from medtasks_ext.rows.files import parse_rows
from medtasks_ext.rows.row import Row

#: Records among which the header is looked for.
_TITLES = 20
#: A character of two or more bytes in UTF-8 whose bytes were read one by one: `Ã¤` for `ä`.
_TWICE = re.compile("[Ã-ô][\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]")


@dataclass(frozen=True)
class PlacedRow:
    """A row of the file, and the record that it is, for messages."""

    number: int  # record of the file or sheet, the first one is 1
    sheet: str  # empty where there is one table
    cells: Row

    @property
    def place(self) -> str:
        return f"{self.sheet}:{self.number}" if self.sheet else str(self.number)


@dataclass
class Table:
    """One table of a file."""

    sheet: str  # its name; empty where the file has no sheets
    header: list[str]  # names of the columns
    rows: list[PlacedRow]  # below the header
    left_out: dict[str, list[str]] = field(default_factory=dict)  # reason -> records that are no rows
    n_mended: int = 0  # cells whose text was encoded twice, and is read as it was meant

    def leave(self, number: int, why: str) -> None:
        self.left_out.setdefault(why, []).append(PlacedRow(number, self.sheet, {}).place)


def tables_of(file: Path, content: bytes, wanted: Collection[str]) -> list[Table]:
    """The tables of a file; `wanted` names of columns tell the header from titles above it."""
    suffix, where = file.suffix.lower(), str(file)
    if suffix in (".xlsx", ".xls"):
        sheets = sheets_of(content, where)
        named = {"" if len(sheets) == 1 else name: records for name, records in sheets.items()}
        return [_table(name, records, wanted, where) for name, records in named.items()]
    if suffix in (".csv", ".tsv"):
        names = {name.strip().casefold() for name in wanted}
        return [_table("", csv_records(decoded(content, where), where, names), wanted, where)]
    rows = parse_rows(content, suffix, where)
    table = Table("", list(rows[0]) if rows else [], [])
    for number, row in enumerate(rows, start=1):
        table.rows.append(PlacedRow(number, "", {name: _mended(cell, table) for name, cell in row.items()}))
    return [table]


def _table(sheet: str, records: Sequence[Sequence[str]], wanted: Collection[str], where: str) -> Table:
    """The rows of records whose header is the one of the first that has most of the wanted names."""
    known = {name.strip().casefold() for name in wanted}
    while records and not any(records[-1]):  # sheets end in empty records, which are nobody's rows
        records = records[:-1]
    scores = [
        len(known & {_mend(cell).strip().casefold() for cell in record}) for record in records[:_TITLES]
    ]
    at = scores.index(max(scores)) if any(scores) else _first(records)
    table = Table(sheet, [_mend(cell).strip() for cell in records[at]] if records else [], [])
    for number, record in enumerate(records[:at], start=1):
        table.leave(number, "stands above the header" if any(record) else "is empty")
    taken: list[tuple[int, list[str]]] = []
    for number, record in enumerate(records[at + 1 :], start=at + 2):
        cells = [str(_mended(cell, table)) for cell in record]
        if not any(cell.strip() for cell in cells):
            table.leave(number, "is empty")
        elif [cell.strip() for cell in cells] == table.header:
            table.leave(number, "is the header again")
        else:
            taken.append((number, cells))
    rows = table_rows([table.header, *(cells for _, cells in taken)], where)
    table.rows = [PlacedRow(number, sheet, row) for (number, _), row in zip(taken, rows, strict=True)]
    return table


def _first(records: Sequence[Sequence[str]]) -> int:
    return next((place for place, record in enumerate(records) if any(record)), 0)


def _mended(cell: object, table: Table) -> object:
    if not isinstance(cell, str) or (meant := _mend(cell)) == cell:
        return cell
    table.n_mended += 1
    return meant


def _mend(text: str) -> str:
    """The text as it was meant, where all of it is UTF-8 whose bytes were read as characters of cp1252."""
    if not _TWICE.search(text):
        return text
    try:
        meant = b"".join(_bytes_of(text)).decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return text
    return _mend(meant)


def _bytes_of(text: str) -> Iterator[bytes]:
    for character in text:
        try:
            yield character.encode("cp1252")
        except UnicodeEncodeError:
            yield character.encode("latin-1")  # five bytes are no character of cp1252


def ranges(places: Sequence[str]) -> str:
    """Numbers in words: `3, 7-9`; those of a sheet behind its name."""
    by_sheet: dict[str, list[int]] = {}
    for place in places:
        sheet, _, number = place.rpartition(":")
        by_sheet.setdefault(sheet, []).append(int(number))
    return "; ".join(
        (f"{sheet} " if sheet else "") + ", ".join(_runs(sorted(numbers)))
        for sheet, numbers in by_sheet.items()
    )


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    start = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield str(start) if start == last else f"{start}-{last}"
        if number is not None:
            start = last = number


def joined(tables: Sequence[Table]) -> dict[str, list[str]]:
    """Reason -> records that were left out, of all tables."""
    found: dict[str, list[str]] = {}
    for table in tables:
        for why, places in table.left_out.items():
            found.setdefault(why, []).extend(places)
    return found
