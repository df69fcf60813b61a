"""JSON as models write it: single quotes, trailing commas, full-width punctuation, fences, a cut end.

A value is what its brackets hold. It is read strictly first, then by json-repair, which forgives slips. Its
time grows faster than the text, and with nesting: what is longer or deeper than answers is not given to it.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import json_repair

from medtasks_ext.answers.reader.reply import Reply, Span
from medtasks_ext.jsonfile import JsonError, parse_json

#: characters in a reply that are repaired, nesting of them, and values that are read or tried in vain
MAX_REPAIRED, MAX_NESTED, MAX_VALUES, MAX_FALSE_STARTS = 10_000, 20, 5_000, 50

_OPENS = re.compile(r"[\[{]")
_MARK = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{}]')


class Value(NamedTuple):
    """An array or an object, and where it stands in the response."""

    value: Any
    span: Span


def values(response: str, reply: Reply) -> list[Value]:
    """All arrays and objects of a reply that are inside no other one, in their order."""
    found: list[Value] = []
    place, false_starts, repaired = reply.begin, 0, 0
    for begin, (end, depth, closed) in sorted(_brackets(reply.text, reply.begin, reply.end).items()):
        if begin < place or len(found) == MAX_VALUES or false_starts == MAX_FALSE_STARTS:
            continue
        value = _strict(response[begin:end])
        if value is None and depth <= MAX_NESTED and repaired + end - begin <= MAX_REPAIRED:
            repaired += end - begin
            value = _repaired(reply.text[begin:end], closed)
        if value is None:
            false_starts += 1
        else:
            found.append(Value(value, (begin, end)))
            place = end
    return found


def _brackets(text: str, begin: int, end: int) -> dict[int, tuple[int, int, bool]]:
    """Opening bracket outside of texts -> where its value ends, how deep it is, whether it is closed."""
    found: dict[int, tuple[int, int, bool]] = {}
    opened: list[tuple[int, list[int]]] = []  # where, and the depths of what is inside

    def close(end: int, *, closed: bool) -> None:
        start, inside = opened.pop()
        depth = max(inside, default=0) + 1
        found[start] = end, depth, closed
        if opened:
            opened[-1][1].append(depth)

    place = begin
    while mark := (_MARK if opened else _OPENS).search(text, place, end):
        place = mark.end()
        if mark[0] in "[{":
            opened.append((mark.start(), []))
        elif mark[0] in "]}":
            close(place, closed=True)
    while opened:
        close(end, closed=False)
    return found


def _strict(text: str) -> Any:
    try:
        return parse_json(text)
    except JsonError:
        return None


def _repaired(text: str, closed: bool) -> Any:
    """An object or an array, of one that breaks off its objects; None where nothing is in it."""
    value = json_repair.loads(text, skip_json_loads=True)
    if isinstance(value, list) and not closed:
        value = [item for item in value if isinstance(item, dict)]
    return value if value and isinstance(value, dict if text[0] == "{" else list) else None
