"""BRIDGE extraction answers: one event a line, fields in a fixed order (BRIDGE, `dataset/extraction.py`).

The official patterns backtrack for minutes on hostile lines. The functions at the end find the same slots in
linear time: greedy matching makes every mark the last one that leaves room for the rest, which is what a scan
from the right finds first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal

import regex  # the official scorer's engine
from pydantic import Field

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, UnknownValueError, reading
from medtasks_ext.answers.text import answer_part, fold
from medtasks_ext.privacy import excerpt

Pattern = Literal["strict", "nospace", "loose", "bare", "bracketed", "open_line"]
Reader = Callable[[str], "Sequence[str] | None"]
#: as the official scorer's engine knows it: without the separators U+001C to U+001F, which `str.isspace` has
_BLANK = regex.compile(r"\s")
_BY_PATTERN = "lines that match the suite's patterns"


class _EventLines(AnswerFormat):
    fields: list[str]
    patterns: list[Pattern]
    closed_values: dict[str, list[str] | dict[str, str]] = Field(default_factory=dict)
    inventory: dict[str, list[str]] = Field(default_factory=dict)

    @cached_property
    def _readers(self) -> list[Reader]:
        return [reader for pattern in self.patterns for reader in self._readers_of(pattern)]

    def _readers_of(self, pattern: Pattern) -> list[Reader]:
        first, *others = names = [fold(field) for field in self.fields]
        n, blank = len(names), "" if pattern == "nospace" else " "
        marks = [f"{first}:{blank}", *(f", {name}:{blank}" for name in others)]
        match pattern:
            case "strict" | "nospace":
                return [anchored(marks, ";")]
            case "loose":
                return [partial(loose, n=n)]
            case "bare":
                return [unnamed([":", ","][: n - 1])]
            case "bracketed":
                marks[1:] = [f", {others[0]}: [", f"], {others[1]}: [", f"], {others[2]}: "]
                bare = unnamed([":", ",[", "],[", "],"], least=(1, 1, 0, 0))
                return [anchored(marks, ";", least=(1, 0, 0, 0)), bracketed_loose, bare]
            case "open_line":
                commas = anchored(["", *[","] * (n - 1)], "")
                return [anchored(marks, ""), partial(loose, n=n, open_end=True), commas]

    @cached_property
    def _closed(self) -> dict[str, frozenset[str]]:
        return {field: frozenset(map(fold, values)) for field, values in self.closed_values.items()}

    def _event(self, line: str, readers: list[Reader]) -> tuple[str, ...] | None:
        slots = next((slots for reader in readers if (slots := reader(line)) is not None), None)
        return None if slots is None else tuple(map(str.strip, slots[: len(self.fields)]))

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[list[str]]:
        """Each gold line must match the first pattern, its values closed lists unless `any_value` is set."""
        events = []
        for line in _lines(fold(text)):
            event = self._event(line, self._readers[:1])
            if event is None:
                shape = ", ".join(f"{field}: <...>" for field in self.fields)
                raise GoldError(f"line {excerpt(line, 80)} is not of the form '{shape};'")
            for field, value in zip(self.fields, event, strict=True):
                allowed = self._closed.get(field)
                if allowed and value not in allowed and not row.get("any_value"):
                    listed = ", ".join(self.closed_values[field])
                    raise UnknownValueError(f"{field} {excerpt(value)} is not one of: {listed}")
            events.append(event)
        if not events:
            raise GoldError("no event")
        return list(map(list, dict.fromkeys(events)))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        events = self._events(answer_part(text, cot=cot))
        return reading(events, why=_BY_PATTERN) if events else reading(None)

    def _events(self, text: str) -> list[list[str]]:
        events: dict[tuple[str, ...], None] = {}
        seen: set[str] = set()
        for line in dict.fromkeys(text.split("\n")):
            whole = line.strip()
            # the events of a line with two or more semicolons each keep one
            pieces = [f"{piece.strip()};" for piece in whole.split(";")] if whole.count(";") > 1 else [whole]
            for part in pieces:
                if part in seen or part == ";":
                    continue
                seen.add(part)
                if (event := self._event(part, self._readers)) is not None:
                    events[event] = None
        return list(map(list, events))

    def mentions(self, gold: list[list[str]]) -> list[str]:
        return [event[0] for event in gold]


class Events(_EventLines):
    """Events with a subject (the first field) and attributes, in the order they are written.

    A parsed event is the list of its field values. `closed_values` names fields whose values come
    from a closed list and `inventory` the entities to choose from: they serve prompts and (the
    first) the check of gold, never the reading of responses.
    """

    kind: Literal["event_lines"]


class Relations(_EventLines):
    """Pairs of entities with a relation. A parsed relation is `[[pair, sorted], second entity, label]`.

    The official parser binds the second entity to the field of the relation, so that its label is
    never scored: the metric compares the first two items.
    """

    kind: Literal["relation_lines"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[list[Any]]:
        return [_pair(event) for event in super().read_gold(text, row)]

    def mentions(self, gold: list[list[Any]]) -> list[str]:
        return [name for pair, *_ in gold for name in pair]

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        found = super()._read(text, row, cot=cot)
        return found._replace(answer=list(map(_pair, found.answer))) if found.valid else found


class Attributes(AnswerFormat):
    """Events whose attributes are looked up by name, in any order (n2c2 2018).

    A value ends at the first comma or semicolon, which must be there; the first hit counts; a
    missing attribute is "not mentioned"; a line without its first field is no event.
    """

    kind: Literal["attribute_lines"]
    fields: list[str]

    @cached_property
    def _patterns(self) -> list[regex.Pattern[str]]:
        return [regex.compile(rf"{regex.escape(field)}:([^;,]++)[;,]") for field in self.fields]

    def _events(self, text: str) -> list[list[str]]:
        subject, events = f"{self.fields[0]}:", dict[tuple[str, ...], None]()
        for line in _lines(text):
            ended = line[: max(line.rfind(","), line.rfind(";")) + 1]  # a value without an end is none
            matches = [pattern.search(ended) for pattern in self._patterns] if subject in ended else [None]
            if matches[0]:
                events[tuple(match[1].strip() if match else "not mentioned" for match in matches)] = None
        return list(map(list, events))

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[list[str]]:
        events = self._events(fold(text))
        if not events:
            raise GoldError(f"no line has the form '{self.fields[0]}: <...>, <attribute>: <...>;'")
        return events

    def mentions(self, gold: list[list[str]]) -> list[str]:
        return [value for event in gold for value in event]

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        events = self._events(answer_part(text, cot=cot))
        return reading(events, why=_BY_PATTERN) if events else reading(None)


def _pair(event: list[str]) -> list[Any]:
    one, other, label = event
    return [sorted((one, other)), other, label]


def _lines(text: str) -> list[str]:
    lines = dict.fromkeys(text.split("\n"))
    return list(dict.fromkeys(line for piece in lines if (line := piece.strip())))


def anchored(marks: list[str], end: str, *, least: tuple[int, ...] = ()) -> Reader:
    """Reads the slots between literal marks anywhere in a line: `mark1(.+)mark2(.+) ... end`.

    `least`: how many characters each slot has at least (by default one). Marks are in small letters.
    """
    rooms = least or (1,) * len(marks)
    first, begin = marks[0], len(marks[0])
    others = [(mark, len(mark), room) for mark, room in zip(marks[:0:-1], rooms[::-1], strict=False)]

    def read(line: str) -> list[str] | None:
        # the official search ignores case, to which the long s is an s
        text = line.replace("ſ", "s")
        start = text.find(first)
        if start < 0:
            return None
        stop = line.rfind(end) if end else len(line)
        slots = []
        for mark, size, room in others:
            place = text.rfind(mark, 0, stop - room) if stop > room else -1
            if place < 0:
                return None
            slots.append(line[place + size : stop])
            stop = place
        if start + begin + rooms[0] > stop:
            return None
        slots.append(line[start + begin : stop])
        slots.reverse()
        return slots

    return read


def bracketed_loose(line: str) -> tuple[str, ...] | None:
    r"""The slots of `.*:(.+),\s*.*:\s*\[(.*)\],\s*.*:\s*\[(.*)\],\s*.*:\s*([^;]+)` (CHIP-CDEE)."""
    colon, value = _last_value(line)
    slots: tuple[str, ...] = (value,)
    for _ in range(2):
        close = line.rfind("],", 0, max(colon, 0))
        colon, bracket = _opening(line, close)
        slots = (line[bracket + 1 : close], *slots)
    colon, slot = _slot(line, colon)
    return (slot, *slots) if colon >= 0 else None


def _opening(line: str, close: int) -> tuple[int, int]:
    r"""The last colon and bracket of `:\s*\[` before a closing bracket; -1 where there is none."""
    bracket = line.rfind("[", 0, max(close, 0))
    while bracket >= 0:
        colon = bracket - 1
        while colon >= 0 and _BLANK.match(line[colon]):
            colon -= 1
        if colon >= 0 and line[colon] == ":":
            return colon, bracket
        bracket = line.rfind("[", 0, bracket)
    return -1, -1


def loose(line: str, *, n: int, open_end: bool = False) -> tuple[str, ...] | None:
    r"""The n slots of `.*:\s*(.+),\s*.*:\s*(.+),\s* ... .*:\s*([^;]+)`, found from the right.

    `open_end` lets the last slot run to the end of the line, semicolons included (`(.+)`).
    """
    colon, slot = _last_value(line, open_end=open_end)
    slots = [slot]
    for _ in range(n - 1):
        colon, slot = _slot(line, colon)
        slots.insert(0, slot)
    return tuple(slots) if colon >= 0 else None


def _slot(line: str, end: int) -> tuple[int, str]:
    """The colon before the last comma before a place, and what stands between, at least one character."""
    comma = line.rfind(",", 0, max(end, 0))
    colon = line.rfind(":", 0, comma - 1) if comma > 0 else -1
    return colon, line[colon + 1 : comma]


def unnamed(marks: list[str], *, least: tuple[int, ...] = ()) -> Reader:
    r"""Reads the slots of `(.+)mark1(.+)mark2 ... ([^;]+)`: the last mark is the last one before a value."""
    before, last = anchored(["", *marks[:-1]], "", least=least), marks[-1]

    def read(line: str) -> Sequence[str] | None:
        place = line.rfind(last)
        while place >= 0 and not (value := _until_semicolon(line[place + len(last) :])):
            place = line.rfind(last, 0, place)
        slots = before(line[:place]) if place >= 0 else None
        return slots and [*slots, value]

    return read


def _until_semicolon(text: str) -> str:
    return text.partition(";")[0]


def _last_value(line: str, *, open_end: bool = False) -> tuple[int, str]:
    r"""The last colon of `:\s*([^;]+)` and the value behind it, which blanks may be; -1 without one."""
    colon = line.rfind(":")
    while colon >= 0:
        tail = line[colon + 1 :]
        value = tail.lstrip() if open_end else _until_semicolon(tail.lstrip())
        if value or tail[:1].isspace():
            return colon, value
        colon = line.rfind(":", 0, colon)
    return -1, ""
