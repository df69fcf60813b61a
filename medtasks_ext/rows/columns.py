"""The columns of source rows: what type each has, which values it may hold, and whether it may be empty.

`CellReader` checks a row once, whatever file it comes from, and gives values of the declared types: what is
missing in one way only, numbers as numbers, lists as lists.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pydantic import model_validator

from medtasks_ext.jsonfile import Json, JsonError, parse_json
from medtasks_ext.privacy import excerpt
from medtasks_ext.strict import Strict

if TYPE_CHECKING:
    from medtasks_ext.rows.row import Row

#: System -> the form of its codes, in either case.
CODE_SYSTEMS: dict[str, re.Pattern[str]] = {
    name: re.compile(form, re.IGNORECASE)
    for name, form in {
        # WHO, ICD-10 volume 2; clinical modifications have up to four characters behind the dot
        "ICD-10": r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\.?",
        "ICD-10 category": r"[A-Z]\d[0-9A-Z]",
        # CMS, ICD-10-PCS reference manual: seven characters, no I and O; annotators may stop at the fourth
        "ICD-10-PCS": r"[0-9A-HJ-NP-Z]{4}(?:[0-9A-HJ-NP-Z]{3})?",
        "ICD-10-CM or PCS": r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?\.?|[0-9A-HJ-NP-Z]{7}",
        # WHO, ICD-O-3: morphology, behaviour; a grade or /H where the annotators of Cantemist add it
        "ICD-O": r"\d{4}/\d{1,2}(?:/H)?",
        # SNOMED International: 6 to 18 digits
        "SNOMED CT": r"[1-9]\d{5,17}",
        # NLM: unique identifiers of descriptors, and of supplementary concepts
        "MeSH": r"[CD]\d{6}(?:\d{3})?",
    }.items()
}


ColumnType = Literal[
    "text",
    "id",
    "integer",
    "number",
    "boolean",
    "texts",
    "integers",
    "objects",
    "object",
    "list",
    "options",
    "lines",
]
Value = str | int
_Nested = TypeVar("_Nested", list[Any], Json)
#: What each type is called in messages and templates.
TYPES: dict[ColumnType, str] = {
    "text": "text",
    "id": "text or an integer",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "texts": "a list of texts",
    "integers": "a list of integers",
    "objects": "a list of objects",
    "object": "an object",
    "list": "a list",
    "options": "a list of texts, an object of letter and text, or a line per option with its letter first",
    "lines": "text or a list of texts",
}
#: Texts that programs write where a number is missing.
_NOT_A_NUMBER = frozenset({"nan", "NaN", "<NA>"})
_INTEGER, _NUMBER = (
    re.compile(r"[+-]?\d{1,18}(\.0+)?"),
    re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,3})?"),
)
_LISTS = ("texts", "integers")
_LISTED = 20  # allowed values that a message names
_SHORT = 3  # characters of a label that a message names: no text of a patient is as short
_TRUTH = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


class Column(Strict):
    """One column of a schema."""

    type: ColumnType = "text"  #: of its values. In a CSV or Excel cell lists and objects are written as JSON.
    values: list[Value] | None = None  #: the only ones that it may hold; of a list, its items.
    nullable: bool = False  #: whether a row may lack a value.
    #: texts that stand for no value in this source, besides NaN, null and blank cells.
    missing: list[str] = []
    pattern: str | None = None  #: regular expression that a text must match.

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.values is not None and not self.values:
            raise ValueError("`values` lists none")
        if self.pattern is not None and self.type != "text":
            raise ValueError("`pattern` is for columns of type text")
        return self

    @property
    def expected(self) -> str:
        if self.values is None:
            return TYPES[self.type]
        listed = ", ".join(map(str, self.values[:_LISTED]))
        if len(self.values) > _LISTED:
            listed += f", … ({len(self.values)} values)"
        return f"{TYPES[self.type]} from: {listed}" if self.type in _LISTS else f"one of: {listed}"


class CellFault(NamedTuple):
    column: str  # its name
    found: str  # what is there, without its text
    cause: str  # the same for all cells with this fault
    remedy: str  # what to write instead


class _CellError(ValueError):
    """A value that does not fit; the argument says in what way."""


@dataclass(frozen=True)
class Cells:
    row: Row  # the row; columns that it lacks are empty text, None, or, if optional, not there
    faults: list[CellFault]  # cells that cannot be used
    blanks: list[str]  # columns in which it holds nothing, where that is allowed


class CellReader:
    """Reads the cells of rows in one schema. Compiled once: rows are many.

    `keeps_blanks`: a blank text is left as it is, as in pinned files that their suite reads so.
    """

    def __init__(
        self, columns: Mapping[str, Column], optional: Mapping[str, Column], *, keeps_blanks: bool = False
    ) -> None:
        self._columns = [
            (name, column, _checker(column), name in optional)
            for name, column in {**optional, **columns}.items()
        ]
        self._keeps_blanks = keeps_blanks

    def read(self, row: Row) -> Cells:
        read, faults, blanks = dict(row), list[CellFault](), list[str]()
        for name, column, check, is_optional in self._columns:
            if name not in row:
                continue
            value = row[name]
            if _is_missing(value, column.missing):
                if is_optional and name != "id":  # rows without ids are numbered, but not some of them
                    del read[name]
                    blanks.append(name)
                    continue
                text = column.type in ("text", "lines")
                read[name] = "" if text else None
                if column.nullable or (text and self._keeps_blanks):
                    blanks.append(name)
                else:
                    what = f"holds nothing, expected {column.expected}"
                    remedy = "fill the cell, or take the row out"
                    faults.append(CellFault(name, "holds nothing", what, remedy))
                continue
            try:
                read[name] = check(value)
            except _CellError as error:
                faults.append(_fault(name, column, value, str(error)))
        return Cells(read, faults, blanks)


def is_blank(value: object) -> bool:
    """Whether a cell holds nothing: null, not a number, or no character but blanks."""
    return _is_missing(value, ())


def _is_missing(value: object, texts: list[str] | tuple[()]) -> bool:
    if isinstance(value, str):
        return not value or value in _NOT_A_NUMBER or value in texts or not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


_EXAMPLES = {
    "boolean": "true or false",
    "texts": '["one", "two"], a list, also where it has one item',
    "integers": "[0, 2], a list, also where it has one item",
    "objects": '[{"key": "value"}], a list of objects',
    "object": '{"key": "value"}, an object',
}
_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def _fault(name: str, column: Column, value: object, why: str) -> CellFault:
    what, shown = why or _KINDS.get(type(value), f"a value of type {type(value).__name__}"), excerpt(value)
    if column.values and len(label := str(value).strip()) <= _SHORT:
        what = shown = repr(label)
    example = "one of these values, in the same case, or take the row out"
    if not column.values:
        example = _EXAMPLES.get(column.type, TYPES[column.type])
    found = f"holds {shown}" + (f" ({why})" if why else "")
    return CellFault(name, found, f"holds {what}, expected {column.expected}", f"write {example}")


def _checker(column: Column) -> Callable[[Any], Any]:
    """What turns a value into one of the column's type, or raises."""
    if column.type == "text":
        if column.values is not None:
            return partial(_one_of, {str(value): str(value) for value in column.values})
        return _text if column.pattern is None else partial(_matching, re.compile(column.pattern, re.DOTALL))
    simple = _SIMPLE[column.type]
    if column.values is None:
        return simple
    allowed = frozenset(column.values)
    if column.type in _LISTS:
        return lambda value: [_among(allowed, item) for item in simple(value)]
    return lambda value: _among(allowed, simple(value))


