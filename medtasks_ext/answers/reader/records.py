"""Records of named fields: lines and tables, their fields looked up by name, in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_RULE = re.compile(r"[\s|:+-]+")
_MARKS = " \t*`\"'_"
_AROUND = f"{_MARKS},;、|"

#: field -> its value
Record = dict[str, str]


def records_of(text: str, fields: Sequence[str]) -> list[Record]:
    """The records of a text that have the first field; fields that one does not name are missing.

    Args:
        text: in small letters.
        fields: their names in small letters.
    """
    found = list(_rows(text, fields)) if "|" in text else []
    return [record for record in found or _pairs(text, fields) if record.get(fields[0])]


def _rows(text: str, fields: Sequence[str]) -> Iterator[Record]:
    """Rows of tables whose heads name at least two of the fields."""
    columns: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip(_MARKS) for cell in line.strip().strip("|").split("|")]
        if sum(cell in fields for cell in cells) > 1:
            columns = cells
        elif len(cells) == len(columns) and not _RULE.fullmatch(line):
            yield dict(zip(columns, cells, strict=True))


@lru_cache(maxsize=128)
def _names(fields: tuple[str, ...]) -> re.Pattern[str]:
    """A field at the beginning of a line, whatever stands before it, or behind a mark."""
    names = "|".join(map(re.escape, sorted(fields, key=len, reverse=True)))
    return re.compile(rf"(?:^(?:.*?\b)??|([,;、|])[\s*`]*(?:(?:and|和)[ ]+)?)({names})[\s*`\"]*:")


def _pairs(text: str, fields: Sequence[str]) -> Iterator[Record]:
    """Records of `field: value` pairs, on one line or each on a line.

    A record ends with a line of several pairs, before a blank line, and where its first field comes again or,
    behind more than a comma, another of its fields; elsewhere the first of two values for one field counts.
    """
    pattern = _names(tuple(fields))
    record: Record = {}
    for line in text.split("\n"):
        _, *parts = pattern.split(line)
        if parts:  # the last semicolon closes the line
            parts[-1] = parts[-1].rpartition(";")[0] or parts[-1]
        for separator, name, value in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if name in record and (name == fields[0] or separator in (None, ";")):
                yield record
                record = {}
            record.setdefault(name, value.strip(_AROUND))
        if record and (len(parts) > 3 or not line.strip()):
            yield record
            record = {}
    yield record
