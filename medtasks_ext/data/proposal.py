"""What a file of rows suggests for a new dataset: columns, answer, labels, language.

Nothing of a row is kept but the values of a column with few of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.new import DatasetTemplate, templates
from medtasks_ext.registry.suites import Suite
from medtasks_ext.rows.row import Row

Kind = Literal["text", "number", "yes or no", "list", "object", "empty"]
Shape = Literal["letter", "label", "labels", "text"]

#: answer kinds for each shape of a gold column, the simplest first
KINDS: Mapping[Shape, tuple[str, ...]] = {
    "letter": ("exact_letter", "option_letter"),
    "label": ("label_word", "label"),
    "labels": ("label_set", "label_list"),
    "text": ("free_text", "text"),
}
MOST_LABELS = 40
LONGEST_LABEL = 60  # characters
_ANSWERS = (
    "answer",
    "gold",
    "label",
    "labels",
    "target",
    "output",
    "reference",
    "class",
    "diagnosis",
    "summary",
)
_IDS = ("id", "uid", "row_id", "pmid", "index", "key")
_SPLITS = ("split", "_split", "set", "fold")
_OPTION = re.compile(r"(?:op(?:tion)?_?|ending|choice_?)?([a-h]|\d)", re.IGNORECASE)
_MOST_READ = 2_000  # rows by which language and lengths are judged


@dataclass(frozen=True)
class ProposedColumn:
    """One column of a file."""

    name: str  # its header
    kind: Kind  # what most of its cells hold
    empty: int  # cells that hold nothing
    words: float  # mean length of its texts
    values: Mapping[str, int]  # its values and how often they occur, where these are few and short; else none

    @property
    def shown(self) -> str:
        """In words, without anything that a row says."""
        extent = f", {self.words:,.0f} words on average" if self.kind == "text" and not self.values else ""
        empty = f", {self.empty:,} empty" if self.empty else ""
        few = f", {len(self.values)} values" if self.values else ""
        return f"{self.kind}{extent}{few}{empty}"


@dataclass(frozen=True)
class Proposal:
    """What a file suggests; a person decides."""

    rows: int  # how many there are
    columns: tuple[ProposedColumn, ...]  # in their order
    inputs: tuple[str, ...]  # columns that the model is shown
    #: columns that hold the options of a question: one with lists, or one for each option
    options: tuple[str, ...]
    answer: str  # the gold column
    shape: Shape  # of the gold answers
    labels: tuple[str, ...]  # the values of the gold column, where it is closed
    language: str  # ISO 639 code of the inputs

    def kind_for(self, suite: Suite) -> str | None:
        """The answer kind that fits the gold column, of those that the suite has."""
        return next((kind for kind in KINDS[self.shape] if not suite.answers or kind in suite.answers), None)

    def template(self, kind: str) -> DatasetTemplate:
        """The template of a kind with these columns, labels and placeholder rows in its place."""
        given = templates()[kind]
        block = _columns_written(given.block, self)
        if self.labels:
            block = _labels_written(block, self)
        rows = tuple(self._row(number) for number in range(max(len(self.labels), 1)))
        return replace(given, block=block, rows=rows)

    def _row(self, number: int) -> Row:
        kinds = {column.name: column.kind for column in self.columns}
        row: Row = {}
        for name in (*self.inputs, *self.options):
            placeholder = f"TODO: {name} {{n}}"
            n = len(self.labels) if name in self.options else 2
            row[name] = (
                [f"{placeholder}, {part}" for part in range(1, n + 1)]
                if kinds[name] == "list"
                else placeholder
            )
        label = self.labels[number] if self.labels else "TODO: the gold answer {n}"
        kind = kinds[self.answer]
        row[self.answer] = {"list": [label], "yes or no": label == "yes", "number": number}.get(kind, label)
        return row


def propose(rows: Sequence[Mapping[str, Any]], answer: str | None = None) -> Proposal:
    """What the rows of a file suggest.

    Args:
        rows: as `read_rows` gives them.
        answer: the gold column; by default guessed by its name, else the last one.

    Raises:
        MedtasksError: there is no such column, or only one.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    if strange := [name for name in names if not name.isidentifier()]:
        raise MedtasksError(
            f"{len(strange)} of the columns' names have blanks or signs that templates cannot use",
            where=f"columns: {', '.join(names)}",
            remedy="rename them in the first line of the file: letters, digits and _",
        )
    columns = tuple(_column(name, [row.get(name) for row in rows]) for name in names)
    if answer is not None and answer not in names:
        raise MedtasksError(
            f"there is no column {answer!r}", where="--answer", remedy=f"use one of: {', '.join(names)}"
        )
    apart = {name for name in names if name.lower() in (*_IDS, *_SPLITS)}
    usable = [column for column in columns if column.name not in apart and column.kind != "empty"]
    if len(usable) < 2:
        raise MedtasksError(
            "a dataset needs a column for the input and one for the gold answer",
            where=f"columns: {', '.join(names)}",
            remedy="name the columns in the first line of the file",
        )
    gold = next(column for column in columns if column.name == (answer or _answer(usable)))
    options = _options(usable, gold.name)
    inputs = tuple(column.name for column in usable if column.name not in (gold.name, *options))
    if not inputs:
        raise MedtasksError(
            "no column is left for the input", where=f"answer: {gold.name}", remedy="give --answer COLUMN"
        )
    shape = _shape(gold, options)
    labels = tuple(sorted(gold.values)) if shape != "text" else ()
    return Proposal(len(rows), columns, inputs, options, gold.name, shape, labels, _language(rows, inputs))


