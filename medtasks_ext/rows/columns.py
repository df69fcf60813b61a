"""The columns of source rows: what type each has, which values it may hold, and whether it may be empty.

A checked value is of the declared type, whatever file it comes from: numbers are numbers, lists are lists.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import model_validator

from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.privacy import excerpt
from medtasks_ext.strict import Strict

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
#: What each type is called in messages and templates.
TYPES: dict[ColumnType, str] = {
    "text": "text",
    "id": "text or an integer",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "texts": 'a list of texts, such as ["one", "two"]',
    "integers": "a list of integers, such as [0, 2]",
    "objects": 'a list of objects, such as [{"key": "value"}]',
    "object": 'an object, such as {"key": "value"}',
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
        return f"{'a list, each ' if self.type in ('texts', 'integers') else ''}one of: {listed}"

    def fault(self, value: object, why: str) -> tuple[str, str]:
        """What is wrong with a value, without its text, and what to write instead."""
        shown, remedy = excerpt(value), "write that, or take the row out"
        if self.values:
            remedy = "write one of these values, in the same case, or take the row out"
            if len(label := str(value).strip()) <= _SHORT:
                shown = repr(label)
        return f"holds {shown}{f' ({why})' if why else ''}, expected {self.expected}", remedy


class CellError(ValueError):
    """A value that does not fit; the argument says in what way."""


def is_missing(value: object, texts: list[str] | tuple[()] = ()) -> bool:
    """Whether a cell holds nothing: null, not a number, no character but blanks, or one of the texts."""
    if isinstance(value, str):
        return not value or value in _NOT_A_NUMBER or value in texts or not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def checker(column: Column) -> Callable[[Any], Any]:
    """What turns a value into one of the column's type, or raises CellError."""
    if column.type == "text":
        if column.values is not None:
            return partial(_one_of, {str(value): str(value) for value in column.values})
        return _text if column.pattern is None else partial(_matching, re.compile(column.pattern, re.DOTALL))
    simple = _SIMPLE[column.type]
    if column.values is None:
        return simple
    allowed = frozenset(column.values)
    if column.type in ("texts", "integers"):
        return lambda value: [_among(allowed, item) for item in simple(value)]
    return lambda value: _among(allowed, simple(value))


def _among(allowed: frozenset[Value], value: Value) -> Value:
    if value not in allowed:
        raise CellError("another value")
    return value


def _one_of(allowed: Mapping[str, str], value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise CellError
    text = str(value).strip()
    if (meant := allowed.get(text)) is not None:
        return meant
    folded = {item.casefold() for item in allowed}
    raise CellError("another case" if text.casefold() in folded else "another value")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CellError
    return value


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if not pattern.fullmatch(_text(value).strip()):
        raise CellError("text of another form")
    return str(value)


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    raise CellError


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return _integer(value) if _INTEGER.fullmatch(value.strip()) else float(value)
    raise CellError


def _boolean(value: Any) -> bool:
    truth = _TRUTH.get(str(value).strip().lower()) if isinstance(value, str | int | float) else None
    if truth is None:
        raise CellError
    return truth


def _from_json(value: Any, kind: type) -> Any:
    """A list or object, also where a cell holds it as JSON, or as Python prints it, which pandas does."""
    if isinstance(value, str) and value.lstrip()[:1] == ("[" if kind is list else "{"):
        try:
            try:
                value = parse_json(value)
            except JsonError:
                value = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise CellError("text that is not valid JSON") from None
    if not isinstance(value, kind):
        raise CellError
    return value


def _nested(value: Any, kind: type, items: type = object) -> Any:
    """A list or object with no NaN anywhere in it; of a list, all items of a type."""
    value = _from_json(value, kind)
    if kind is list and not all(isinstance(item, items) for item in value):
        raise CellError(f"a list with other items than {'texts' if items is str else 'objects'}")
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack += item.values() if isinstance(item, dict) else item
        elif isinstance(item, float) and math.isnan(item):
            raise CellError("NaN within")
    return value


def _integers(value: Any) -> list[int]:
    items = _from_json(value, list)
    if any(isinstance(item, str) for item in items):
        raise CellError("a list with other items than integers")
    return [_integer(item) for item in items]


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
        raise CellError
    if not texts or any(not isinstance(text, str) or is_missing(text) for text in texts):
        raise CellError("options without text")
    return value


def _lines(value: Any) -> Any:
    is_text = isinstance(value, str) and not value.lstrip().startswith("[")
    return value if is_text else _nested(value, list, str)


_SIMPLE: dict[ColumnType, Callable[[Any], Any]] = {
    "id": lambda value: value if isinstance(value, str) else _integer(value),
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "texts": partial(_nested, kind=list, items=str),
    "integers": _integers,
    "objects": partial(_nested, kind=list, items=dict),
    "object": partial(_nested, kind=dict),
    "list": partial(_from_json, kind=list),
    "options": _options,
    "lines": _lines,
}
