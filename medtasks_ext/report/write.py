"""The files of a report: tables for programs, a page for people."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from medtasks_ext import __version__
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.report.page import render
from medtasks_ext.report.tidy import csv_lines, groups_table, results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pyarrow as pa

    from medtasks_ext.report.gather import Report

MARK = "medtasks-report.json"
FILES = ("results.csv", "results.parquet", "groups.csv", "groups.parquet", "report.html")


def check_folder(folder: Path) -> None:
    """Refuse a place where a report would overwrite what is not its own.

    Raises:
        MedtasksError: it is a file, cannot be made, or holds such files of another origin.
    """
    remedy = "give another folder to -o"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "is a file" if folder.is_file() else f"cannot be made ({error.strerror})"
        raise MedtasksError(what, where=folder, remedy=remedy) from None
    foreign = [name for name in FILES if (folder / name).exists()]
    if foreign and not (folder / MARK).is_file():
        raise MedtasksError(f"holds {foreign[0]}, which no report wrote", where=folder, remedy=remedy)
    if not os.access(folder, os.W_OK):
        raise MedtasksError("cannot be written to", where=folder, remedy=remedy)


def write_report(folder: Path, report: Report, data: dict[str, Any]) -> list[Path]:
    """Write the files; those of an earlier report stay until all new ones are complete.

    Args:
        folder: for them, as `check_folder` accepts it.
        report: for the tables.
        data: of the page.
    """
    every, groups = results(report), groups_table(report)
    made: dict[str, Callable[[Path], object]] = {
        "results.csv": lambda path: _lines(every.lines(), path),
        "results.parquet": lambda path: _parquet(every.table(), path),
        "groups.csv": lambda path: _lines(csv_lines(groups), path),
        "groups.parquet": lambda path: _parquet(groups, path),
        "report.html": lambda path: path.write_text(render(data), encoding="utf-8", errors="replace"),
    }
    parts = {folder / f"{name}.part": folder / name for name in FILES}
    try:
        for part, path in parts.items():
            made[path.name](part)
        write_json(
            folder / MARK, {"schema": 1, "medtasks": __version__, "made": data["made"], "files": FILES}
        )
        for part, path in parts.items():
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return list(parts.values())


def _parquet(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path, compression="zstd")


def _lines(lines: Iterable[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