def _column(name: str, cells: Sequence[Any]) -> ProposedColumn:
    held = [cell for cell in cells if cell not in (None, "") and cell == cell]  # NaN is not itself
    kinds = Counter(_kind(cell) for cell in held)
    kind: Kind = kinds.most_common(1)[0][0] if kinds else "empty"
    texts = [cell for cell in held[:_MOST_READ] if isinstance(cell, str)]
    words = sum(len(text.split()) for text in texts) / max(len(texts), 1)
    return ProposedColumn(name, kind, len(cells) - len(held), words, _few(held))


def _kind(cell: Any) -> Kind:
    if isinstance(cell, bool):
        return "yes or no"
    if isinstance(cell, int | float):
        return "number"
    if isinstance(cell, list):
        return "list"
    return "object" if isinstance(cell, dict) else "text"


def _few(cells: Sequence[Any]) -> Mapping[str, int]:
    """The values of a column that names things by a closed list: few, short, and each of them repeated."""
    flat = [part for cell in cells for part in (cell if isinstance(cell, list) else [cell])]
    if not all(isinstance(part, str | bool | int) for part in flat):
        return {}
    counts = Counter(str(part) if not isinstance(part, bool) else ("no", "yes")[part] for part in flat)
    closed = 2 <= len(counts) <= MOST_LABELS and 2 * len(counts) <= len(flat)
    return dict(counts) if closed and max(map(len, counts)) <= LONGEST_LABEL else {}


def _answer(columns: Iterable[ProposedColumn]) -> str:
    names = [column.name for column in columns]
    for wanted in _ANSWERS:
        for name in names:
            if name.lower() == wanted or name.lower().startswith(f"{wanted}_"):
                return name
    return names[-1]


def _options(columns: Sequence[ProposedColumn], answer: str) -> tuple[str, ...]:
    for column in columns:
        if column.kind == "list" and column.name.lower() in ("options", "choices", "endings"):
            return (column.name,)
    single = [item.name for item in columns if item.name != answer and _OPTION.fullmatch(item.name)]
    return tuple(single) if len(single) > 1 else ()


