"""The files of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["RUN_SCHEMA", "numbered_lines", "read_json", "write_json"]

#: schema of `run.json` that this version writes, and the newest that it reads
RUN_SCHEMA = 1


def numbered_lines(path: Path, *, remedy: str) -> Iterator[tuple[int, str]]:
    """The lines of a JSON lines file that somebody else wrote, blank ones left out, counted from 1.

    Raises:
        MedtasksError: there is no such file (the remedy says which one is meant), or it is not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise MedtasksError("no such file", where=path, remedy=remedy) from None
    except UnicodeDecodeError:
        raise MedtasksError("not UTF-8 text", where=path, remedy="save the file as UTF-8") from None
    for number, line in enumerate(text.split("\n"), start=1):  # texts may hold other line separators
        if line.strip():
            yield number, line
