"""Reading row files: JSON, JSON lines, CSV, Parquet, Feather, XML and Word; errors name file and row."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.docx import paragraphs
from medtasks_ext.rows.elements import element_rows

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet", ".feather", ".docx", ".xml")
Row = dict[str, Any]

csv.field_size_limit(1 << 30)  # clinical notes outgrow the default of 128 KiB


def read_rows(path: Path, member: str | None = None) -> list[Row]:
    """All rows of a file, or of one member of a zip archive.

    JSON files may hold a list of rows or one object keyed by row id (the id becomes column `id`); any
    other object is one row. A Word file is one row, its paragraphs in column `paragraphs`. In XML each child
    of the root is one. A `member` with an asterisk names text files: each is a row of `file` and `text`.
    `.txt` is read as JSON lines, which is how some authors distribute them.

    Raises:
        MedtasksError: the file is missing, unreadable, malformed or empty.
    """
    where = f"{path}!{member}" if member else str(path)
    try:
        if member and "*" in member:
            rows = _texts(path, member)
        elif member:
            rows = parse_rows(_member(path, member), Path(member).suffix, where)
        else:
            rows = parse_rows(path.read_bytes(), path.suffix, where)
    except OSError as error:
        raise MedtasksError(
            f"cannot be read ({error.strerror or error})", where=where, remedy="check path and permissions"
        ) from None
    if not rows:
        raise MedtasksError("holds no rows", where=where, remedy="put the complete file there")
    return rows


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise MedtasksError("is not a zip archive", where=path, remedy="download it again") from None


def _texts(path: Path, pattern: str) -> list[Row]:
    with _archive(path) as archive:
        names = sorted(name for name in archive.namelist() if PurePosixPath(name).match(pattern))
        return [
            {"file": PurePosixPath(name).name, "text": _decoded(archive.read(name), f"{path}!{name}")}
            for name in names
        ]


def _member(path: Path, name: str) -> bytes:
    with _archive(path) as archive:
        for entry in archive.namelist():
            if Path(entry).name == name:
                return archive.read(entry)
    raise MedtasksError(f"has no member {name}", where=path, remedy="check the name in the task's YAML")


def parse_rows(content: bytes, suffix: str, where: str) -> list[Row]:
    """The rows in the content of a file named with that suffix; `where` is its place for messages.

    Raises:
        MedtasksError: the content is malformed.
    """
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


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MedtasksError(
            f"not UTF-8 text (byte {error.start})", where=where, remedy="save the file as UTF-8"
        ) from None


def _parse(content: bytes, suffix: str, where: str) -> list[Row]:
    text = _decoded(content, where)
    if suffix == ".csv":
        return _csv(text, where)
    if suffix == ".json":
        return _json(text, where)
    return _jsonl(text, where)


def _csv(text: str, where: str) -> list[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = []
    for number, row in enumerate(reader, start=1):
        if None in row:
            raise MedtasksError(
                f"row {number} has more cells than the header",
                where=where,
                remedy="quote cells that hold commas",
            )
        if any(value not in (None, "") for value in row.values()):  # some official files end in empty records
            rows.append(dict(row))
    return rows


def _json(text: str, where: str) -> list[Row]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # hub files named .json often hold one object per line
            return _jsonl(text, where)
        raise MedtasksError(
            f"not valid JSON ({error.msg}, line {error.lineno})",
            where=where,
            remedy="mend or download it again",
        ) from None
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


def _jsonl(text: str, where: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):  # JSON strings may hold other line separators
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise MedtasksError(
                f"line {number} is not valid JSON ({error.msg})",
                where=where,
                remedy="write one object per line",
            ) from None
        if not isinstance(row, dict):
            raise MedtasksError(
                f"line {number} is not an object", where=where, remedy="write one object per line"
            )
        rows.append(row)
    return rows
