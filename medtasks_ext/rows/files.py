"""Reading row files: JSON, JSON lines, CSV, Excel, Parquet, Feather, XML, Word; errors name file and row."""

from __future__ import annotations

import codecs
import io
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict, TypeGuard

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.rows.cells import csv_rows, decoded, sheet_rows
from medtasks_ext.rows.row import Row

if TYPE_CHECKING:
    from docx.text import paragraph as word

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".xlsx", ".xls", ".parquet", ".feather", ".docx", ".xml")
_SHOWN = 5  # lines that a message names
#: Limits of an archive: what is made to fill a disk is refused.
_MEMBERS, _BYTES, _RATIO = 500_000, 16 << 30, 1000
_SMALL = 1 << 20  # bytes of a member whose ratio says nothing


def read_rows(path: Path, member: str | None = None) -> list[Row]:
    """All rows of a file, or of one member of a zip archive.

    JSON files may hold a list of rows or one object keyed by row id (the id becomes column `id`); any other
    object is one row. A Word file is one row, its paragraphs in column `paragraphs`. In XML each child of the
    root is one. A `member` with an asterisk names text files: each is a row of `file` and `text`. `.txt` is
    read as JSON lines, which is how some authors distribute them.
    """
    where = f"{path}!{member}" if member else str(path)
    check_regular(path)
    try:
        if member and "*" in member:
            rows = _texts(path, member)
        elif member:
            rows = parse_rows(_member(path, member), Path(member).suffix, where)
        elif path.suffix.lower() == ".jsonl":
            rows = _streamed(path, where)
        else:
            rows = parse_rows(path.read_bytes(), path.suffix, where)
    except OSError as error:
        raise MedtasksError(
            f"cannot be read ({error.strerror or error})", where=where, remedy="check path and permissions"
        ) from None
    if not rows:
        raise MedtasksError("holds no rows", where=where, remedy="put the complete file there")
    return rows


def _texts(path: Path, pattern: str) -> list[Row]:
    with open_archive(path) as archive:
        names = sorted(name for name in archive.namelist() if PurePosixPath(name).match(pattern))
        return [
            {"file": PurePosixPath(name).name, "text": decoded(archive.read(name), f"{path}!{name}")}
            for name in names
        ]


def _member(path: Path, name: str) -> bytes:
    with open_archive(path) as archive:
        for entry in archive.namelist():
            if Path(entry).name == name:
                return archive.read(entry)
    raise MedtasksError(f"has no member {name}", where=path, remedy="check the name in the task's YAML")


def parse_rows(content: bytes, suffix: str, where: str) -> list[Row]:
    """The rows in the content of a file named with that suffix; `where` is its place for messages."""
    suffix = suffix.lower()
    if suffix in (".xlsx", ".xls"):
        return sheet_rows(content, where)
    if suffix in (".parquet", ".feather"):
        return _columnar(content, suffix, where)
    if suffix == ".docx":
        return [{"paragraphs": paragraphs(content, where)}]
    if suffix == ".xml":
        return element_rows(content, where)
    return _parse(content, suffix, where)


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


def _parse(content: bytes, suffix: str, where: str) -> list[Row]:
    text = decoded(content, where)
    if suffix == ".csv":
        return csv_rows(text, where)
    if suffix == ".tsv":
        return csv_rows(text, where, "\t")
    if suffix == ".json":
        return _json(text, where)
    return _jsonl(text.split("\n"), where)


def _json(text: str, where: str) -> list[Row]:
    try:
        data = parse_json(text)
    except JsonError as error:
        if error.extra:  # hub files named .json often hold one object per line
            return _jsonl(text.split("\n"), where)  # JSON strings may hold other line separators
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


def _streamed(path: Path, where: str) -> list[Row]:
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return _jsonl(decoded(path.read_bytes(), where).split("\n"), where)
        file.seek(0)
        try:
            return _jsonl(
                (line.decode("utf-8-sig" if at == 0 else "utf-8") for at, line in enumerate(file)), where
            )
        except UnicodeDecodeError:
            decoded(path.read_bytes(), where)  # says where
            raise


