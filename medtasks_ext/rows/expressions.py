"""The Jinja of task files, compiled once and run in a sandbox: templates, and expressions over columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
from jinja2 import meta, nodes

from medtasks_ext.errors import MedtasksError, RowError, near, some
from medtasks_ext.privacy import RowValueError, excerpt, what_happened
from medtasks_ext.rows.files import blocks
from medtasks_ext.rows.filters import (
    as_letters,
    json_objects,
    lettered,
    masked,
    renamed,
    spans,
    split_options,
)
from medtasks_ext.rows.sandbox import CHARACTERS, NO_TEMPLATE, REFUSED, Declared

if TYPE_CHECKING:
    from medtasks_ext.rows.row import ReadRow, Row
    from medtasks_ext.rows.spec import DatasetSpec

# ----------------------------------------------------------------------
# Questions whose options stand in their text: both are taken apart by how an option is marked.

#: How a mark is written in a task file: the labels of the options in braces, in order, one character each.
_LABELS = re.compile(r"\{([^\s{}]{2,})\}")
#: What may stand between two options besides blanks, where options have an end.
_BETWEEN = " \t\r\n,;"
#: Other ways to write a label: alef is often written without its hamza.
_WRITTEN = {"أ": "أاإآ"}
#: Lengthens an Arabic letter, and is no letter: `هـ` is `ه`.
_TATWEEL = "\u0640"


def question_and_options(text: str, mark: str, end: str = "") -> Row:
    """The `question` before the first option, and the `options`.

    A text can be read if its marks, in the order of their labels, can be chosen in one way alone. So a mark
    that occurs in the question or once more in an option does no harm as long as one reading is left.

    Args:
        text: question and options.
        mark: what stands before each option, with all labels in braces: `{ABCDE}) ` finds `A) `, then `B) `.
            What is not in braces is compared to the letter. A line break there (`\\n{ABCD}. `) asks for
            options at the beginnings of lines. Arabic labels may have tatweel, and alef any form.
        end: what stands after each option, such as a quotation mark.

    Raises:
        ValueError: fewer than two options, one that is missing or empty, or several ways to read them.
    """
    labels, marks = _marks(mark, text)
    chosen = _chosen(labels, marks)
    question = text[: chosen[0][0]].strip()
    if not question:
        raise RowValueError("no question stands before its options")
    options = []
    for (_, begin, label), stop in zip(
        chosen, [*(start for start, _, _ in chosen[1:]), len(text)], strict=True
    ):
        option = text[begin:stop].strip()
        if end:
            option, ended, rest = option.rpartition(end)
            if not ended or rest.strip(_BETWEEN):
                raise RowValueError(f"option {labels[label]} does not end with {end!r}")
        options.append(option.strip())
        if not options[-1]:
            raise RowValueError(f"option {labels[label]} has no text")
    return {"question": question, "options": options}


@lru_cache(maxsize=64)
def _compiled_marks(mark: str) -> tuple[str, re.Pattern[str], bool]:
    parts = _LABELS.split(mark)
    if len(parts) != 3 or len(set(parts[1])) != len(parts[1]):
        raise RowValueError(
            f"the mark {mark!r} does not hold labels of options in braces, as '{{ABCD}}) ' does"
        )
    before, labels, after = parts
    written = "".join(_WRITTEN.get(label, label) for label in labels)
    pattern = f"(?=({re.escape(before)}([{re.escape(written)}]){_TATWEEL}?{re.escape(after)}))"
    return labels, re.compile(pattern), not before


def _marks(mark: str, text: str) -> tuple[str, list[tuple[int, int, int]]]:
    labels, pattern, label_first = _compiled_marks(mark)
    marks = []
    for match in pattern.finditer(text):
        before = text[match.start() - 1] if match.start() else " "
        # a letter or digit there is written without a gap: it ends a word; Chinese texts have none
        if not (label_first and (before.isdigit() or before.lower() != before.upper())):
            label = next(at for at, label in enumerate(labels) if match[2] in _WRITTEN.get(label, label))
            marks.append((match.start(1), match.end(1), label))
    return labels, marks


def _chosen(labels: str, marks: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The marks of the one reading: the first label, the second after it, and so on."""
    ways = [0] * len(
        labels
    )  # to read the labels up to this one, among the marks so far; 2 stands for several
    readings = []
    for _, _, label in marks:
        readings.append(1 if label == 0 else ways[label - 1])
        ways[label] = min(2, ways[label] + readings[-1])
    last = max((label for label, n in enumerate(ways) if n), default=-1)
    if last < 1:
        raise RowValueError(
            f"{'one option' if last == 0 else 'no option'} found, where a question has two or more"
        )
    if ways[last] > 1:
        raise RowValueError(f"the options {labels[0]} to {labels[last]} can be read in several ways")
    chosen: list[tuple[int, int, int]] = []
    for item, n in zip(reversed(marks), reversed(readings), strict=True):
        if n and item[2] == last - len(chosen):
            chosen.append(item)
    chosen.reverse()
    if beyond := [label for begin, _, label in marks if label > last and begin > chosen[0][0]]:
        raise RowValueError(
            f"option {labels[min(beyond)]} stands there, option {labels[last + 1]} before it does not"
        )
    return chosen


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
    """An integer; a fault for what is none, where Jinja has a silent 0."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise RowValueError(f"{excerpt(value)} is no integer") from None


#: Filters that fields and templates of task files have besides Jinja's own.
FILTERS: Mapping[str, Callable[..., Any]] = {
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
}
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
def _compiled_expression(text: str) -> Callable[..., Any]:
    return _environment.compile_expression(text, undefined_to_none=False)


class _Compiled:
    """`key`: what holds it there, for messages; its first words where that is not known."""

    def __init__(self, text: str, where: object, key: str = "") -> None:
        self.text, self.where = text, where
        try:
            self._compile()
        except NO_TEMPLATE as error:
            what = f"{key or f'{type(self).__name__.lower()} {text[:60]!r}'}: no valid Jinja ({error})"
            raise MedtasksError(what, where=where, remedy=_REMEDY) from None

    def _compile(self) -> None:
        raise NotImplementedError

    def _forbidden(self, error: Exception) -> MedtasksError:
        what = f"the Jinja {self.text[:60]!r} does what a task file may not: {error}"
        return MedtasksError(what, where=self.where, remedy=_REMEDY)


class Template(_Compiled):
    def _compile(self) -> None:
        self._template, self._pieces = _compiled(self.text), _pieces(self.text)

    def render(self, values: Mapping[str, Any]) -> str:
        """Raises MedtasksError of what the sandbox forbids; of an unfit value one of `UNFIT`, or its own."""
        if self._pieces is not None and (joined := _joined(self._pieces, values)) is not None:
            return joined
        try:
            return self._template.render(values)
        except REFUSED as error:
            raise self._forbidden(error) from None

    def variables(self) -> frozenset[str]:
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


class Expression(_Compiled):
    def _compile(self) -> None:
        self._evaluate = _compiled_expression(self.text)

    def value(self, values: Mapping[str, Any]) -> Any:
        """Raises MedtasksError of what the sandbox forbids; of an unfit value one of `UNFIT`, or its own."""
        try:
            return self._evaluate(values)
        except REFUSED as error:
            raise self._forbidden(error) from None

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
