"""Lists of tuples: entities, relations, events, standard terms (MLB, protocol `micro_f1_extraction`)."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, UnknownValueError
from medtasks_ext.answers.normalise import strip_reasoning
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: field -> its value, or its values, sorted
Record = dict[str, str | list[str]]

#: Arrays in a response that break off or are no JSON, before the search for one is given up: each costs a
#: scan of the rest, and a response that is looping may hold thousands.
MAX_FALSE_STARTS = 100
#: How an answer of lines says that there is nothing.
NOTHING = "无"
_TERMS = "##"
#: where an array that is empty or whose first item is an object begins
_ARRAY = re.compile(r"\[[ \t\n\r]*(?=[{\]])")
_MARKER = re.compile(r"^[ \t*#>]*(?:答案|结果|result)[ *]*:[ *]*", re.MULTILINE)


def normalise(text: str) -> str:
    """NFKC (which makes full-width forms half-width), Latin in lower case, no blanks around."""
    return unicodedata.normalize("NFKC", text).lower().strip()


class Tuples(AnswerFormat):
    """A list of records, written in one of three forms, and the sets of tuples that are compared.

    Forms: `json`, an array of objects; `lines`, a record per line, `field：value；field：value`, with `，`
    between the values of a list; `terms`, terms joined by `##`. A record without its first field is none,
    other fields may be missing. Records that are alike count once.

    Attributes:
        form: how the list is written.
        fields: of a record, in their order.
        compared: fields that make the tuple that is scored; by default all.
        lists: fields with several values, compared as sets (form `lines`).
        attributes: fields that are scored apart, as statements of the first field.
        typed: whether tuples of all fields are scored, too.
        by_class: the field by which F1 is averaged.
        closed_values: field -> the values that it may have in gold answers, besides none.
    """

    kind: Literal["tuples"]
    form: Literal["json", "lines", "terms"]
    fields: list[str] = Field(default_factory=lambda: ["term"], min_length=1)
    compared: list[str] = Field(default_factory=list)
    lists: list[str] = Field(default_factory=list)
    attributes: list[str] = Field(default_factory=list)
    typed: bool = False
    by_class: str | None = None
    closed_values: dict[str, list[str] | dict[str, str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_fields(self) -> Tuples:
        used = {
            *self.compared,
            *self.lists,
            *self.attributes,
            *self.closed_values,
            *filter(None, [self.by_class]),
        }
        if unknown := used - set(self.fields):
            raise ValueError(f"{', '.join(sorted(unknown))}: not among the fields")
        if self.by_class and (self.by_class not in self.closed_values or self.by_class not in self._compared):
            raise ValueError("`by_class` names a compared field with closed values")
        if self.lists and self.form != "lines":
            raise ValueError("`lists` needs the form `lines`")
        return self

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """The tuples, and what else is scored (`_views`). There may be none, unless they are terms.

        Raises:
            GoldError: the text is not of the form, a record lacks its first field or one that is
                compared, or a value is outside its closed list.
        """
        records = self._read_all[self.form](text, False)
        if records is None or (not records and self.form == "terms"):
            raise GoldError(f"{excerpt(text.strip())} is no list of records in the form {self.form!r}")
        lines = [line for line in text.split("\n") if line.strip()]
        if self.form == "lines" and records and len(records) < len(lines):
            raise GoldError(f"a line is not of the form {'：…；'.join(self.fields)}：…")
        for record in records:
            self._check(record)
        return self._views(records)

    def _check(self, record: Record) -> None:
        needed = [self.fields[0]] if self.form == "lines" else self._compared
        if missing := [field for field in needed if not record[field]]:
            raise GoldError(f"a record has no {', '.join(missing)}: {excerpt(record)}")
        for field, values in self.closed_values.items():
            value = record[field]
            known = {normalise(item) for item in values}
            if wrong := set(value if isinstance(value, list) else [value]) - known - {""}:
                raise UnknownValueError(f"{field} {excerpt(min(wrong))} is not one of: {', '.join(values)}")

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """What `read_gold` gives; invalid where no record, and no empty list, could be read."""
        records = self._read_all[self.form](strip_reasoning(text), cot)
        named = [record for record in records or () if record[self.fields[0]]]
        if records is None or (records and not named):
            return Reading(None, False)
        return Reading(self._views(named), True)

    def not_covered(self, golds: list[Any]) -> list[str]:
        """Closed values that no gold answer shows."""
        shown = {field: self._shown(field, golds) for field in self.closed_values}
        return [
            value
            for field, values in self.closed_values.items()
            for value in values
            if normalise(value) not in shown[field]
        ]

    def _shown(self, field: str, golds: list[Any]) -> set[str]:
        if field in self.attributes:
            return {value for gold in golds for _, value in gold["attributes"][field]}
        view, fields = ("typed", self.fields) if self.typed else ("tuples", self._compared)
        return {found[fields.index(field)] for gold in golds for found in gold[view]}

    # ------------------------------------------------------------------ text -> records

    @cached_property
    def _compared(self) -> list[str]:
        return self.compared or self.fields

    @cached_property
    def _read_all(self) -> dict[str, Callable[[str, bool], list[Record] | None]]:
        return {"json": self._objects, "lines": self._lines, "terms": self._terms}

    def _objects(self, text: str, cot: bool) -> list[Record] | None:
        """The records of the last array of objects; what stands around it does not matter."""
        found = last_array_of_objects(text)
        if found is None:
            return None
        records: list[Record] = []
        for item in found:
            values = {normalise(key): value for key, value in item.items()}
            records.append({field: _text(values.get(normalise(field))) for field in self.fields})
        return records

    @cached_property
    def _marks(self) -> list[re.Pattern[str]]:
        return [re.compile(rf"\s*{re.escape(normalise(field))}\s*:") for field in self.fields]

    def _lines(self, text: str, cot: bool) -> list[Record] | None:
        """The records of all lines that are of the form; under chain-of-thought after the last marker."""
        reply = normalise(text)
        if cot:
            reply = _after_marker(reply)
        records = [record for line in reply.split("\n") if (record := self._line(line))]
        return records if records or reply.strip("`* \n。.") == NOTHING else None

    def _line(self, line: str) -> Record | None:
        """The record of one line, or None. A field begins at the start of the line or after a semicolon;
        before the first field anything may stand."""
        values: list[list[str]] = []
        for part in line.split(";"):
            mark = self._marks[len(values)] if len(values) < len(self.fields) else None
            begun = mark and (mark.match(part) if values else mark.search(part))
            if begun:
                values.append([part[begun.end() :]])
            elif values:
                values[-1].append(part)
        if len(values) < len(self.fields):
            return None
        record: Record = {}
        for field, parts in zip(self.fields, values, strict=True):
            text = ";".join(parts).strip().rstrip(";").strip()
            record[field] = _distinct(text.split(",")) if field in self.lists else text
        return record if record[self.fields[0]] else None

    def _terms(self, text: str, cot: bool) -> list[Record] | None:
        """The terms of one line: the first after the marker; without one the first of all, or under
        chain-of-thought the last."""
        reply = normalise(text)
        after = _after_marker(reply)
        lines = [line for line in after.split("\n") if line.strip() and not line.startswith("```")]
        if not lines:
            return None
        line = lines[-1] if cot and after is reply else lines[0]
        terms = _distinct(line.split(_TERMS))
        return [{self.fields[0]: term} for term in terms] or None

    # ------------------------------------------------------------------ records -> what is compared

    def _views(self, records: list[Record]) -> dict[str, Any]:
        """Sorted, without repeats:

        - `tuples`: the values of the compared fields;
        - `typed`: those of all fields, if they are scored;
        - `attributes`: attribute -> pairs of first field and value;
        - `classes`: class -> tuples, of the classes that are known.
        """
        views: dict[str, Any] = {
            "tuples": _sorted([record[field] for field in self._compared] for record in records)
        }
        if self.typed:
            views["typed"] = _sorted([record[field] for field in self.fields] for record in records)
        if self.attributes:
            views["attributes"] = {field: self._statements(field, records) for field in self.attributes}
        if self.by_class:
            place = self._compared.index(self.by_class)
            known = [normalise(item) for item in self.closed_values[self.by_class]]
            found = {name: [item for item in views["tuples"] if item[place] == name] for name in known}
            views["classes"] = {name: items for name, items in found.items() if items}
        return views

    def _statements(self, field: str, records: list[Record]) -> list[list[Any]]:
        subject = self.fields[0]
        return _sorted(
            [record[subject], value]
            for record in records
            for value in (record[field] if isinstance(record[field], list) else [record[field]])
            if value
        )


def last_array_of_objects(text: str) -> list[dict[str, Any]] | None:
    """The last JSON array in a text that is empty or holds nothing but objects, or None.

    What is inside such an array does not count.
    """
    decoder = json.JSONDecoder()
    found, false_starts = None, 0
    start = _ARRAY.search(text)
    while start and false_starts < MAX_FALSE_STARTS:
        end = start.end()
        try:
            value, end = decoder.raw_decode(text, start.start())
            if all(isinstance(item, dict) for item in value):
                found = value
        except (ValueError, RecursionError):
            false_starts += 1
        start = _ARRAY.search(text, end)
    return found


def _text(value: Any) -> str:
    """A value as text; objects, lists and null are none."""
    return "" if value is None or isinstance(value, (dict, list)) else normalise(str(value))


def _after_marker(text: str) -> str:
    """What follows the last answer marker at the start of a line; the same text if there is none."""
    markers = list(_MARKER.finditer(text))
    return text[markers[-1].end() :] if markers else text


def _distinct(values: list[str]) -> list[str]:
    return sorted({value.strip() for value in values} - {""})


def _sorted(items: Any) -> list[Any]:
    """Lists of texts and of lists of texts, without repeats, in an order of their own."""
    return [json.loads(item) for item in sorted({json.dumps(item, ensure_ascii=False) for item in items})]