def _jsonl(lines: Iterable[str], where: str) -> list[Row]:
    rows: list[Row] = []
    names: dict[str, str] = {}  # of columns: one text for all rows, which are many
    faults: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except JsonError as error:
            faults.append((number, _why(line, error)))
            continue
        if isinstance(row, dict):
            rows.append({names.setdefault(name, name): value for name, value in row.items()})
        else:
            faults.append((number, "is not an object"))
    if faults:
        raise _bad_lines(faults, where)
    return rows


def _why(line: str, error: JsonError) -> str:
    if line.rstrip().endswith(","):
        return "ends in a comma"
    return f"is not valid JSON ({error})"


def _bad_lines(faults: list[tuple[int, str]], where: str) -> MedtasksError:
    """One message for all lines that are no objects: the first fault, and the lines that have it."""
    why = faults[0][1]
    same = [number for number, other in faults if other == why]
    shown = ", ".join(map(str, same[:_SHOWN])) + (", …" if len(same) > _SHOWN else "")
    lines = f"line {same[0]}" if len(same) == 1 else f"{len(same):,} lines ({shown})"
    verb = why if len(same) == 1 else why.replace("is no", "are no", 1).replace("ends", "end", 1)
    rest = (
        f"; {len(faults) - len(same):,} other lines are not valid, either" if len(same) < len(faults) else ""
    )
    remedy = "write one object per line" + (", without commas between them" if "comma" in why else "")
    return MedtasksError(f"{lines} {verb}{rest}", where=where, remedy=remedy)


class Paragraph(TypedDict):
    text: str
    #: the distinct hexadecimal RGB values that runs of text are given directly (`FF0000`), not those of
    #: styles and themes
    colours: list[str]


class Block(TypedDict):
    head: str  # the stripped first one
    body: str  # the stripped others, on a line each
    colours: list[str]  # of the others


def paragraphs(content: bytes, where: str) -> list[Paragraph]:
    """The paragraphs of the body of a .docx file, those of tables aside, in order."""
    from docx import Document

    try:
        paragraphs_read = Document(io.BytesIO(content)).paragraphs
    except Exception:  # python-docx has no error for damaged files: a part that is missing is a KeyError
        raise MedtasksError("is not a Word (.docx) file", where=where, remedy="download it again") from None
    return [Paragraph(text=item.text, colours=_colours(item)) for item in paragraphs_read]


def blocks(lines: Iterable[Paragraph], pattern: str) -> list[Block]:
    """Paragraphs in blocks, each beginning with a paragraph whose stripped text matches the pattern there.

    What precedes the first block is left out.
    """
    begins, parts = re.compile(pattern), list[tuple[str, list[str], list[str]]]()
    for paragraph in lines:
        text = paragraph["text"].strip()
        if begins.match(text):
            parts.append((text, [], []))
        elif parts:
            _, body, colours = parts[-1]
            body.append(text)
            colours += [item for item in paragraph["colours"] if item not in colours]
    return [Block(head=head, body="\n".join(body).strip(), colours=colours) for head, body, colours in parts]


def _colours(paragraph: word.Paragraph) -> list[str]:
    given = [str(run.font.color.rgb) for run in paragraph.runs if run.font.color.rgb is not None]
    return list(dict.fromkeys(given))


def element_rows(content: bytes, where: str) -> list[Row]:
    """A row per child of the root: its attributes, and its children by name.

    A child without attributes and children of its own is its text; others are lists of such dictionaries,
    also where there is only one.
    """
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
    members = archive.infolist()
    large = [item for item in members if item.file_size > max(_SMALL, _RATIO * item.compress_size)]
    why = ""
    if len(members) > _MEMBERS:
        why = f"{len(members):,} members, more than {_MEMBERS:,}"
    elif (size := sum(item.file_size for item in members)) > _BYTES:
        why = f"{size / 1e9:,.0f} GB unpacked, more than {_BYTES / 1e9:,.0f}"
    elif large:
        why = f"a member that unpacks to more than {_RATIO:,} times its size"
    if why:
        archive.close()
        raise MedtasksError(
            f"is no archive of a source: {why}", where=path, remedy="get it from its owner again"
        )
    return archive
