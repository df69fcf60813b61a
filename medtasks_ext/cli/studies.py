"""Tables of studies and forms on the terminal, as their YAML says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from medtasks_ext.cli.tables import figure, show, spread, texts, words_of


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
            lines = (
                [words_of(table["line"], row) for row in rows] if "line" in table else [table.get("empty")]
            )
            typer.echo("\n".join(filter(None, lines)), nl=any(lines))
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
