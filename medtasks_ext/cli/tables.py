"""Tables for the terminal; plain text when it is not one."""

from __future__ import annotations

import json
import os
import re
import string
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult


def console() -> Console:
    """Standard output; wide enough not to wrap when it is a file or a pipe, unless COLUMNS says how wide."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 140, highlight=False)


def write(line: str | Text, style: str = "", *, whole: bool = False) -> None:
    """Print text of others, whose square brackets are no markup; `whole`: lines that the terminal breaks."""
    text = Text(line, style) if isinstance(line, str) else line
    console().print(text, overflow=None if whole else "fold", soft_wrap=whole)


def write_heading(title: str) -> None:
    write(f"\n── {title} ──", "bold blue", whole=True)


def short(value: Any, most: int | None = None) -> str:
    """A value as JSON, a text as it is; with at most so many characters."""
    text = value if isinstance(value, str) and most else json.dumps(value, ensure_ascii=False, default=str)
    return text if most is None or len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


#: Stands above whatever was computed of sample rows.
SAMPLE_DATA = "SAMPLE DATA: synthetic rows, not a result"


class _Name:
    """A cell that breaks at blanks and underscores: names of tasks and groups are long, terminals narrow."""

    def __init__(self, text: str) -> None:
        self.text = Text.from_markup(text)
        self.parts = re.findall(r"[^_ ]*[_ ]+|[^_ ]+", self.text.plain)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max((cell_len(part.rstrip()) for part in self.parts), default=0)
        return Measurement(longest, cell_len(self.text.plain)).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ends, end, room = list[int](), 0, 0
        for part in self.parts:
            if room and room + cell_len(part.rstrip()) > options.max_width:
                ends, room = [*ends, end], 0
            end, room = end + len(part), room + cell_len(part)
        for line in self.text.divide(ends):
            line.rstrip()
            yield line


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
    settings: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, row: Any) -> Any:
        value = self.value or self.heading
        if callable(value):
            content = value(row)
        elif isinstance(value, str) and "{" not in value:
            content = _FIELDS.get_value(value, (row,), {})
        else:
            return words_of(value, row)
        if isinstance(content, str | Text):
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
    names: Mapping[str, str] | None = None,
) -> tuple[list[tuple[Any, ...]], list[Column]]:
    """Rows of one figure each as the rows and columns of a table: `show(*spread(…))`.

    Rows alike in what stands `down` at the left share a line; the values of `across` are the headings of the
    figures, or the words for them in `names`, those alone and in this order.
    """
    lines: dict[tuple[Any, ...], dict[Any, Any]] = {}
    name, figures = Column("", across), Column("", value)
    for row in rows:
        line = lines.setdefault(tuple(column.cell(row) for column in down), {})
        line[name.cell(row)] = figures.cell(row)
    shown = names or {name: name for line in lines.values() for name in line}
    cells = [(*place, *(line.get(name, MISSING) for name in shown)) for place, line in lines.items()]
    return cells, [*down, *map(figure, shown.values())]


def texts(heading: str, value: Value = "") -> Column:
    return Column(heading, value, settings={"overflow": "fold"})


def figure(heading: str, value: Value = "", form: str = "") -> Column:
    """A column of figures at the right; one without a heading is for remarks."""
    settings = {"justify": "right" if heading else "left", "no_wrap": bool(heading)}
    return Column(heading, value, form, settings)


def show(
    rows: Iterable[Any],
    columns: Sequence[Column],
    title: str = "",
    *,
    sample: bool = False,
    total: Any = None,
    **settings: Any,
) -> None:
    """Print records or tuples of cells. Words in square brackets are Rich's markup.

    `sample`: it was computed of synthetic rows, which is said above the title. `total`: a last row, apart.
    """
    heading = "\n".join([SAMPLE_DATA] * sample + [title] * bool(title))
    table = Table(box=box.SIMPLE_HEAD, title=heading or None, title_justify="left", **settings)
    for column in columns:
        table.add_column(column.heading, **column.settings)
    for row in rows:
        # a named tuple is a record
        cells = row if type(row) is tuple else [column.cell(row) for column in columns]
        table.add_row(
            *(
                _Name(cell) if isinstance(cell, str) and not column.settings.get("no_wrap") else cell
                for column, cell in zip(columns, cells, strict=False)
            )
        )
    if total is not None:
        table.add_section()
        table.add_row(*[column.cell(total) for column in columns], style="bold")
    console().print(table)


def show_tables(
    tables: Sequence[Mapping[str, Any]], found: Mapping[str, Any], *, sample: bool = False
) -> None:
    """Print figures; that they are of synthetic texts stands above the first table.

    Args:
        tables: `{frame, title, names, columns, across, line, note, empty}`: a column is a format of a row's
            fields, or several, of which the first counts whose fields are all there; `names` of them stand
            left; rows that are alike in these share a line with `across: {by, figure}`.
        found: frame -> rows, and what titles and notes name.
    """
    for table in tables:
        rows = found.get(table["frame"]) or []
        if "line" in table or not rows:
            for line in [words_of(table["line"], row) for row in rows] or filter(None, [table.get("empty")]):
                typer.echo(line)
            continue
        columns = list(table["columns"].items())
        left = len(columns) if "across" in table else table.get("names", 1)
        heads = [texts(*column) for column in columns[:left]]
        if across := table.get("across"):
            rows, heads = spread(rows, heads, across["by"], across["figure"])
        else:
            heads += [figure(*column) for column in columns[left:]]
        title = words_of(table.get("title", ""), found)
        show(rows, heads, title, sample=sample, title_style="bold", pad_edge=False)
        sample = False
        if table.get("note"):
            typer.echo(words_of(table["note"], found))
