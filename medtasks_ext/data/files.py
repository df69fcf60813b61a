"""Reading row files: JSON, JSON lines, CSV, Parquet and Feather, with errors that name file and row."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from medtasks_ext.errors import MedtasksError

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet", ".feather")
Row = dict[str, Any]

csv.field_size_limit(1 << 30)  # clinical notes outgrow the default of 128 KiB


def read_rows(path: Path, member: str | None = None) -> list[Row]:
    """All rows of a file, or of one member of a zip archive.

    JSON files may hold a list of rows or one object keyed by row id (the id becomes column `id`).
    `.txt` is read as JSON lines, which is how some authors distribute them.

    Raises:
        MedtasksError: the file is missing, unreadable, malformed or empty.
    """
    where = f"{path}!{member}" if member else str(path)
    try:
        if member:
            rows = _parse(_member(path, member), Path(member).suffix, where)
        elif path.suffix in (".parquet", ".feather"):
            rows = _columnar(path)
        else:
            rows = _parse(path.read_bytes(), path.suffix, where)
    except OSError as error:
        raise MedtasksError(
            f"cannot be read ({error.strerror or error})", where=where, remedy="check path and permissions"
        ) from None
    if not rows:
        raise MedtasksError("holds no rows", where=where, remedy="put the complete file there")
    return rows


def _member(path: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if Path(entry).name == name:
                    return archive.read(entry)
    except zipfile.BadZipFile:
        raise MedtasksError("is not a zip archive", where=path, remedy="download it again") from None
    raise MedtasksError(f"has no member {name}", where=path, remedy="check the name in the task's YAML")


def _columnar(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.feather.read_table
    try:
        return read(path).to_pylist()
    except pa.ArrowInvalid as error:
        kind = path.suffix[1:].title()
        raise MedtasksError(f"not a {kind} file ({error})", where=path, remedy="download it again") from None


def _parse(content: bytes, suffix: str, where: str) -> list[Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MedtasksError(
            f"not UTF-8 text (byte {error.start})", where=where, remedy="save the file as UTF-8"
        ) from None
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
    if isinstance(data, dict) and all(isinstance(row, dict) for row in data.values()):
        data = [{"id": key, **row} for key, row in data.items()]
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise MedtasksError("expected a list of objects", where=where, remedy="write one object per row")
    return data


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