def _among(allowed: frozenset[Value], value: Value) -> Value:
    if value not in allowed:
        raise _CellError("another value")
    return value


def _one_of(allowed: Mapping[str, str], value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _CellError
    text = str(value).strip()
    if (meant := allowed.get(text)) is not None:
        return meant
    folded = text.casefold()
    raise _CellError(
        "another case" if any(folded == item.casefold() for item in allowed) else "another value"
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _CellError
    return value


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not pattern.fullmatch(_text(value).strip()):
        raise _CellError("text of another form")
    return str(value)


def _id(value: Any) -> Value:
    return value if isinstance(value, str) else _integer(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise _CellError
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    raise _CellError


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return _integer(value) if _INTEGER.fullmatch(value.strip()) else float(value)
    raise _CellError


def _boolean(value: Any) -> bool:
    truth = _TRUTH.get(str(value).strip().lower()) if isinstance(value, str | int | float) else None
    if truth is None:
        raise _CellError
    return truth


def _from_json(value: Any, kind: type) -> Any:
    """A list or object, also where a cell holds it as JSON, or as Python prints it, which pandas does."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value.lstrip()[:1] == ("[" if kind is list else "{"):
        try:
            try:
                parsed = parse_json(value)
            except JsonError:
                parsed = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise _CellError("text that is not valid JSON") from None
        if isinstance(parsed, kind):
            return parsed
    raise _CellError


def _list_of(kind: type, items: str) -> Callable[[Any], list[Any]]:
    def check(value: Any) -> list[Any]:
        listed: list[Any] = _from_json(value, list)
        if not all(isinstance(item, kind) for item in listed):
            raise _CellError(f"a list with other items than {items}")
        return _whole(listed)

    return check


_texts, _objects = _list_of(str, "texts"), _list_of(dict, "objects")


def _integers(value: Any) -> list[int]:
    items = _from_json(value, list)
    if any(isinstance(item, str) for item in items):
        raise _CellError("a list with other items than integers")
    return [_integer(item) for item in items]


def _object(value: Any) -> Json:
    return _whole(_from_json(value, dict))


def _whole(value: _Nested) -> _Nested:
    """The value, if there is no NaN anywhere in it."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack += item.values() if isinstance(item, dict) else item
        elif isinstance(item, float) and math.isnan(item):
            raise _CellError("NaN within")
    return value


def _options(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = _from_json(value, list if value.lstrip()[0] == "[" else dict)
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        texts = list(value.values())
    elif isinstance(value, list):
        texts = [item.get("value") if isinstance(item, dict) else item for item in value]
    else:
        raise _CellError
    if not texts or any(not isinstance(text, str) or is_blank(text) for text in texts):
        raise _CellError("options without text")
    return value


def _lines(value: Any) -> str | list[str]:
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return value
    return _texts(value)


_SIMPLE: dict[ColumnType, Callable[[Any], Any]] = {
    "id": _id,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "texts": _texts,
    "integers": _integers,
    "objects": _objects,
    "object": _object,
    "list": partial(_from_json, kind=list),
    "options": _options,
    "lines": _lines,
}
