"""What a file of rows suggests for a new dataset: columns, answer, labels, language.

Nothing of a row is kept but the values of a column with few of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from medtasks_ext.data.roles import (
    SAME,
    Gold,
    Options,
    follows,
    gold_column,
    gold_of,
    is_prose,
    left_out,
    options_of,
    with_letters_of_gold,
)
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.new import DatasetTemplate, templates
from medtasks_ext.registry.suites import Suite
from medtasks_ext.rows.row import Row

Kind = Literal["text", "number", "yes or no", "list", "object", "empty"]
Shape = Literal["choice", "choices", "label", "labels", "ordinal", "number", "text"]

#: answer kinds for each shape of a gold column, those of no paper first; a paper's suite has its own
KINDS: Mapping[Shape, tuple[str, ...]] = {
    "choice": ("choice", "exact_letter", "option_letter"),
    "choices": ("choices",),
    "label": ("category", "ordinal", "label_word", "label"),
    "labels": ("labels", "label_set", "label_list"),
    "ordinal": ("ordinal", "category", "label_word", "label"),
    "number": ("number",),
    "text": ("prose", "prose_axes", "free_text", "free_text_axes", "text"),
}
#: kinds whose templates have options, and a gold answer that is a letter
_LETTERED = ("choice", "choices", "exact_letter", "option_letter")
MOST_LABELS = 40
LONGEST_LABEL = 60  # characters
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
    options: Options | None  # of the questions
    answer: str  # the gold column
    gold: Gold | None  # how it says which options are right
    shape: Shape  # of the gold answers
    labels: tuple[str, ...]  # what the gold answers may be, where they are closed
    language: str  # ISO 639 code of the inputs
    left_out: Mapping[str, str]  # column -> why no prompt shows it

    def kind_for(self, suite: Suite) -> str | None:
        """The answer kind that fits the gold column, of those that the suite has."""
        return next((kind for kind in KINDS[self.shape] if not suite.answers or kind in suite.answers), None)

    @property
    def roles(self) -> dict[str, str]:
        """Column -> what it is taken as."""
        roles = {name: f"not used: {why}" for name, why in self.left_out.items()}
        roles |= dict.fromkeys(self.inputs, "input")
        if self.options:
            both = self.options.form == "text"
            roles |= dict.fromkeys(self.options.columns, "input and options" if both else "options")
        return roles | {self.answer: "gold answer"}

    def template(self, kind: str, *, pool: bool = False) -> DatasetTemplate:
        """The template of a kind with these columns, labels and placeholder rows in its place.

        Args:
            kind: of the answers, one of `KINDS`.
            pool: whether there is a file of examples; else five test rows are shown and never scored.
        """
        given = templates()[kind]
        block = _columns_written(given.block, self, kind)
        if self.labels:
            block = _labels_written(block, self, kind)
        if not pool:
            block = re.sub(
                r"^(  identity: .*\n)", r"\1  held_out: always\n", block, count=1, flags=re.MULTILINE
            )
        rows = tuple(self._row(number) for number in range(max(len(self.labels), 1)))
        return replace(given, block=block, rows=rows)

    def _row(self, number: int) -> Row:
        described = {column.name: column for column in self.columns}
        row: Row = {}
        n = len(self.labels)
        texts = [f"TODO: option {place} of row {{n}}" for place in range(1, n + 1)]
        for name in self.inputs:
            placeholder = f"TODO: {name} {{n}}"
            row[name] = (
                [f"{placeholder}, {part}" for part in (1, 2)]
                if described[name].kind == "list"
                else placeholder
            )
        if self.options and self.options.form == "columns":
            row |= dict(zip(self.options.columns, texts, strict=False))
        elif self.options:
            name, mark = self.options.columns[0], re.sub(r"\{.*\}", "{}", self.options.mark)
            row[name] = {
                "list": texts,
                "object": dict(zip(self.options.labels, texts, strict=False)),
                "text": row.get(name, "")
                + "".join(
                    mark.replace("{}", label) + text
                    for label, text in zip(self.options.labels, texts, strict=False)
                ),
            }[self.options.form]
        row[self.answer] = self._gold_cell(number, texts, described[self.answer].kind)
        return row

    def _gold_cell(self, number: int, texts: list[str], kind: Kind) -> Any:
        """A gold answer as the file writes them."""
        label = self.labels[number] if self.labels else "TODO: the gold answer {n}"
        gold = self.gold
        if gold is None:
            if self.shape in ("number", "ordinal") and kind == "number":
                return int(label) if self.labels else number + 1
            return {"list": [label], "yes or no": label == "yes", "number": number}.get(kind, label)
        named: Any = {
            "label": label,
            "text": texts[number],
            "index": number + gold.first,
            "marked": f"{label}. {texts[number]}",
        }[gold.says]
        if gold.says == "index" and kind == "text":
            named = str(named)
        return [named] if gold.is_list else named


def propose(rows: Sequence[Mapping[str, Any]], answer: str | None = None) -> Proposal:
    """What the rows of a file suggest.

    Args:
        rows: as `read_rows` gives them.
        answer: the gold column; by default one whose cells name options, or whose name says so.

    Raises:
        MedtasksError: there is no such column, or only one.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = tuple(_column(name, [row.get(name) for row in rows]) for name in names)
    if answer is not None and answer not in names:
        raise MedtasksError(
            f"there is no column {answer!r}", where="--answer", remedy=f"use one of: {', '.join(names)}"
        )
    out = {name: why for name in names if name != answer and (why := left_out(rows, name))}
    usable = [name for name in names if name not in out]
    if len(usable) < 2:
        raise MedtasksError(
            "a dataset needs a column for the input and one for the gold answer",
            where=f"columns: {', '.join(names)}",
            remedy="name the columns in the first line of the file",
        )
    language = _language(rows, [name for name in usable if is_prose(rows, name)] or usable)
    # options may be the same in all rows: yes, no and maybe
    may_hold = [name for name in names if name != answer and out.get(name, SAME) == SAME]
    options = options_of(rows, may_hold, language)
    held = set(options.columns) if options and options.form != "text" else set()
    may_be = [name for name in usable if name not in held]
    if options:
        options = with_letters_of_gold(rows, may_be, options, language)
    if answer is None:
        answer, gold = gold_column(rows, may_be, options)
    else:
        gold = gold_of(rows, answer, options) if options else None
    if options and gold is None:  # what looks like options has nothing to do with the gold answers
        options, held = None, set()
    out = {name: why for name, why in out.items() if name not in held}
    out |= {
        name: "follows from the gold answer"
        for name in usable
        if name not in (answer, *(options.columns if options else ()))
        and follows(rows, name, answer, options)
    }
    inputs = [name for name in usable if name not in (answer, *held, *out)]
    if prose := [name for name in inputs if is_prose(rows, name)]:
        out |= dict.fromkeys([name for name in inputs if name not in prose], "beside texts")
        inputs = prose
    if not inputs:
        raise MedtasksError(
            "no column is left for the input", where=f"answer: {answer}", remedy="give --answer COLUMN"
        )
    column = next(item for item in columns if item.name == answer)
    shape, labels = _shape(column, options, gold)
    if options and gold and gold.says == "label":  # as the file writes them
        said = {str(x) for row in rows for x in _parts(row.get(answer))}
        if not any(x in options.labels for x in said) and any(x.isalpha() for x in said):
            labels = tuple(label.lower() for label in labels)
            options = replace(options, labels=labels)
    return Proposal(len(rows), columns, tuple(inputs), options, answer, gold, shape, labels, language, out)