def _shape(gold: ProposedColumn, options: Sequence[str]) -> Shape:
    if gold.values and all(re.fullmatch("[A-H]", value) for value in gold.values):
        return "letter" if options else "label"
    if gold.kind == "list" and gold.values:
        return "labels"
    return "label" if gold.values else "text"


def _language(rows: Sequence[Mapping[str, Any]], inputs: Sequence[str]) -> str:
    import py3langid

    text = " ".join(str(row.get(name) or "") for row in rows[:200] for name in inputs)
    code: str = py3langid.classify(text[:20_000])[0]
    return {"nb": "no", "nn": "no"}.get(code, code)


def _columns_written(block: str, found: Proposal) -> str:
    """A template's block with the file's columns, and its own names derived from these."""
    described = {column.name: column for column in found.columns}
    shown = (*found.inputs, *found.options, found.answer)
    lines = [
        f'    {name}: "{"TODO: what it holds" if name != found.answer else "the gold answer"}'
        f' ({described[name].shown})"'
        for name in shown
    ]
    types = {name: _type(described[name], name in found.options) for name in shown}
    if typed := ", ".join(f"{name}: {kind}" for name, kind in types.items() if kind != "text"):
        lines.append(f"  types: {{{typed}}}")
    fields = {name: value for name, value in _fields(block, found).items() if name != value}
    if fields:
        lines += ["  fields:", *(f"    {name}: {_quoted(value)}" for name, value in fields.items())]
    head, rest = block.split("  columns:\n", 1)
    rest = re.sub(r"\A( {4}.*\n)+( {2}types: .*\n)?", "", rest)
    return "\n".join([f"{head}  columns:", *lines, rest])


def _type(column: ProposedColumn, is_options: bool) -> str:
    """The type of a column, as the schema of a task file names it."""
    if is_options and column.kind == "list":
        return "options"
    return {"list": "texts", "object": "object", "number": "number", "yes or no": "boolean"}.get(
        column.kind, "text"
    )


def _fields(block: str, found: Proposal) -> dict[str, str]:
    """The template's own names, as expressions over the file's columns."""
    own = re.findall(r"^ {4}(\w+):", block.split("columns:\n", 1)[1], flags=re.MULTILINE)
    own = own[: 3 if "options" in own[:3] else 2]
    prefix = re.search(r"^  prefix: (\w+)", block, flags=re.MULTILINE)
    gold, kind = found.answer, next(item.kind for item in found.columns if item.name == found.answer)
    if kind == "yes or no":
        gold = f"'yes' if {gold} else 'no'"
    elif kind == "number":
        gold = f"{gold} | string"
    if prefix:
        joined = f"{gold} | join(', ')" if found.shape == "labels" else gold
        gold = f"'{prefix[1]}: ' ~ ({joined})" if " " in joined else f"'{prefix[1]}: ' ~ {joined}"
    options = found.options[0] if len(found.options) == 1 else f"[{', '.join(found.options)}]"
    given = [" ~ '\\n' ~ ".join(found.inputs), *([options] if "options" in own else []), gold]
    return dict(zip(own, given, strict=True))


def _quoted(expression: str) -> str:
    return expression if re.fullmatch(r"\w+", expression) else '"' + expression.replace("\\", "\\\\") + '"'


def _labels_written(block: str, found: Proposal) -> str:
    if found.shape == "letter":
        return re.sub(r"letters: \[.*\]", f"letters: [{', '.join(found.labels)}]", block)
    head, rest = re.split(r"^  labels:", block, maxsplit=1, flags=re.MULTILINE)
    if "{" in rest.split("\n", 1)[0] or "[" in rest.split("\n", 1)[0]:
        named = ", ".join(f'"{label}"' for label in found.labels)
        head = head.replace("one word: yes or no", f"one of: {', '.join(found.labels)}")
        return f"{head}  labels: [{named}]\n"
    meanings = "".join(f'    "{label}": "TODO: when this label is right"\n' for label in found.labels)
    return f"{head}  labels:\n{meanings}"
