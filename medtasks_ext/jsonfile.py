"""JSON: texts of others within limits, files and lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import from_json, to_json

from medtasks_ext.atomic import atomic_file, check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.keys import Secrets

#: An object of JSON whose keys others say: a server, a schema, the script of a page, a reader of `--json`.
Json: TypeAlias = dict[str, Any]
#: How deep arrays and objects may stand in each other, which is pydantic's own bound; characters or bytes of
#: one text.
MAX_DEPTH, MAX_SIZE = 201, 1 << 30


class JsonError(ValueError):
    """No JSON (`line` of the fault, from 1), or beyond the limits (0); `extra`: more follows a value."""

    def __init__(self, reason: str, line: int = 0, *, extra: bool = False) -> None:
        super().__init__(reason)
        self.line, self.extra = line, extra


def _distinct(pairs: list[tuple[str, Any]]) -> Json:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise JsonError("a key occurs twice")
    return content


def _no_constant(name: str) -> Any:
    raise JsonError(f"{name} is not JSON")


def parse_json(content: str | bytes, *, strict: bool = False) -> Any:
    """Read JSON that somebody else wrote; `strict`: without doubled keys, `NaN` and `Infinity`."""
    if len(content) > MAX_SIZE:
        raise JsonError(f"more than {MAX_SIZE >> 20:,} MB")
    try:
        return _shallow(_STRICT.decode(_text(content))) if strict else _plain(content)
    except JsonError:
        raise
    except UnicodeDecodeError:
        raise JsonError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, error.lineno, extra=error.msg == "Extra data") from None
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except ValueError:
        raise JsonError("a number of thousands of digits") from None


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode("utf-8-sig")


def _plain(content: str | bytes) -> Any:
    try:
        return from_json(content)  # in a third of the time, and bytes are not held as a text, too
    except ValueError:  # what it refuses, such as half of a surrogate pair, may be sound
        return _shallow(json.loads(_text(content)))


_STRICT = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)


def _shallow(value: Any) -> Any:
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return value
    raise JsonError("nested too deeply")


def json_bytes(content: Any, indent: int | None = None) -> bytes:
    try:
        return to_json(content, indent=indent, inf_nan_mode="constants", fallback=str)
    except ValueError:  # half of a surrogate pair, which servers and broken texts hold, becomes its escape
        marks = (",", ": " if indent else ":")
        text = json.dumps(content, ensure_ascii=False, indent=indent, separators=marks, default=str)
        return text.encode("utf-8", errors="backslashreplace")


def write_json(path: Path, content: Any) -> None:
    with atomic_file(path) as file:
        file.write(Secrets.known().hidden(json_bytes(content, indent=1)))


def write_lines(path: Path, items: Iterable[Any]) -> None:
    """A reader, or a crash, sees all of them or what was there."""
    with atomic_file(path) as file:
        file.writelines(json_bytes(item) + b"\n" for item in items)


def read_json(path: Path) -> Any:
    check_regular(path)
    try:
        return parse_json(path.read_bytes())
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy="name the folder of a run") from None
    except JsonError as error:
        raise MedtasksError(f"damaged ({error})", where=path, remedy="restore the file") from None


def numbered_lines(path: Path, *, remedy: str) -> Iterator[tuple[int, str]]:
    """Blank ones left out, counted from 1; the remedy says which file is meant."""
    check_regular(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise MedtasksError("no such file", where=path, remedy=remedy) from None
    except UnicodeDecodeError:
        raise MedtasksError("not UTF-8 text", where=path, remedy="save the file as UTF-8") from None
    for number, line in enumerate(text.split("\n"), start=1):  # texts may hold other line separators
        if line.strip():
            yield number, line