def _parts(cell: Any) -> list[Any]:
    return cell if isinstance(cell, list) else [] if cell is None else [cell]


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


def _shape(
    column: ProposedColumn, options: Options | None, gold: Gold | None
) -> tuple[Shape, tuple[str, ...]]:
    """The shape of the gold answers, and what they may be where they are closed."""
    if options and gold:
        return "choices" if gold.several else "choice", options.labels
    values = tuple(sorted(column.values))
    if column.kind == "number":
        levels = sorted(map(int, values)) if values else []
        if 3 <= len(levels) <= 11 and levels == list(range(levels[0], levels[-1] + 1)):
            return "ordinal", tuple(map(str, levels))
        return ("label", values) if len(values) == 2 else ("number", ())
    if column.kind == "list" and values:
        return "labels", values
    return ("label", values) if values else ("text", ())


def _language(rows: Sequence[Mapping[str, Any]], inputs: Sequence[str]) -> str:
    import py3langid

    text = " ".join(str(row.get(name) or "") for row in rows[:200] for name in inputs)
    code: str = py3langid.classify(text[:20_000])[0]
    return {"nb": "no", "nn": "no"}.get(code, code)


def _columns_written(block: str, proposal: Proposal, kind: str) -> str:
    """A template's block with the file's columns, and its own names derived from these."""
    described = {column.name: column for column in proposal.columns}
    held = proposal.options.columns if proposal.options else ()
    shown = list(dict.fromkeys((*proposal.inputs, *held, proposal.answer)))
    lines = [
        f'    {_scalar(name)}: "{"TODO: what it holds" if name != proposal.answer else "the gold answer"}'
        f' ({described[name].shown})"'
        for name in shown
    ]
    types = {name: _type(described[name], proposal.options) for name in shown}
    if typed := ", ".join(f"{_scalar(name)}: {kind}" for name, kind in types.items() if kind != "text"):
        lines.append(f"  types: {{{typed}}}")
    fields = {name: value for name, value in _fields(block, proposal, kind).items() if name != value}
    if fields:
        lines += ["  fields:", *(f"    {name}: {_quoted(value)}" for name, value in fields.items())]
    head, rest = block.split("  columns:\n", 1)
    rest = re.sub(r"\A( {4}.*\n)+( {2}types: .*\n)?", "", rest)
    return "\n".join([f"{head}  columns:", *lines, rest])


