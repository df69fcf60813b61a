"""BRIDGE extraction answers: one event a line, fields in a fixed order.

Several patterns are tried line by line, the first that matches wins (BRIDGE, `dataset/extraction.py`).
The official ones are regular expressions whose greedy wild cards bind to the last slots of a line
and backtrack for minutes on hostile ones. The functions at the end of this file find the same
slots from the right end in linear time: greedy matching makes every mark the last one that still
leaves room for the rest, which is what a scan from the right finds first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import regex  # the official scorer's engine
from pydantic import Field

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, UnknownValueError
from medtasks_ext.answers.normalise import answer_part, fold
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
        names = [fold(field) for field in self.fields]
        n = len(names)
        spaced = [f"{names[0]}: ", *(f", {name}: " for name in names[1:])]
        match pattern:
            case "strict":
                return [anchored(spaced, ";")]
            case "nospace":
                tight = [f"{names[0]}:", *(f", {name}:" for name in names[1:])]
                return [anchored(tight, ";")]
            case "loose":
                return [lambda line: loose(line, n)]
            case "bare":
                return [lambda line: bare(line, n)]
            case "bracketed":
                subject, description, location, status = names
                marks = [f"{subject}: ", f", {description}: [", f"], {location}: [", f"], {status}: "]
                exact = anchored(marks, ";", least=(1, 0, 0, 0))
                return [exact, bracketed_loose, bracketed_bare]
            case "open_line":
                return [
                    anchored(spaced, ""),
                    lambda line: loose(line, n, open_end=True),
                    lambda line: commas(line, n),
                ]

    @cached_property
    def _closed(self) -> dict[str, frozenset[str]]:
        return {field: frozenset(map(fold, values)) for field, values in self.closed_values.items()}

    def _event(self, line: str, readers: list[Reader]) -> tuple[str, ...] | None:
        for reader in readers:
            slots = reader(line)
            if slots is not None:
                return tuple(map(str.strip, slots[: len(self.fields)]))
        return None

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[list[str]]:
        """All events; each gold line must match the first pattern, its values their closed lists.

        A row may say `any_value` to have its values accepted as they are.
        """
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
        """All events of the lines that match a pattern; a response without any is invalid."""
        if not text.strip():
            return Reading(None, False)
        events = self._events(answer_part(text, cot=cot))
        return Reading(events, True, why=_BY_PATTERN) if events else Reading(None, False)

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
        reading = super()._read(text, row, cot=cot)
        return (
            reading._replace(answer=[_pair(event) for event in reading.answer]) if reading.valid else reading
        )


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
        """All values: attributes are words of the input, too."""
        return [value for event in gold for value in event]

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """All events; lines are never cut at semicolons here. A response without any is invalid."""
        events = self._events(answer_part(text, cot=cot))
        return Reading(events, True, why=_BY_PATTERN) if events else Reading(None, False)


def _pair(event: list[str]) -> list[Any]:
    one, other, label = event
    return [sorted((one, other)), other, label]


def _lines(text: str) -> list[str]:
    """The distinct lines: events are distinct in the end."""
    lines = dict.fromkeys(text.split("\n"))
    return list(dict.fromkeys(line for piece in lines if (line := piece.strip())))


def anchored(marks: list[str], end: str, *, least: tuple[int, ...] = ()) -> Reader:
    """Reads the slots between literal marks: `mark1(.+)mark2(.+) ... end`, searched for anywhere in a line.

    `marks` are in small letters, as lines are. `end`: empty where the last slot runs to the end of the line.
    `least`: how many characters each slot has at least (by default one).
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
    last = _last_value(line, open_end=False)
    if last is None:
        return None
    colon, slots = last
    for _ in range(2):
        close = line.rfind("],", 0, colon)
        opened = _opening(line, close)
        if opened is None:
            return None
        colon, bracket = opened
        slots = (line[bracket + 1 : close], *slots)
    comma = line.rfind(",", 0, colon)
    colon = line.rfind(":", 0, comma - 1) if comma > 0 else -1
    return (line[colon + 1 : comma], *slots) if colon >= 0 else None


