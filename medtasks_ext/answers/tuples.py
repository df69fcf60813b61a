"""Lists of tuples: entities, relations, events, standard terms (MLB, protocol `micro_f1_extraction`)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, UnknownValueError, reading
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.items import items_of
from medtasks_ext.answers.reader.items import values as json_values
from medtasks_ext.answers.reader.words import Reply, reply_of, tokens_of, words_of
from medtasks_ext.jsonfile import Json
from medtasks_ext.privacy import excerpt

#: field -> its value, or its values, sorted
Record = dict[str, str | list[str]]

#: records, and where they stand in the response
Said = tuple[list[Record] | None, tuple[int, int] | None]
#: How an answer says that there is nothing.
_NOTHINGS = frozenset(["无", "none", "没有", "空", "无结果", "不存在"])
_NO_VALUE = frozenset(["无", "none", "null", "-", "未提及"])
_TERMS = "##"
_AROUND = "`* \n\t。.\"'#:"
_AROUND_TERM = "`* \n\t\"'#[]>"
_LETTERS = re.compile(r"[^\W\d_]")
# what a model may write before the terms
_HEAD = re.compile(
    r"\A[\s*#>_`]*(?:[^:#]{0,12}(?:标准诊断名称|标准诊断|标准名称|标准术语|诊断名称|标准词|答案|结果)(?:是|为|如下)?|result)"
    r"[*_`]*\s*:[*_`\s]*"
)
# a line that explains
_REMARK = re.compile(
    r"\A[\s*#>_`]*(?:说明|解释|注释?|备注|分析|解析|理由|以上|note|explanation)", re.IGNORECASE
)


_RULE = re.compile(r"[\s|:+-]+")
_MARKS = " \t*`\"'_"


def normalise(text: str) -> str:
    """NFKC (which makes full-width forms half-width), Latin in lower case, no blanks around."""
    return unicodedata.normalize("NFKC", text).lower().strip()


_name = lru_cache(maxsize=256)(normalise)


class Tuples(AnswerFormat):
    """A list of records, written in one of three forms, and the sets of tuples that are compared.

    Forms: `json`, an array of objects; `lines`, a record per line, `field：value；field：value`, with `，`
    between the values of a list; `terms`, terms joined by `##`. A record without its first field is none,
    other fields may be missing. Records that are alike count once.
    """

    kind: Literal["tuples"]
    most_read: ClassVar[int] = 150_000  # thousands of entities
    form: Literal["json", "lines", "terms"]  #: how the list is written.
    fields: list[str] = Field(default_factory=lambda: ["term"], min_length=1)  #: of a record, in their order.
    #: fields that make the tuple that is scored; by default all.
    compared: list[str] = Field(default_factory=list)
    #: fields with several values, compared as sets (form `lines`).
    lists: list[str] = Field(default_factory=list)
    #: fields that are scored apart, as statements of the first field.
    attributes: list[str] = Field(default_factory=list)
    typed: bool = False  #: whether tuples of all fields are scored, too.
    by_class: str | None = None  #: the field by which F1 is averaged.
    #: field -> the values that it may have in gold answers, besides none.
    closed_values: dict[str, list[str] | dict[str, str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_fields(self) -> Tuples:
        used = {*self.compared, *self.lists, *self.attributes, *self.closed_values}
        if unknown := {*used, self.by_class or self.fields[0]} - set(self.fields):
            raise ValueError(f"{', '.join(sorted(unknown))}: not among the fields")
        if self.by_class and (self.by_class not in self.closed_values or self.by_class not in self._compared):
            raise ValueError("`by_class` names a compared field with closed values")
        if self.lists and self.form != "lines":
            raise ValueError("`lists` needs the form `lines`")
        return self

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """The tuples, and what else is scored (`_views`). There may be none, unless they are terms."""
        records: list[Record] | None
        if self.form == "terms":
            terms = _distinct(normalise(text).removeprefix("答案:").split(_TERMS))
            records = [{self.fields[0]: term} for term in terms]
        else:
            read = self._said_objects if self.form == "json" else self._said_lines
            records, _ = read(text, reply_of(text))
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

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = reply_of(text)
        if reply.begin == reply.end:
            records, span = None, None
        elif self.form == "terms":
            asked = set(normalise(str(document.get("prompt") or "")).split("\n"))
            records, span = self._terms_of_last_line(text, reply, cot, asked)
        else:
            records, span = (self._said_objects if self.form == "json" else self._said_lines)(text, reply)
        named = [record for record in records or () if record[self.fields[0]]]
        if records is None or (records and not named):
            return reading(None, why="no record was found")
        why = "records" if named else "the reply says that there are none"
        return reading(self._views(named), span, why)

    def mentions(self, gold: Any) -> list[str]:
        """The first field of each record; standard terms need not stand in the input."""
        if self.form == "terms" or self.fields[0] not in self._compared:
            return []
        place = self._compared.index(self.fields[0])
        return [item[place] for item in gold["tuples"] if isinstance(item[place], str)]

    # ------------------------------------------------------------------ text -> records

    @cached_property
    def _compared(self) -> list[str]:
        return self.compared or self.fields

    def _said_objects(self, response: str, reply: Reply) -> Said:
        """The last array of objects that is empty or has one; else the objects that stand alone."""
        objects, names = json_values(response, reply), self._names
        for value, place in reversed(objects):
            if (items := _objects_in(value, names)) is not None:
                return self._records(items), place
        alone = [it for it in objects if isinstance(it[0], dict) and names & set(map(normalise, it[0]))]
        if alone:
            return self._records([value for value, _ in alone]), (alone[0][1][0], alone[-1][1][1])
        whole = reply.begin, reply.end
        if "{" not in reply.text and (records := self._written_otherwise(response, reply)):
            return records, whole
        part = reply.text[slice(*part_announced(reply, words_of("zh")))]
        return ([], whole) if normalise(part).strip(_AROUND) in _NOTHINGS else (None, None)

    def _written_otherwise(self, response: str, reply: Reply) -> list[Record]:
        """Records of lines or tables; none where another than the first field is never given."""
        names = [normalise(field) for field in self.fields]
        text = normalise(response[reply.begin : reply.end])
        said = (list(_rows(text, names)) if "|" in text else []) or list(_pairs(text, names))
        said = [record for record in said if record.get(names[0])]
        if not any(record.get(name) for record in said for name in names[1:]):
            return []
        return self._records([{name: record.get(name, "").strip("[]") for name in names} for record in said])

    @cached_property
    def _names(self) -> set[str]:
        return set(map(normalise, self.fields))

    def _records(self, items: list[Json]) -> list[Record]:
        records: list[Record] = []
        for item in items:
            values = {_name(str(key)): value for key, value in item.items()}
            record: Record = {field: _text(values.get(_name(field))) for field in self.fields}
            for field in self.lists:
                record[field] = self._listed(values.get(_name(field)))
            records.append(record)
        return records

    @staticmethod
    def _listed(value: Any) -> list[str]:
        texts = _distinct(map(_text, value) if isinstance(value, list) else re.split("[,、]", _text(value)))
        return [] if set(texts) <= _NO_VALUE else texts

    @cached_property
    def _marks(self) -> list[re.Pattern[str]]:
        return [
            re.compile(rf"[\s*_`\"\-]{{0,8}}{re.escape(normalise(field))}[*_`\"]*\s*:[*_]*")
            for field in self.fields
        ]

    def _said_lines(self, response: str, reply: Reply) -> Said:
        """The records of the lines that are of the form behind the last announcement; else of all lines."""
        whole = reply.begin, reply.end
        for span in dict.fromkeys([part_announced(reply, words_of("zh")), whole]):
            part = normalise(response[slice(*span)])
            if records := [record for line in part.split("\n") if (record := self._line(line))]:
                return records, span
            if part.strip(_AROUND) in _NOTHINGS:
                return [], span
        return self._said_objects(response, reply)

    def _line(self, line: str) -> Record | None:
        """A field begins at the start of the line or after a semicolon, the first one anywhere."""
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
            text = _without_end(";".join(parts).strip().rstrip(";").strip())
            record[field] = self._listed(text) if field in self.lists else text
        return record if record[self.fields[0]] else None

    def _terms_of_last_line(self, response: str, reply: Reply, cot: bool, asked: set[str]) -> Said:
        """The terms of the last line with the mark between terms; else of a list with bullets; else the
        first line behind the announcement. Under chain of thought lines without one are reasoning, unless the
        whole reply is one line or a list."""
        begin, end = span = part_announced(reply, words_of("zh"))
        lines = normalise(response[begin:end]).split("\n")
        lines = [line for line in lines if line.strip(_AROUND_TERM) and not line.startswith("```")]
        lines = [line for line in lines if not (_REMARK.match(line) or line.endswith(":"))]
        lines = [line for line in lines if ":" not in line or line not in asked]  # the question once more
        rest: list[str] = []
        if marked := [line for line in lines if _TERMS in line]:
            items = marked[-1].split(_TERMS)
        elif (listed := items_of(response, reply, words_of("zh"))).bullets:
            span = listed.span
            items = [normalise(item) for item in listed.items]
            rest = lines[len(items) :] if items and items[0] in lines[0] else lines
            rest = [line for line in rest if not line.endswith("。")]  # a rationale behind the list
        else:
            items, rest = lines[:1], lines[1:]
        if (cot and begin == reply.begin and rest) or any(map(_refuses, items[:1])):
            return None, None
        heads = [_HEAD.sub("", item, count=1) for item in items]
        terms = _distinct([_without_end(head.strip(_AROUND_TERM)) for head in heads])
        if not any(map(_LETTERS.search, terms)):  # numbers of a list without items
            terms = []
        return ([{self.fields[0]: term} for term in terms], span) if terms else (None, None)

    # ------------------------------------------------------------------ records -> what is compared

    def _views(self, records: list[Record]) -> dict[str, Any]:
        """What is compared: `tuples`, all their fields (`typed`), attributes as pairs, class -> tuples."""
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
            by_class = {name: [item for item in views["tuples"] if item[place] == name] for name in known}
            views["classes"] = {name: items for name, items in by_class.items() if items}
        return views

    def _statements(self, field: str, records: list[Record]) -> list[list[Any]]:
        subject = self.fields[0]
        return _sorted(
            [record[subject], value]
            for record in records
            for value in (record[field] if isinstance(record[field], list) else [record[field]])
            if value
        )


def _objects_in(value: Any, names: set[str]) -> list[Json] | None:
    """The array of objects that a value is or holds, unless that is a record itself; else None."""
    if isinstance(value, dict) and not names & set(map(normalise, map(str, value))):
        return next(
            (items for item in value.values() if (items := _objects_in(item, names)) is not None), None
        )
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return _objects_in(value[0], names) if isinstance(value, list) and len(value) == 1 else None


def _refuses(line: str) -> bool:
    """Whether a line is a sentence with a word of denial: `无法回答。`, unlike `无痛性血尿。`"""
    if not line.endswith("。"):
        return False
    words, tokens = words_of("zh"), tokens_of(line)
    found = ((place, *words.at(tokens, place)) for place in range(len(tokens)))
    return any("not" in classes and end - place > 1 for place, classes, end in found)


def _without_end(text: str) -> str:
    return text.strip().strip('*_`"').rstrip("。;,").strip().strip('*_`"')


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, (dict, list)) else normalise(str(value))


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted({value.strip() for value in values} - {""})


def _sorted(items: Any) -> list[Any]:
    """Lists of texts and of lists of texts, without repeats, in an order of their own."""
    named = {json.dumps(item, ensure_ascii=False): item for item in items}
    return [named[name] for name in sorted(named)]


def _rows(text: str, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    """Rows of tables whose heads name at least two of the fields."""
    columns: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip(_MARKS) for cell in line.strip().strip("|").split("|")]
        if sum(cell in fields for cell in cells) > 1:
            columns = cells
        elif len(cells) == len(columns) and not _RULE.fullmatch(line):
            yield dict(zip(columns, cells, strict=True))


def _pairs(text: str, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    """Records of `field: value` pairs, on one line or each on a line.

    A record ends with a line of several pairs, before a blank line, and where its first field comes again or,
    behind more than a comma, another of its fields; elsewhere the first of two values for one field counts.
    """
    names = "|".join(map(re.escape, sorted(fields, key=len, reverse=True)))
    # a field at the beginning of a line, whatever stands before it, or behind a mark
    pattern = re.compile(rf"(?:^(?:.*?\b)??|([,;、|])[\s*`]*(?:(?:and|和)[ ]+)?)({names})[\s*`\"]*:")
    record: dict[str, str] = {}
    for line in text.split("\n"):
        _, *parts = pattern.split(line)
        if parts:  # the last semicolon closes the line
            parts[-1] = parts[-1].rpartition(";")[0] or parts[-1]
        for separator, name, value in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if name in record and (name == fields[0] or separator in (None, ";")):
                yield record
                record = {}
            record.setdefault(name, value.strip(f"{_MARKS},;、|"))
        if record and (len(parts) > 3 or not line.strip()):
            yield record
            record = {}
    yield record