def _type(column: ProposedColumn, options: Options | None) -> str:
    """The type of a column, as the schema of a task file names it."""
    if options and column.name in options.columns and column.kind == "list":
        return "options"
    return {"list": "texts", "object": "object", "number": "number", "yes or no": "boolean"}.get(
        column.kind, "text"
    )


def _fields(block: str, proposal: Proposal, kind: str) -> dict[str, str]:
    """The template's own names, as expressions over the file's columns."""
    own = re.findall(r"^ {4}(\w+):", block.split("columns:\n", 1)[1], flags=re.MULTILINE)
    own = own[: 3 if "options" in own[:3] else 2]
    prefix = re.search(r"^  prefix: (\w+)", block, flags=re.MULTILINE)
    gold = _gold_written(proposal, kind)
    if prefix:
        joined = f"{gold} | join(', ')" if proposal.shape == "labels" else gold
        gold = f"'{prefix[1]}: ' ~ ({joined})" if " " in joined else f"'{prefix[1]}: ' ~ {joined}"
    texts = [_named(name) for name in proposal.inputs]
    given = [" ~ '\\n' ~ ".join(texts)]
    if "options" in own:
        given.append(_options_written(proposal.options) if proposal.options else "[]")
        if proposal.options and proposal.options.form == "text":
            held = _named(proposal.options.columns[0])
            question = f"({held} | question_and_options({proposal.options.mark!r})).question"
            given[0] = given[0].replace(held, question, 1)
    return dict(zip(own, [*given, gold], strict=True))


def _options_written(options: Options) -> str:
    first = _named(options.columns[0])
    # an object may have its labels in another order in another row
    is_sorted = list(options.labels) == sorted(options.labels)
    return {
        "list": first,
        "object": f"{first} | split_options" if is_sorted else f"{first}.values() | list",
        "columns": f"[{', '.join(map(_named, options.columns))}] | select | list",
        "text": f"({first} | question_and_options({options.mark!r})).options",
    }[options.form]


def _gold_written(proposal: Proposal, kind: str) -> str:
    """The gold answer as the template has it: a label, a list of labels, or what the column holds."""
    name, gold = _named(proposal.answer), proposal.gold
    column = next(item for item in proposal.columns if item.name == proposal.answer)
    if gold is None:
        if column.kind == "yes or no":
            return f"'yes' if {name} else 'no'"
        return f"{name} | string" if column.kind == "number" and proposal.shape != "number" else name
    letters = "".join(proposal.labels)
    one = {
        "label": "{}",
        "index": f"'{letters}'[{{}} | int{' - 1' * gold.first}]",
        "marked": "({} | trim)[0]",
        "text": "{}",
    }[gold.says]
    several = proposal.shape == "choices"
    if several and gold.is_list and gold.says != "index":
        labels = name
    elif several and gold.joined:
        labels = f"{name}.replace({gold.joined!r}, '') | replace(' ', '') | list"
    elif several and not gold.is_list:
        labels = f"{name} | list"
    else:
        labels = one.format(f"{name}[0]" if gold.is_list else name)
        if gold.says == "text" and kind not in ("choice", "choices"):
            labels = (
                f"'{letters}'[({_options_written(proposal.options)}).index({labels})]"
                if proposal.options
                else labels
            )
        return f"[{labels}]" if several else labels
    return labels


def _named(name: str) -> str:
    """A column in an expression."""
    return name if name.isidentifier() else f"row[{name!r}]"


def _scalar(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _quoted(expression: str) -> str:
    if re.fullmatch(r"\w+", expression):
        return expression
    return '"' + expression.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _labels_written(block: str, proposal: Proposal, kind: str) -> str:
    if proposal.options and kind in _LETTERED:
        named = ", ".join(f'"{label}"' if label in "yYnN0123456789" else label for label in proposal.labels)
        block = re.sub(r"(letters|labels): \[.*?\]", rf"\1: [{named}]", block)
        return block.replace('lettered("ABCDE")', f'lettered("{"".join(proposal.labels)}")')
    head, rest = re.split(r"^  labels:", block, maxsplit=1, flags=re.MULTILINE)
    if "{" in rest.split("\n", 1)[0] or "[" in rest.split("\n", 1)[0]:
        named = ", ".join(f'"{label}"' for label in proposal.labels)
        if kind == "ordinal" and proposal.shape != "ordinal":  # words say no order
            return f"{head}  labels: [{named}]  # TODO: put them in order, from the lowest to the highest\n"
        head = head.replace("one of: yes or no", f"one of: {', '.join(proposal.labels)}")
        head = head.replace("one word: yes or no", f"one of: {', '.join(proposal.labels)}")
        return f"{head}  labels: [{named}]\n"
    meanings = "".join(f'    "{label}": "TODO: when this label is right"\n' for label in proposal.labels)
    return f"{head}  labels:\n{meanings}"