def _opening(line: str, close: int) -> tuple[int, int] | None:
    r"""The last colon and bracket of `:\s*\[` before a closing bracket."""
    bracket = line.rfind("[", 0, max(close, 0))
    while bracket >= 0:
        colon = bracket - 1
        while colon >= 0 and _BLANK.match(line[colon]):
            colon -= 1
        if colon >= 0 and line[colon] == ":":
            return colon, bracket
        bracket = line.rfind("[", 0, bracket)
    return None


def bracketed_bare(line: str) -> tuple[str, ...] | None:
    r"""The slots of `(.+):(.+),\[(.*)\],\[(.*)\],([^;]+)`; it has one more than the fields (CHIP-CDEE)."""
    close = line.rfind("],")
    while close >= 0 and not _until_semicolon(line[close + 2 :]):
        close = line.rfind("],", 0, close)
    middle = line.rfind("],[", 0, close) if close >= 0 else -1
    opened = line.rfind(",[", 0, middle) if middle >= 0 else -1
    colon = line.rfind(":", 0, opened - 1) if opened > 0 else -1
    if colon < 1:
        return None
    value = _until_semicolon(line[close + 2 :])
    return (
        line[:colon],
        line[colon + 1 : opened],
        line[opened + 2 : middle],
        line[middle + 3 : close],
        value,
    )


def loose(line: str, n: int, *, open_end: bool = False) -> tuple[str, ...] | None:
    r"""The n slots of `.*:\s*(.+),\s*.*:\s*(.+),\s* ... .*:\s*([^;]+)`, found from the right.

    `open_end` lets the last slot run to the end of the line, semicolons included (`(.+)`).
    """
    if line.count(":") < n or line.count(",") < n - 1:  # each slot needs its own
        return None
    last = _last_value(line, open_end=open_end)
    if last is None:
        return None
    colon, slots = last
    for _ in range(n - 1):
        comma = line.rfind(",", 0, colon)
        # between colon and comma stands at least one character
        colon = line.rfind(":", 0, comma - 1) if comma > 0 else -1
        if colon < 0:
            return None
        # white space after the colon is skipped, but one character stays with the slot
        slots = (line[colon + 1 : comma].lstrip() or line[comma - 1], *slots)
    return slots


def bare(line: str, n: int) -> tuple[str, ...] | None:
    r"""The n slots of `(.+):([^;]+)` (n = 2) or `(.+):(.+),([^;]+)` (n = 3), found from the right."""
    if n == 2:
        colon = line.rfind(":")
        while colon >= 0:
            if value := _until_semicolon(line[colon + 1 :]):
                return (line[:colon], value) if colon > 0 else None
            colon = line.rfind(":", 0, colon)
        return None
    comma = line.rfind(",")
    while comma >= 0:
        if value := _until_semicolon(line[comma + 1 :]):
            colon = line.rfind(":", 0, max(comma - 1, 0))
            # colon first, then the last comma behind it: the greedy order of the expression
            return (line[:colon], line[colon + 1 : comma], value) if colon > 0 else None
        comma = line.rfind(",", 0, comma)
    return None


def commas(line: str, n: int) -> tuple[str, ...] | None:
    r"""The n slots of `(.+),(.+), ... (.+)`, found from the right: each comma the last that leaves room."""
    slots: tuple[str, ...] = ()
    end = len(line)
    for _ in range(n - 1):
        comma = line.rfind(",", 0, end - 1)
        if comma < 1:
            return None
        slots, end = (line[comma + 1 : end], *slots), comma
    return (line[:end], *slots)


def _until_semicolon(text: str) -> str:
    return text.partition(";")[0]


def _last_value(line: str, *, open_end: bool) -> tuple[int, tuple[str, ...]] | None:
    colon = line.rfind(":")
    while colon >= 0:
        tail = line[colon + 1 :]
        value = tail.lstrip() if open_end else _until_semicolon(tail.lstrip())
        if value:
            return colon, (value,)
        if tail[:1].isspace():  # `\s*` gives one blank back to the slot
            return colon, (tail[: len(tail) - len(tail.lstrip())][-1],)
        colon = line.rfind(":", 0, colon)
    return None
