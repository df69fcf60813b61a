"""Reading row files: JSON, JSON lines, CSV, Excel, Parquet, Feather, XML, Word; errors name file and row.

Cells of CSV texts, with any separator, and of Excel workbooks are texts.
"""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Collection, Iterable
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.rows.row import Row

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook as Workbook

csv.field_size_limit(1 << 30)  # clinical notes outgrow the default of 128 KiB

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
#: Encodings in which people have tables; rarer ones fit the same bytes, too. Hardly any text shows whether it
#: is cp1250 or cp1252, so both are named.
_ENCODINGS = ["cp1252", "cp1251", "koi8_r", "gb18030", "big5", "cp932", "euc_jp", "euc_kr"]
_TITLES = 20  # lines above a header, at most
_RAGGED = "has more cells than the header"
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
            + (f"; it seems to be {seems}" if seems else ""),
            where=where,
            remedy=f"name the encoding to `medtasks data import` or `new`: --encoding {seems or 'NAME'}"
            + (", or cp1250 (Polish, Czech, Slovak, Hungarian, Croatian)" if seems == "cp1252" else ""),
        ) from None


def _seems(content: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(content, cp_isolation=_ENCODINGS).best()
    return best.encoding if best and best.encoding in _ENCODINGS else ""


def csv_records(
    text: str, where: str, names: Collection[str] = (), separator: str | None = None
) -> tuple[list[list[str]], str]:
    """All records of a CSV text, titles above the header among them, and what separates their cells.

    `names` that the header may have, in small letters: what cuts one of the first lines into most of them, or
    else the first one into most columns, separates the cells, unless the first line says it (`sep=;`). Line
    ends within cells are line feeds.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    first, _, rest = text.partition("\n")
    if separator is None and first.lower().startswith("sep=") and len(first) == len("sep=;"):
        separator, text = first[-1], rest
    lines = text.split("\n", _TITLES)[:_TITLES]

    def found(mark: str) -> tuple[int, int]:
        cut = [[cell.strip().casefold() for cell in cells] for cells in csv.reader(lines, delimiter=mark)]
        return max((sum(cell in names for cell in cells) for cells in cut), default=0), len(cut[0])

    separator = separator or max(_SEPARATORS, key=found)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return list(reader), separator
    except csv.Error as error:
        what = f"is no CSV text (line {reader.line_num}: {error})"
        raise MedtasksError(what, where=where, remedy="export it again, as UTF-8") from None


class Table(NamedTuple):
    """One table of a file, its records by their number, from 1."""

    header: list[str]  # names of the columns
    rows: list[tuple[int, Row]]  # below the header
    left_out: dict[str, list[int]]  # reason -> records that are no rows


def table_of(
    records: list[list[str]],
    where: str,
    names: Collection[str] = (),
    separator: str = "",
    *,
    skip_ragged: bool = False,
) -> Table:
    """The rows below the first record that has most of the names, in small letters, or else any cell.

    MedtasksError: two columns have one name; records have more cells than the header, unless these are left
    out. Columns without a name are, if nothing stands in them.
    """
    scores = [sum(cell.strip().casefold() in names for cell in record) for record in records[:_TITLES]]
    first = next((place for place, record in enumerate(records) if any(record)), 0)
    at = scores.index(max(scores)) if any(scores) else first
    header = [cell.strip() for cell in records[at]] if records else []
    named = [name for name in header if name]
    if repeated := [name for name in named if named.count(name) > 1]:
        places = " and ".join(str(at) for at, name in enumerate(header, start=1) if name == repeated[0])
        what = f"two columns have one name (columns {places})"
        raise MedtasksError(what, where=where, remedy="name each column once")
    left_out: dict[str, list[int]] = {}
    rows: list[tuple[int, Row]] = []
    for number, cells in enumerate(records, start=1):
        why = ""
        if not any(cell.strip() for cell in cells):
            why = "is empty"
        elif number <= at:
            why = "stands above the header"
        elif len(named) > 1 and number > at + 1 and [cell.strip() for cell in cells] == header:
            why = "is the header again"
        elif any(cell and not name for name, cell in zip_longest(header, cells, fillvalue="")):
            why = _RAGGED
        if why:
            left_out.setdefault(why, []).append(number)
        elif number > at + 1:
            cut = zip(header, cells, strict=False)
            row = dict.fromkeys(named) | {name: cell for name, cell in cut if name}
            rows.append((number, row))
    if (ragged := left_out.get(_RAGGED)) and not skip_ragged:
        what = (
            f"{len(ragged)} of {len(records)} records have more cells than the header (record {some(ragged)})"
        )
        quoted = f"quote cells that hold {_SEPARATORS.get(separator, 'the separator')}"
        remedy = f"{quoted}, or leave these records out: `medtasks data import --skip-ragged`"
        raise MedtasksError(what, where=where, remedy=remedy)
    return Table(header, rows, left_out)


def workbook(content: bytes, where: str, remedy: str = "save it as .xlsx or .csv, unencrypted") -> Workbook:
    import python_calamine

    try:
        return python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
    except Exception:  # the library has an error for each format, and Rust's panics besides
        raise MedtasksError("is no Excel workbook that can be read", where=where, remedy=remedy) from None


def sheets_of(content: bytes, where: str) -> dict[str, list[list[str]]]:
    """The records of each sheet of a workbook that holds something, by the sheet's name."""
    book = workbook(content, where)
    sheets = {
        name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in book.sheet_names
    }
    return {
        name: [[_cell(value) for value in record] for record in records]
        for name, records in sheets.items()
        if records
    }


def _cell(value: Any) -> str:
    """A cell as a CSV export writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".xlsx", ".xls", ".parquet", ".feather", ".docx", ".xml")
_SHOWN = 5  # lines that a message names
#: Limits of an archive: what is made to fill a disk is refused.
_MEMBERS, _BYTES, _RATIO = 500_000, 16 << 30, 1000
_SMALL = 1 << 20  # bytes of a member whose ratio says nothing


def read_rows(path: Path, member: str | None = None) -> list[Row]:
    """All rows of a file, or of one member of a zip archive.

    A JSON object of objects is keyed by row id (column `id`); any other is one row, as is a Word file, its
    `paragraphs`. A `member` with an asterisk names text files: each is a row of `file` and `text`. `.txt` is
    read as JSON lines, which is how some authors distribute them.
    """
    where = f"{path}!{member}" if member else str(path)
    check_regular(path)
    try:
        if member:
            with open_archive(path) as archive:
                rows = _of_archive(archive, path, member)
        else:
            rows = parse_rows(path.read_bytes(), path.suffix, where)
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        raise MedtasksError(what, where=where, remedy="check path and permissions") from None
    if not rows:
        raise MedtasksError("holds no rows", where=where, remedy="put the complete file there")
    return rows


def _of_archive(archive: zipfile.ZipFile, path: Path, member: str) -> list[Row]:
    if "*" in member:
        names = sorted(name for name in archive.namelist() if PurePosixPath(name).match(member))
        return [
            {"file": PurePosixPath(name).name, "text": decoded(archive.read(name), f"{path}!{name}")}
            for name in names
        ]
    for name in archive.namelist():
        if Path(name).name == member:
            return parse_rows(archive.read(name), Path(member).suffix, f"{path}!{member}")
    raise MedtasksError(f"has no member {member}", where=path, remedy="check the name in the task's YAML")


def parse_rows(content: bytes, suffix: str, where: str) -> list[Row]:
    """The rows in the content of a file named with that suffix; `where` is its place for messages."""
    suffix = suffix.lower()
    if suffix in (".xlsx", ".xls"):
        sheets = sheets_of(content, where)
        if len(sheets) > 1:
            what, remedy = f"{len(sheets)} sheets hold cells", "keep only the sheet with the rows"
            raise MedtasksError(what, where=where, remedy=remedy)
        return [row for _, row in table_of(next(iter(sheets.values()), []), where).rows]
    if suffix in (".parquet", ".feather"):
        return _columnar(content, suffix, where)
    if suffix == ".docx":
        return [{"paragraphs": paragraphs(content, where)}]
    if suffix == ".xml":
        return element_rows(content, where)
    if suffix == ".json":
        return _json(content, where)
    text = decoded(content, where)
    if suffix in (".csv", ".tsv"):
        records, separator = csv_records(text, where, separator="\t" if suffix == ".tsv" else None)
        return [row for _, row in table_of(records, where, separator=separator).rows]
    return _jsonl(text.split("\n"), where)


def _columnar(content: bytes, suffix: str, where: str) -> list[Row]:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if suffix == ".parquet" else pyarrow.feather.read_table
    try:
        rows: list[Row] = read(pa.BufferReader(content)).to_pylist()
        return rows
    except pa.ArrowInvalid as error:
        kind = suffix[1:].title()
        raise MedtasksError(f"not a {kind} file ({error})", where=where, remedy="download it again") from None


def _json(content: bytes, where: str) -> list[Row]:
    try:
        try:
            data = parse_json(content)
        except JsonError:
            data = parse_json(decoded(content, where))
    except JsonError as error:
        if error.extra:  # hub files named .json often hold one object per line
            lines = decoded(content, where).split("\n")  # JSON strings may hold other line separators
            return _jsonl(lines, where)
        what = f"not valid JSON ({error}, line {error.line})" if error.line else f"cannot be read: {error}"
        raise MedtasksError(what, where=where, remedy="mend or download it again") from None
    if isinstance(data, list) and data and all(map(_is_list_of_objects, data)):
        # dialogues that are lists of their parts, which keep the number of theirs
        data = [{"_list": number, **row} for number, item in enumerate(data, start=1) for row in item]
    if isinstance(data, dict):
        keyed = all(isinstance(row, dict) for row in data.values())
        data = [{"id": key, **row} for key, row in data.items()] if keyed else [data]
    if not _is_list_of_objects(data):
        raise MedtasksError("expected a list of objects", where=where, remedy="write one object per row")
    return data


def _is_list_of_objects(data: Any) -> TypeGuard[list[Row]]:
    return isinstance(data, list) and all(isinstance(item, dict) for item in data)


def _jsonl(lines: Iterable[str], where: str) -> list[Row]:
    rows: list[Row] = []
    names: dict[str, str] = {}  # of columns: one text for all rows, which are many
    faults: dict[str, list[int]] = {}  # what is wrong -> the lines that are so
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except JsonError as error:
            why = "ends in a comma" if line.rstrip().endswith(",") else f"is not valid JSON ({error})"
            faults.setdefault(why, []).append(number)
            continue
        if isinstance(row, dict):
            rows.append({names.setdefault(name, name): value for name, value in row.items()})
        else:
            faults.setdefault("is not an object", []).append(number)
    if not faults:
        return rows
    why, same = next(iter(faults.items()))
    what = f"line {same[0]} {why}"
    if len(same) > 1:
        shown = ", ".join(map(str, same[:_SHOWN])) + (", …" if len(same) > _SHOWN else "")
        what = f"{len(same):,} lines ({shown}) {why.replace('is no', 'are no', 1).replace('ends', 'end', 1)}"
    if n_others := sum(map(len, faults.values())) - len(same):
        what += f"; {n_others:,} other lines are not valid, either"
    remedy = "write one object per line" + (", without commas between them" if "comma" in why else "")
    raise MedtasksError(what, where=where, remedy=remedy)


def paragraphs(content: bytes, where: str) -> list[Row]:
    """The paragraphs of the body of a .docx file, those of tables aside, in order.

    Each has its `text`, and as `colours` the distinct hexadecimal RGB values that runs of it are given
    directly (`FF0000`), not those of styles and themes.
    """
    from docx import Document

    try:
        paragraphs_read = Document(io.BytesIO(content)).paragraphs
    except Exception:  # python-docx has no error for damaged files: a part that is missing is a KeyError
        raise MedtasksError("is not a Word (.docx) file", where=where, remedy="download it again") from None
    runs = ([run.font.color.rgb for run in item.runs] for item in paragraphs_read)
    coloured = [list(dict.fromkeys(str(rgb) for rgb in given if rgb is not None)) for given in runs]
    return [{"text": item.text, "colours": cs} for item, cs in zip(paragraphs_read, coloured, strict=True)]


def blocks(lines: Iterable[Row], pattern: str) -> list[Row]:
    """Paragraphs in blocks, each beginning with one whose text matches the pattern there, the `head`.

    The others' texts are the `body`, a line each, with their `colours`; what precedes the first is left out.
    """
    begins, parts = re.compile(pattern), list[tuple[str, list[str], list[str]]]()
    for paragraph in lines:
        text = paragraph["text"].strip()
        if begins.match(text):
            parts.append((text, [], []))
        elif parts:
            parts[-1][1].append(text)
            parts[-1][2].extend(paragraph["colours"])
    return [
        {"head": head, "body": "\n".join(body).strip(), "colours": list(dict.fromkeys(colours))}
        for head, body, colours in parts
    ]


def element_rows(content: bytes, where: str) -> list[Row]:
    """A row per child of the root: its attributes, and its children by name, as texts or lists of rows."""
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise MedtasksError(f"is not valid XML ({error})", where=where, remedy="download it again") from None
    return [_fields(element) for element in root]


def _fields(element: ElementTree.Element) -> Row:
    fields: Row = dict(element.attrib)
    for child in element:
        if len(child) or child.attrib:
            fields.setdefault(child.tag, []).append(_fields(child))
        else:
            fields[child.tag] = (child.text or "").strip()
    return fields


def open_archive(path: Path) -> zipfile.ZipFile:
    """The archive, its members counted and measured by what its directory says.

    A member that unpacks to more than the directory says is an error when it is read.
    """
    check_regular(path)
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise MedtasksError("is not a zip archive", where=path, remedy="download it again") from None
    members, why = archive.infolist(), ""
    if len(members) > _MEMBERS:
        why = f"{len(members):,} members, more than {_MEMBERS:,}"
    elif (size := sum(item.file_size for item in members)) > _BYTES:
        why = f"{size / 1e9:,.0f} GB unpacked, more than {_BYTES / 1e9:,.0f}"
    elif any(item.file_size > max(_SMALL, _RATIO * item.compress_size) for item in members):
        why = f"a member that unpacks to more than {_RATIO:,} times its size"
    if why:
        archive.close()
        remedy = "get it from its owner again"
        raise MedtasksError(f"is no archive of a source: {why}", where=path, remedy=remedy)
    return archive
