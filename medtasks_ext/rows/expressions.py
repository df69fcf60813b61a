"""The Jinja of task files, compiled once and run in a sandbox: templates, and expressions over columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import jinja2
from jinja2 import meta, nodes

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import RowValueError, excerpt
from medtasks_ext.rows.files import blocks
from medtasks_ext.rows.filters import json_objects, masked, renamed, spans
from medtasks_ext.rows.inline_options import question_and_options
from medtasks_ext.rows.options import as_letters, lettered, split_options
from medtasks_ext.rows.sandbox import CHARACTERS, NO_TEMPLATE, REFUSED, Declared

if TYPE_CHECKING:
    from medtasks_ext.rows.row import Row

#: What evaluation raises where a row does not have what the Jinja reads.
UNFIT = (jinja2.UndefinedError, TypeError, ValueError, KeyError, IndexError)
#: A column that is printed as it is.
_PRINTED_NAME = re.compile(r"\{\{ ([a-z_]+) \}\}")
#: Names of Jinja's own values.
_NO_COLUMNS = {"self", "true", "false", "none"}
_REMEDY = "mend the Jinja there"


def _shown(value: Any) -> Any:
    """A value that a template prints: never null, NaN, a list or an object, which no prompt means to show."""
    if isinstance(value, str | jinja2.Undefined):
        return value
    if value is None or isinstance(value, list | dict) or (isinstance(value, float) and math.isnan(value)):
        raise RowValueError(f"{excerpt(value)} stands where text belongs")
    return value


def _int(value: Any) -> int:
    """The filter `int` without a silent 0 for what is no integer."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise RowValueError(f"{excerpt(value)} is no integer") from None


_environment = Declared(
    {
        "as_letters": as_letters,
        "blocks": blocks,
        "int": _int,
        "json_objects": json_objects,
        "lettered": lettered,
        "masked": masked,
        "question_and_options": question_and_options,
        "renamed": renamed,
        "spans": spans,
        "split_options": split_options,
    },
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
    finalize=_shown,
)


@lru_cache(maxsize=4096)
def parsed(text: str) -> nodes.Template:
    """The syntax tree of a template, to be read only."""
    return _environment.parse(text)


def syntax_faults(text: str, *, expression: bool) -> Iterator[str]:
    """What is wrong with a template or expression that is parsed and not compiled, in words."""
    try:
        tree = parsed(f"{{{{ ({text}\n) }}}}" if expression and text else text)
    except NO_TEMPLATE as error:
        yield f"no valid Jinja ({error})"
        return
    for kind, known in ((nodes.Filter, _environment.filters), (nodes.Test, _environment.tests)):
        for node in tree.find_all(kind):
            if node.name not in known:
                yield f"no {kind.__name__.lower()} {node.name!r} in task files"


class _Evaluate(Protocol):
    def __call__(self, values: Mapping[str, Any], /) -> Any: ...


# by the text alone: many datasets have the same `{{ input }}`, and compiling takes a millisecond or two


@lru_cache(maxsize=2048)
def _compiled(text: str) -> jinja2.Template:
    return _environment.from_string(text)


@lru_cache(maxsize=2048)
def _pieces(text: str) -> tuple[str, ...] | None:
    """Constant text, a column's name, constant text, and so on, where nothing else is Jinja; or None."""
    pieces = _PRINTED_NAME.split(text.removesuffix("\n"))  # as Jinja leaves out a last line end
    if "\r" in text or any("{" in constant for constant in pieces[::2]) or _NO_COLUMNS & set(pieces[1::2]):
        return None
    return tuple(pieces)


@lru_cache(maxsize=2048)
def _variables(text: str) -> frozenset[str]:
    if "{" not in _PRINTED_NAME.sub("", text):  # the names stand there, and nothing else is Jinja
        return frozenset(_PRINTED_NAME.findall(text))
    if "{%" not in text:  # what binds no name reads all that it names
        named = {node.name for node in parsed(text).find_all(nodes.Name)}
        return frozenset(named - _environment.globals.keys())
    # a tree of its own: the search folds constants in place
    return frozenset(meta.find_undeclared_variables(_environment.parse(text)))


@lru_cache(maxsize=2048)
def _compiled_expression(text: str) -> _Evaluate:
    return _environment.compile_expression(text, undefined_to_none=False)


class Template:
    """A compiled template.

    Attributes:
        text: as the task file has it.
        where: the file, for messages.
    """

    def __init__(self, text: str, where: object) -> None:
        self.text, self.where = text, where
        try:
            self._compiled, self._pieces = _compiled(text), _pieces(text)
        except NO_TEMPLATE as error:
            raise MedtasksError(f"template {text[:60]!r}: {error}", where=where, remedy=_REMEDY) from None

    def render(self, values: Mapping[str, Any]) -> str:
        """The text.

        Raises:
            MedtasksError: the template does what the sandbox forbids.
            Exception: one of `UNFIT`, or what a filter raises for a value that it was not made for.
        """
        if self._pieces is not None and (joined := _joined(self._pieces, values)) is not None:
            return joined
        try:
            return self._compiled.render(values)
        except REFUSED as error:
            raise _forbidden(self.text, self.where, error) from None

    def variables(self) -> frozenset[str]:
        """The names that the template reads."""
        return _variables(self.text)


def _joined(pieces: tuple[str, ...], values: Mapping[str, Any]) -> str | None:
    """What rendering gives where all values are texts: most templates are a column or two, and rows are many.

    None where Jinja has more to say: of a value that is missing or no text, of a text beyond all bounds.
    """
    texts = list(pieces)
    for place in range(1, len(pieces), 2):
        value = values.get(pieces[place])
        if type(value) is not str:
            return None
        texts[place] = value
    joined = "".join(filter(None, texts))  # one text alone stays the object that it is
    return joined if len(joined) <= CHARACTERS else None


class Expression:
    """A compiled expression.

    Attributes:
        text: as the task file has it.
        where: the file, for messages.
    """

    def __init__(self, text: str, where: object) -> None:
        self.text, self.where = text, where
        try:
            self._evaluate = _compiled_expression(text)
        except NO_TEMPLATE as error:
            raise MedtasksError(f"expression {text[:60]!r}: {error}", where=where, remedy=_REMEDY) from None

    def value(self, values: Mapping[str, Any]) -> Any:
        """The value; it may be a `jinja2.Undefined`.

        Raises:
            MedtasksError: the expression does what the sandbox forbids.
            Exception: one of `UNFIT`, or what a filter raises for a value that it was not made for.
        """
        try:
            return self._evaluate(values)
        except REFUSED as error:
            raise _forbidden(self.text, self.where, error) from None

    def of_row(self, row: Row) -> Any:
        """The value over the columns of a row, which is also there whole, as `row`. Raises as `value`."""
        return self.value({"row": row, **row})

    def of_row_or_none(self, row: Row) -> Any:
        """The value over the columns of a row; None where the row does not have what the expression names."""
        try:
            value = self.of_row(row)
        except UNFIT:
            return None
        return None if isinstance(value, jinja2.Undefined) else value


def _forbidden(text: str, where: object, error: Exception) -> MedtasksError:
    return MedtasksError(
        f"the Jinja {text[:60]!r} does what a task file may not: {error}", where=where, remedy=_REMEDY
    )
