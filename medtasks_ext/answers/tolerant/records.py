"""Records of named fields that are not written as one line each: JSON, a table, or a line for each field."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from medtasks_ext.answers.tolerant.json_text import values
from medtasks_ext.answers.tolerant.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RULE = re.compile(r"[\s|:+-]+")
_MARKS = " \t*`\"'_"


def as_lines(text: str, fields: Sequence[str]) -> str:
    """The records as lines `field: value, field: value`; empty where there are none.

    Args:
        text: in small letters.
        fields: their names in small letters.
    """
    found = [*_objects(text, fields)] if "{" in text else []
    return "\n".join(found or (_rows(text, fields) if "|" in text else ()))


def _objects(text: str, fields: Sequence[str]) -> Iterator[str]:
    waiting = [found.value for found in reversed(values(text, Reply(text, 0, len(text), False)))]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            said = {str(key).strip().lower(): item for key, item in value.items()}
            if any(field in said for field in fields):
                yield _line(fields, [_text(said.get(field)) for field in fields])
            else:
                waiting.extend(reversed(value.values()))


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return "" if value is None or isinstance(value, dict) else " ".join(str(value).split())


def _rows(text: str, fields: Sequence[str]) -> Iterator[str]:
    """Rows of tables whose heads name at least two of the fields."""
    columns: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip(_MARKS) for cell in line.strip().strip("|").split("|")]
        if sum(cell in fields for cell in cells) > 1:
            columns = cells
        elif _RULE.fullmatch(line):
            continue
        elif len(cells) == len(columns):
            yield _line(columns, cells)
        else:
            columns = []


def _line(fields: Sequence[str], texts: Sequence[str]) -> str:
    return ", ".join(f"{field}: {text}" for field, text in zip(fields, texts, strict=True) if text)


@lru_cache(maxsize=128)
def _field_patterns(fields: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A field at the beginning of a line, and anywhere."""
    names = "|".join(map(re.escape, sorted(fields, key=len, reverse=True)))
    colon = r"[\s*_`\"']{0,4}:"
    begin = r"(?:[\s>*+•–—-]{0,8}|\s{0,8}(?:\d{1,3}[.)]|#+)\s{0,4})[*_`\"']{0,4}"
    return re.compile(rf"{begin}({names}){colon}"), re.compile(rf"(?:{names}){colon}")


def joined(text: str, fields: tuple[str, ...]) -> str:
    """The text with records of one line for each field put on one line.

    A record ends where one of its fields comes again. A text in which one line has two fields stays.
    """
    at_begin, anywhere = _field_patterns(fields)
    found: list[str] = []
    open_fields: set[str] = set()
    together = False
    for line in text.split("\n"):
        match = at_begin.match(line)
        if not match:
            found.append(line)
            open_fields = open_fields if not line.strip() else set()
            continue
        if anywhere.search(line, match.end()):
            return text
        if open_fields and match[1] not in open_fields:
            while not found[-1].strip():
                found.pop()
            found[-1] = f"{found[-1].rstrip(' ,;')}, {line[match.start(1) :]}"
            together = True
        else:
            found.append(line)
            open_fields = set()
        open_fields.add(match[1])
    return "\n".join(found) if together else text
