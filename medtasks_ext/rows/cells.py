"""Tables of cells with a header: CSV with any separator, and Excel workbooks. All cells are texts."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json

csv.field_size_limit(1 << 30)  # clinical notes outgrow the default of 128 KiB

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
#: Encodings in which people have tables, and what they are used for; rarer ones fit the same bytes,
#: too. cp1250 is not guessed: hardly any text shows whether it is cp1250 or cp1252, so both are named.
_ENCODINGS = {
    "cp1252": "letters of Western Europe) or cp1250 (Polish, Czech, Slovak, Hungarian, Croatian",
    "cp1251": "Cyrillic letters",
    "koi8_r": "Cyrillic letters",
    "gb18030": "Chinese",
    "big5": "Chinese, traditional characters",
    "cp932": "Japanese",
    "euc_jp": "Japanese",
    "euc_kr": "Korean",
}
_TITLES = 20  # lines above a header, at most
_GUESSED = 1 << 16  # bytes around a place that is not UTF-8 by which its encoding is guessed


def decoded(content: bytes, where: str) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte-order mark; else MedtasksError with what it seems."""
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        seems = _seems(content[max(0, error.start - _GUESSED) : error.start + _GUESSED])
        raise MedtasksError(
            f"not UTF-8 text (line {line}, byte {error.start})"
            + (f"; it seems to be {seems} ({_ENCODINGS[seems]})" if seems else ""),
            where=where,
            remedy=f"convert it: medtasks data import FILE --task TASK --encoding {seems or 'NAME'}"
            + (", or cp1250 for those languages" if seems == "cp1252" else ""),
        ) from None


def _seems(content: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(content, cp_isolation=list(_ENCODINGS)).best()
    return best.encoding if best and best.encoding in _ENCODINGS else ""


def csv_rows(text: str, where: str, separator: str | None = None) -> list[Json]:
    """The rows of a CSV text; MedtasksError: more cells than the header, or two columns of one name.

    Cells are separated by commas, semicolons, tabs or bars: by what the first line says (`sep=;`) or by what
    cuts the header into most columns. Line ends within cells are line feeds. Empty records and empty columns
    without a name are left out, as some files end in them.
    """
    text, separator = _separated(text, separator)
    remedy = f"quote cells that hold {_SEPARATORS.get(separator, 'the separator')}"
    records = list(_csv_records(text, where, separator))
    _check_separators(records, separator, where)
    return table_rows(records, where, remedy)


def _check_separators(records: Sequence[Sequence[str]], separator: str, where: str) -> None:
    """Refuse a header that is cut by another character than all records are."""
    others = [cells for cells in records[1:] if any(cells)]
    n = len(records[0]) if records else 0
    if n < 2 or not others or any(any(cells[1:]) for cells in others):
        return
    for mark, name in _SEPARATORS.items():
        if mark != separator and all(cells[0].count(mark) >= n - 1 for cells in others):
            what = f"{_SEPARATORS.get(separator, 'other marks')} part the header, and {name} the records"
            raise MedtasksError(what, where=where, remedy="write one separator in all lines")


def csv_records(text: str, where: str, names: Collection[str]) -> list[list[str]]:
    """All records of a CSV text, titles above the header among them.

    `names` that the header may have, in small letters: what separates them separates the cells.
    """
    text, separator = _separated(text, None, names)
    return list(_csv_records(text, where, separator))


def _csv_records(text: str, where: str, separator: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        yield from reader
    except csv.Error as error:
        what = f"is no CSV text (line {reader.line_num}: {error})"
        raise MedtasksError(what, where=where, remedy="export it again, as UTF-8") from None


def _separated(text: str, separator: str | None, names: Collection[str] = ()) -> tuple[str, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    first, _, rest = text.partition("\n")
    if separator is None and first.lower().startswith("sep=") and len(first) == len("sep=;"):
        separator, text = first[-1], rest
    return text, separator or _separator(text.split("\n", _TITLES)[:_TITLES], names)


def table_rows(
    records: Iterable[list[str]], where: str, remedy: str = "give every cell a column"
) -> list[Json]:
    """Rows by the names in the first record. Raises as `csv_rows`."""
    records = iter(records)
    header = [name.strip() for name in next(records, [])]
    named = [name for name in header if name]
    if repeated := [name for name in named if named.count(name) > 1]:
        what = f"two columns have one name (columns {_places(header, repeated[0])})"
        raise MedtasksError(what, where=where, remedy="name each column once")
    width = len(header)
    rows: list[Json] = []
    for number, cells in enumerate(records, start=1):
        if not any(cells):
            continue
        if len(named) > 1 and [cell.strip() for cell in cells] == header:
            raise MedtasksError(
                f"row {number} is the header again",
                where=where,
                remedy="take it out; where two tables were joined, see that each row is there once",
            )
        for place in range(len(cells)):
            if cells[place] and (place >= width or not header[place]):
                what = f"row {number} has more cells than the header ({place + 1} instead of {len(named)})"
                raise MedtasksError(what, where=where, remedy=remedy)
        row: Json = dict.fromkeys(named)
        row.update((name, cell) for name, cell in zip(header, cells, strict=False) if name)
        rows.append(row)
    return rows


def _places(header: list[str], name: str) -> str:
    return " and ".join(str(place) for place, item in enumerate(header, start=1) if item == name)


def _separator(lines: Sequence[str], names: Collection[str]) -> str:
    """What cuts one of the lines into most names, or else the first one into most columns; or the comma."""

    def found(separator: str) -> tuple[int, int]:
        records = [
            [cell.strip().casefold() for cell in one] for one in csv.reader(lines, delimiter=separator)
        ]
        named = max((sum(cell in names for cell in record) for record in records), default=0)
        return named, len(records[0]) if records else 0

    return max(_SEPARATORS, key=found)


def sheet_rows(content: bytes, where: str) -> list[Json]:
    """The rows of a workbook's one sheet that holds something; MedtasksError of several such sheets."""
    sheets = sheets_of(content, where)
    if len(sheets) > 1:
        raise MedtasksError(
            f"{len(sheets)} sheets hold cells", where=where, remedy="keep the sheet with the rows alone"
        )
    return table_rows(next(iter(sheets.values()), []), where)


def sheets_of(content: bytes, where: str) -> dict[str, list[list[str]]]:
    """The records of each sheet of a workbook that holds something, by the sheet's name."""
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = {
            name: sheet
            for name in book.sheet_names
            if (sheet := book.get_sheet_by_name(name).to_python(skip_empty_area=False))
        }
    except Exception:  # the library has an error for each format, and Rust's panics besides
        what = "is no Excel workbook that can be read"
        raise MedtasksError(what, where=where, remedy="save it as .xlsx or .csv, unencrypted") from None
    return {name: [[_cell(value) for value in record] for record in sheet] for name, sheet in sheets.items()}


def _cell(value: Any) -> str:
    """A cell as a CSV export writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)
