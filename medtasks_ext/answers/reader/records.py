"""Records of named fields: lines, tables and objects, their fields looked up by name, in any order."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from medtasks_ext.answers.normalise import fold
from medtasks_ext.answers.reader.json_text import values
from medtasks_ext.answers.reader.reply import Reply

#: the values of an event's fields, in the order of the fields
Event: TypeAlias = tuple[str, ...]

_MARKS = r":;|、*`\""
_CLOSING = frozenset(",;、|")
_AROUND = frozenset(',;、|*`"')


class EventReader:
    """Reads events of `field: value` pairs.

    A field counts where its name and a colon begin a line or follow a comma, semicolon, enumeration
    comma or bar; what stands before the first field of a line (a bullet, a number, a word) is ignored.
    A value ends where the next field or the event ends, so it may hold commas, colons and semicolons.
    An event ends with its line, or where its subject is named again, or where after a semicolon
    another of its fields is; elsewhere the first of two values for one field counts. The last
    semicolon of a line closes it and may be missing. Emphasis marks are not part of names and values.

    Lines without a subject are no events, which leaves out prose. Nor are lines without one of the
    other fields, since no gold answer lacks it, unless `absent` says what the missing field means.

    Args:
        fields: names in the order of an event's values.
        subject: the field that makes an event.
        absent: field -> the value of an event that does not name it.
        lists: fields with a bracketed list as value, which is compared as a set: it is read as its
            sorted distinct items, joined by commas.
    """

    def __init__(
        self,
        fields: Sequence[str],
        *,
        subject: str,
        absent: Mapping[str, str] | None = None,
        lists: Collection[str] = (),
    ) -> None:
        self._fields = tuple(fold(field) for field in fields)
        self._subject = fold(subject)
        meaning = {fold(field): value for field, value in (absent or {}).items()}
        self._missing = [meaning.get(field) for field in self._fields]
        self._place = self._fields.index(self._subject)
        self._lists = [self._fields.index(fold(field)) for field in lists]
        names = "|".join(map(re.escape, sorted(self._fields, key=len, reverse=True)))
        self._names = re.compile(
            rf"(?:^(?:.*?\b)??|([,;、|])[\s*`]*(?:(?:and|et|und|og|и|和)[ ]+)?)({names})[\s*`]*:"
        )
        self._as_asked = re.compile(self._asked_form(), re.MULTILINE)

    def _asked_form(self) -> str:
        """A line exactly as the task asks for it, its values without marks: most lines, read at once."""
        end = rf"[^{_MARKS},\s]"
        value = rf"({end}(?:[^{_MARKS}\n]*{end})?)"
        values = [
            rf"\[([^{_MARKS}\n\[\]【】]*)\]" if i in self._lists else value for i in range(len(self._fields))
        ]
        pairs = zip(map(re.escape, self._fields), values, strict=True)
        return "^" + ", ".join(f"{field}: {value}" for field, value in pairs) + ";?$"

    def read(self, text: str) -> list[Event]:
        """All events of a normalised text, in the order in which they are written."""
        asked = self._as_asked.findall(text)
        if len(asked) == text.count("\n") + 1:
            return [self._with_sets(event, _sorted_items) for event in asked] if self._lists else asked
        other = self._of_lines(as_lines(text, self._fields))
        return other or self._of_lines(joined(text, self._fields))

    def _of_lines(self, text: str) -> list[Event]:
        events: list[Event] = []
        for line in text.split("\n"):
            if asked_here := self._as_asked.match(line):
                events.append(self._with_sets(asked_here.groups(), _sorted_items))
            elif self._subject in line:
                self._read_line(line, events)
        return events

    def _read_line(self, line: str, events: list[Event]) -> None:
        _, *parts = self._names.split(line)
        if not parts:
            return
        body, closed, _ = parts[-1].rpartition(";")
        if closed:
            parts[-1] = body
        values: dict[str, str] = {}
        for separator, name, value in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if name in values:
                if name != self._subject and separator != ";":
                    continue
                self._add(values, events)
                values = {}
            values[name] = value
        self._add(values, events)

    def _add(self, values: dict[str, str], events: list[Event]) -> None:
        event: list[str] = []
        for field, missing in zip(self._fields, self._missing, strict=True):
            value = _value(values[field]) if field in values else missing
            if value is None:
                return
            event.append(value)
        if event[self._place]:
            events.append(self._with_sets(event, _as_set))

    def _with_sets(self, event: Sequence[str], as_set: Callable[[str], str]) -> Event:
        values = list(event)
        for place in self._lists:
            values[place] = as_set(values[place])
        return tuple(values)


def _value(text: str) -> str:
    value = text.strip()
    if not value or not (value[0] in _AROUND or value[-1] in _AROUND):
        return value
    if value[-1:] in _CLOSING:
        value = value.rstrip(",;、| ")
    if value[:1] in ("*", "`") or value[-1:] in ("*", "`"):
        value = value.strip("*` ") or value  # a value of such marks alone is one
    if len(value) > 2 and value[0] == value[-1] == '"' and value.count('"') == 2:
        return value[1:-1].strip() or value
    return value


def _as_set(value: str) -> str:
    return _sorted_items(value.strip("[]【】").replace("、", ",").replace(";", ","))


def _sorted_items(value: str) -> str:
    if "," not in value:
        return value.strip()
    return ",".join(sorted({*map(str.strip, value.split(","))} - {""}))


_RULE = re.compile(r"[\s|:+-]+")
_MARKS = " \t*`\"'_"


def as_lines(text: str, fields: Sequence[str]) -> str:
    """The records as lines `field: value, field: value`; empty where there are none.

    Args:
        text: in small letters.
        fields: their names in small letters.
    """
    objects = [*_objects(text, fields)] if "{" in text else []
    return "\n".join(objects or (_rows(text, fields) if "|" in text else ()))


def _objects(text: str, fields: Sequence[str]) -> Iterator[str]:
    waiting = [found.value for found in reversed(values(text, Reply(text, 0, len(text))))]
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
    lines: list[str] = []
    open_fields: set[str] = set()
    together = False
    for line in text.split("\n"):
        match = at_begin.match(line)
        if not match:
            lines.append(line)
            open_fields = open_fields if not line.strip() else set()
            continue
        if anywhere.search(line, match.end()):
            return text
        if open_fields and match[1] not in open_fields:
            while not lines[-1].strip():
                lines.pop()
            lines[-1] = f"{lines[-1].rstrip(' ,;')}, {line[match.start(1) :]}"
            together = True
        else:
            lines.append(line)
            open_fields = set()
        open_fields.add(match[1])
    return "\n".join(lines) if together else text
