"""Tables for the terminal; plain text when it is not one."""

from __future__ import annotations

import os
import re
import string
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from medtasks_ext.cli.words import counted
from medtasks_ext.prompts.documents import row_counts_words
from medtasks_ext.registry import registry
from medtasks_ext.results.rollup import mean
from medtasks_ext.runs.records import note_of_traces

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import ConsoleOptions, RenderResult

    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.registry.yamlfile import Config
    from medtasks_ext.results.rollup import Row


def console() -> Console:
    """Standard output; wide enough not to wrap when it is a file or a pipe, unless COLUMNS says how wide."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 140, highlight=False)


#: Stands above whatever was computed of sample rows.
SAMPLE_DATA = "SAMPLE DATA: synthetic rows, not a result"


class Name:
    """A cell that breaks at blanks and underscores: names of tasks and groups are long, terminals narrow."""

    def __init__(self, text: str | Text) -> None:
        self.text = Text.from_markup(text) if isinstance(text, str) else text

    @property
    def longest_part(self) -> int:
        return max((cell_len(part.rstrip()) for part in _PARTS.findall(self.text.plain)), default=0)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        whole = max(map(cell_len, self.text.plain.splitlines()), default=0)
        return Measurement(self.longest_part, whole).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ends, start = [], 0
        for part in _PARTS.finditer(self.text.plain):
            if (
                part.start() > start
                and cell_len(self.text.plain[start : part.end()].rstrip()) > options.max_width
            ):
                ends.append(start := part.start())
        for line in self.text.divide(ends):
            line.rstrip()
            yield line


_PARTS = re.compile(r"[^_ ]*[_ ]+|[^_ ]+")


_NARROW = 100  # columns of a terminal


#: What stands where a figure is missing.
MISSING = "–"
#: Name of a field; formats of fields (`{low:.3f}`), of which the first counts whose fields are all there; or
#: what is worked out of a row.
Value: TypeAlias = "str | Sequence[str] | Callable[[Any], Any]"


@dataclass(frozen=True)
class Column:
    """A column of a printed table: a field, or what is worked out of a row, with a format specification."""

    heading: str
    value: Value = ""
    format: str = ""
    breaks: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, row: Any) -> Any:
        value = self.value or self.heading
        if callable(value):
            content = value(row)
        elif isinstance(value, str) and "{" not in value:
            content = _FIELDS.get_value(value, (row,), {})
        else:
            return words_of(value, row)
        if isinstance(content, str | Text | Padding):
            return content
        return MISSING if content is None else format(content, self.format)


def words_of(forms: str | Sequence[str], row: Any) -> str:
    """The first of some formats whose fields a row has, filled in; a dash where it has those of none."""
    for form in [forms] if isinstance(forms, str) else forms:
        with suppress(LookupError):
            return _FIELDS.vformat(form, (row,), {})
    return MISSING


class _Fields(string.Formatter):
    def get_value(self, key: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        (row,) = args
        return row.get(key) if isinstance(row, Mapping) else getattr(row, key)

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            raise LookupError
        return str(super().format_field(value, format_spec))


_FIELDS = _Fields()


def spread(
    rows: Iterable[Any],
    down: Sequence[Column],
    across: Value,
    value: Value,
    names: Mapping[str, str] | Iterable[str] = (),
    blank: str = MISSING,
) -> tuple[list[tuple[Any, ...]], list[Column]]:
    """Rows of one figure each as the rows and columns of a table: `show(*spread(…))`.

    Rows alike in what stands `down` at the left share a line; the values of `across` are the headings of the
    figures, those in `names` alone and in this order.
    """
    lines: dict[tuple[Any, ...], dict[Any, Any]] = {}
    name, figures = Column("", across), Column("", value)
    for row in rows:
        line = lines.setdefault(tuple(column.cell(row) for column in down), {})
        line[name.cell(row)] = figures.cell(row)
    shown = list(names) or list(dict.fromkeys(name for line in lines.values() for name in line))
    headings = names if isinstance(names, Mapping) else dict(zip(shown, shown, strict=True))
    cells = [(*place, *(line.get(name, blank) for name in shown)) for place, line in lines.items()]
    return cells, [*down, *(figure(headings[name]) for name in shown)]


def texts(heading: str, value: Value = "") -> Column:
    return Column(heading, value, breaks=True, settings={"overflow": "fold"})


def figure(heading: str, value: Value = "", form: str = "") -> Column:
    """A column of figures at the right; one without a heading is for remarks."""
    settings = {"justify": "right" if heading else "left", "no_wrap": bool(heading)}
    return Column(heading, value, form, not heading, settings)


def show(
    rows: pa.Table | Iterable[Any],
    columns: Sequence[Column],
    title: str = "",
    *,
    sample: bool = False,
    total: Any = None,
    **settings: Any,
) -> None:
    """Print a frame, records or tuples of cells. Words in square brackets are Rich's markup.

    `sample`: it was computed of synthetic rows, which is said above the title. `total`: a last row, apart.
    """
    heading = "\n".join([SAMPLE_DATA] * sample + [title] * bool(title))
    table = Table(box=box.SIMPLE_HEAD, title=heading or None, title_justify="left", **settings)
    for column in columns:
        table.add_column(column.heading, **column.settings)
    for row in rows if isinstance(rows, Iterable) else rows.to_pylist():
        _add(table, columns, row)
    if total is not None:
        table.add_section()
        _add(table, columns, total, style="bold")
    console().print(table)


def _add(table: Table, columns: Sequence[Column], row: Any, style: str | None = None) -> None:
    # a named tuple is a record
    cells = row if type(row) is tuple else [column.cell(row) for column in columns]
    cells = [
        Name(cell) if column.breaks and isinstance(cell, str | Text) else cell
        for column, cell in zip(columns, cells, strict=False)
    ]
    if console().width < _NARROW:  # the first column gets what remarks can spare
        for column, cell in zip(table.columns[1:], cells[1:], strict=False):
            if isinstance(cell, Name):
                column.max_width = max(column.max_width or 0, cell.longest_part)
    table.add_row(*cells, style=style)


#: Columns of a terminal that the figures of a row take.
_FIGURES = 58


@dataclass(frozen=True)
class Line:
    label: str
    row: Row | None = None  # None for a heading
    depth: int = 0  # characters by which the label is set in


def print_rows(lines: Sequence[Line], results: Mapping[str, Any]) -> None:
    """The roll-up table. Synthetic rows and partial groups are said in every line that has them.

    A narrow terminal has no room for the number of documents, which is in the results.
    """
    screen = console()
    marks = [_marks(line.row, results) for line in lines]
    longest = max(len(line.label) + line.depth for line in lines)
    wide = screen.width >= longest + _FIGURES + max(map(len, marks))
    rows = [line.row for line in lines if line.row is not None]
    sample = any(row.sample for row in rows)
    columns = [
        Column("group or task", "label", settings={"overflow": "fold"}),
        Column("score [95 % interval]", lambda line: _score(line["row"]), settings={"no_wrap": True}),
        figure("valid", "{row.valid:.1%}"),
        figure("scored", "{row.n_scored}/{row.n_tasks}"),
        *([figure("documents", "{row.n_documents:,}")] if wide else []),
        Column("", "mark"),
    ]
    labels = [Padding(Name(Text(line.label)), (0, 0, 0, line.depth)) for line in lines]
    shown = [
        (label,) if line.row is None else {"label": label, "row": line.row, "mark": mark}
        for label, line, mark in zip(labels, lines, marks, strict=True)
    ]
    show(shown, columns, sample=sample, collapse_padding=True, pad_edge=False, title_style="bold")
    if any(row.score is not None and row.interval is None for row in rows):
        screen.print(_NO_INTERVAL, markup=False)
    if any(row.interval is not None and row.interval.rough for row in rows):
        screen.print(ROUGH_MEANS, markup=False)
    if any(row.estimate for row in rows):
        screen.print(ESTIMATE_MEANS, markup=False)
    for remark in remarks(results):
        screen.print(remark, markup=False)


_NO_INTERVAL = "[–]: no interval, since a task has fewer than two documents or clusters of them"
#: behind an interval that is rough
ROUGH = "~"
ESTIMATE_MEANS = (
    "±: how far the score over all documents of the test set may be, at 95 %; in brackets, as of scores over "
    "all documents: other documents of the kind"
)
ROUGH_MEANS = (
    "]~: a rough interval, of clusters of documents with a score near 0 or 1: it may hold the truth in less "
    "than 90 %"
)


def _marks(row: Row | None, results: Mapping[str, Any]) -> str:
    if row is None:
        return ""
    highest = results[row.name].get("highest") if row.name in results else None
    marks = {
        "SAMPLE": row.sample,
        "partial": row.partial,
        row.estimate.words if row.estimate else "": row.estimate is not None,
        f"highest possible {highest or 1:.4f}": highest is not None,
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _score(row: Row) -> Text:
    if row.score is None:
        return Text("–")
    interval = f"{row.interval.low:.3f}, {row.interval.high:.3f}" if row.interval else "–"
    rough = ROUGH if row.interval and row.interval.rough else ""
    return Text(f"{row.score:.4f} [{interval}]{rough}")


#: what is counted, and what is said of one and of several
_CUT = {
    "answers_cut": (
        "answer",
        "fills the token budget: raise max_gen_toks, unless it is the suite's own",
        "fill the token budget: raise max_gen_toks, unless it is the suite's own",
    ),
    "answers_filtered": (
        "answer",
        "was filtered by the server: the model gave none there",
        "were filtered by the server: the model gave none there",
    ),
    "shots_dropped": (
        "prompt",
        "carries fewer shots than asked for, to fit the context",
        "carry fewer shots than asked for, to fit the context",
    ),
    "inputs_cut": ("input", "lost a part, to fit the context", "lost a part, to fit the context"),
}


def remarks(results: Mapping[str, Any]) -> list[str]:
    """What a reader must know beside the scores: traces that never closed, rows held out, rebuilt rows."""
    lines = []
    unclosed = {name: item["metrics"].get("unclosed_reasoning", 0) for name, item in results.items()}
    if worst := {name: share for name, share in unclosed.items() if share > 0}:
        name = max(worst, key=worst.__getitem__)
        lines.append(
            f"reasoning that never ended in {counted(len(worst), 'task')} (most: {name}, {worst[name]:.1%}):"
            " raise max_gen_toks"
        )
    if unknown := note_of_traces(results.values()):
        lines.append(unknown)
    if how_much := _of_format(results):
        lines.append(how_much)
    for key, (noun, one, several) in _CUT.items():
        counts = {name: item["cut"].get(key, 0) for name, item in results.items()}
        if total := sum(counts.values()):
            most = max(counts, key=counts.__getitem__)
            text = one if total == 1 else several
            lines.append(f"{counted(total, noun)} {text} (most: {most}, {counts[most]:,})")
    held = {
        name: item["loaded"]["n_held_out"]
        for name, item in results.items()
        if item["loaded"]["n_held_out"] and "examples" not in item["loaded"]
    }
    if held:
        lines.append(
            f"no few-shot pool in {counted(len(held), 'task')}: "
            f"{max(held.values())} test rows of each serve as shots"
        )
    lines += [f"{name}: {words}" for name, item in results.items() if (words := _pool(item["loaded"]))]
    drafts = {name: known[0].metadata.draft for name in results if (known := registry().asked(name))}
    lines += [f"{name} is a draft, in no group: {why}" for name, why in drafts.items() if why]
    if added := [name for name, item in results.items() if _was_added(item)]:
        lines.append(
            f"datasets that no suite's paper has: {', '.join(added)}; groups of their suite leave them out of"
            " the mean"
        )
    for name, item in results.items():
        if excluded := item["loaded"].get("excluded"):
            lines.append(f"{name}: {row_counts_words(excluded, item['loaded']['n_source'])}")
        if faulty := item["loaded"].get("n_faulty"):
            n = faulty + item["loaded"]["n_test"]
            lines.append(f"{name}: {faulty:,} of {n:,} rows left out as faulty (--drop-faulty)")
        if alike := item["loaded"].get("n_alike"):
            what = "row" if alike == 1 else "rows"
            lines.append(
                f"{name}: {alike:,} {what} left out, since a later one asks the same, as the suite does"
            )
        if recovered := item["loaded"].get("recovered"):
            lines.append(f"{name}: {recovered[0]:,} of {recovered[1]:,} official rows recovered")
    rebuilt = [name for name, item in results.items() if item["loaded"]["rebuilt"]]
    if rebuilt:
        lines.append(f"test rows rebuilt from the source, not the suite's own: {', '.join(rebuilt)}")
    return lines


def _of_format(results: Mapping[str, Any]) -> str:
    """How many answers could be read: the mean over tasks with a score. What is chosen is not read."""
    metrics = [item["metrics"] for item in results.values() if "score" in item["metrics"]]
    shares = [item["valid"] for item in metrics if "valid" in item]
    return f"readable {mean(shares):.1%} (mean of {counted(len(shares), 'task')})" if shares else ""


def waits_for_judges(results: Mapping[str, Any]) -> list[str]:
    """Tasks whose answers are there, and whose score judges have to give."""
    return [
        name
        for name, item in results.items()
        if "score" not in item["metrics"] and _judging(item["config"]) is not None
    ]


def _pool(loaded: LoadedRecord) -> str:
    shown = loaded.get("examples")
    whose = "examples of the authors" if shown == "authors" else "examples, by their name the authors'"
    said = []
    if n := loaded.get("n_overlap"):
        rows = f"{counted(n, 'row')} of the few-shot pool shared text with test rows"
        said.append(f"{rows}, and stayed: {whose}" if shown else f"{rows}, and left it")
    if shown and (n := loaded["n_held_out"]):
        said.append(f"{counted(n, 'test row')} not asked: among the {whose}")
    return "; ".join(said)


def _was_added(result: dict[str, Any]) -> bool:
    dataset = registry().datasets.get(result["loaded"]["task"])
    return dataset is not None and dataset.joined_later


def _judging(config: Config) -> Any:
    return config.get("judge")
