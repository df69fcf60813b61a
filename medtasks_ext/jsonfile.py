"""JSON files and lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.secret_values import Secrets


def json_bytes(content: Any, indent: int | None = None) -> bytes:
    """JSON of any content, any string included.

    Half of a surrogate pair, which servers and broken texts hold, has no UTF-8; it becomes the escape
    that JSON has for it.
    """
    text = json.dumps(content, ensure_ascii=False, indent=indent, default=str)
    return text.encode("utf-8", errors="backslashreplace")


def write_json(path: Path, content: Any) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    with atomic_file(path) as file:
        file.write(Secrets.known().hidden(json_bytes(content, indent=1)))


def read_json(path: Path) -> Any:
    """Read a file that `write_json` wrote.

    Raises:
        MedtasksError: it is missing or was damaged.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="name the folder of a run") from None
    except (ValueError, RecursionError) as error:
        raise MedtasksError(f"damaged ({error})", where=path, remedy="restore the file") from None


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
