"""The Jinja of task files, compiled once and run in a sandbox: templates, and expressions over columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
from jinja2 import meta, nodes

from medtasks_ext.errors import MedtasksError, RowError, near, some
from medtasks_ext.privacy import RowValueError, excerpt, what_happened
from medtasks_ext.rows.filters import FILTERS
from medtasks_ext.rows.sandbox import NO_TEMPLATE, REFUSED, Declared

if TYPE_CHECKING:
    from medtasks_ext.rows.row import ReadRow, Row
    from medtasks_ext.rows.spec import DatasetSpec

#: What evaluation raises where a row does not have what the Jinja reads.
UNFIT = (jinja2.UndefinedError, TypeError, ValueError, KeyError, IndexError)
_REMEDY = "mend the Jinja there"


def _shown(value: Any) -> Any:
    """A value that a template prints: never null, NaN, a list or an object, which no prompt means to show."""
    if isinstance(value, str | jinja2.Undefined):
        return value
    if value is None or isinstance(value, list | dict) or (isinstance(value, float) and math.isnan(value)):
        raise RowValueError(f"{excerpt(value)} stands where text belongs")
    return value


_environment = Declared(
    FILTERS,
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


# by the text alone: many datasets have the same `{{ input }}`, and compiling takes a millisecond or two


@lru_cache(maxsize=2048)
def _compiled(text: str) -> jinja2.Template:
    return _environment.from_string(text)


@lru_cache(maxsize=2048)
def _variables(text: str) -> frozenset[str]:
    # a tree of its own: the search folds constants in place
    return frozenset(meta.find_undeclared_variables(_environment.parse(text)))


@lru_cache(maxsize=2048)
def _compiled_expression(text: str) -> Callable[..., Any]:
    return _environment.compile_expression(text, undefined_to_none=False)


class _Compiled:
    """`key`: what holds it there, for messages; its first words where that is not known."""

    _compile: Callable[[str], Callable[..., Any]]

    def __init__(self, text: str, where: object, key: str = "") -> None:
        self.text, self.where = text, where
        try:
            self._use = type(self)._compile(text)
        except NO_TEMPLATE as error:
            what = f"{key or f'{type(self).__name__.lower()} {text[:60]!r}'}: no valid Jinja ({error})"
            raise MedtasksError(what, where=where, remedy=_REMEDY) from None

    def value(self, values: Mapping[str, Any]) -> Any:
        """Raises MedtasksError of what the sandbox forbids; of an unfit value one of `UNFIT`, or its own."""
        try:
            return self._use(values)
        except REFUSED as error:
            what = f"the Jinja {self.text[:60]!r} does what a task file may not: {error}"
            raise MedtasksError(what, where=self.where, remedy=_REMEDY) from None


class Template(_Compiled):
    _compile = staticmethod(lambda text: _compiled(text).render)

    def render(self, values: Mapping[str, Any]) -> str:
        """The text. Raises as `value`."""
        return str(self.value(values))

    def variables(self) -> frozenset[str]:
        return _variables(self.text)


class Expression(_Compiled):
    _compile = staticmethod(_compiled_expression)

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


class PromptTemplate(Template):
    """One template of a task; `key` is what holds it in the task file: `prompt.input`, `judge.question`."""

    def __init__(self, key: str, text: str, file: Path) -> None:
        super().__init__(text, file, key)
        self.key = key

    def of(self, row: ReadRow, values: Row) -> str:
        """Raises RowError: the row lacks what the template reads."""
        try:
            return self.render(values)
        except UNFIT as error:
            what = what_happened(error, self.text)
            remedy = "the row lacks a field that the template uses, or holds a value that is not foreseen"
            if unknown := sorted(self.variables() - values.keys()):
                what = f"no column or field {unknown[0]!r}{near(unknown[0], values)}"
                remedy = f"name one of: {some([name for name in values if name[0] != '_'], 12)}"
            cause = f"{self.key} cannot be rendered"
            raise RowError(
                f"{cause} for {row.place}: {what}",
                row=row.place,
                where=row.where,
                remedy=remedy,
                cause=f"{cause}: {what}",
            ) from None


class Texts(NamedTuple):
    input: str  # the input, without the line that asks for the answer
    asked: str  # the input with that line
    target: str | None  # the gold answer as written; None where the authors left it out


class TextReader:
    """Renders the rows of one dataset for one strategy; with `cot` the prompt ends without a cue."""

    def __init__(self, spec: DatasetSpec, file: Path, *, cot: bool) -> None:
        self._input = PromptTemplate("prompt.input", spec.prompt.input, file)
        cue = "" if cot else spec.prompt.cue
        self._cue = PromptTemplate("prompt.cue", cue, file) if cue else None
        self.target = PromptTemplate("prompt.target", spec.prompt.target, file)
        self._may_lack_gold = spec.rows.official_name is not None

    def read(self, row: ReadRow, values: Row) -> Texts:
        text = self._input.of(row, values)
        asked = f"{text}\n{self._cue.of(row, values)}" if self._cue else text
        lacks_gold = self._may_lack_gold and not str(values.get("output") or "").strip()
        return Texts(text, asked, None if lacks_gold else self.target.of(row, values))
