"""Blocks as files: CSV, LaTeX and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, write_text
from medtasks_ext.csvfile import csv_text
from medtasks_ext.report.pictures.draw import is_possible, png, svg
from medtasks_ext.studies.figures.picture import drawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from medtasks_ext.studies.figures.spec import Item
    from medtasks_ext.studies.figures.statistics import Cell

COLUMNS = ("row", "column", "printed", "recomputed", "note", "point")


def wide(cells: Sequence[Cell]) -> tuple[list[str], dict[str, dict[str, Cell]]]:
    """Columns, and row -> column -> cell; points of trends left out."""
    shown = [cell for cell in cells if not cell.point]
    rows: dict[str, dict[str, Cell]] = {}
    for cell in shown:
        rows.setdefault(cell.row, {})[cell.column] = cell
    return list(dict.fromkeys(cell.column for cell in shown)), rows


def decimals(values: Iterable[float | str | None]) -> int:
    """With how many decimals figures of one kind stand below each other.

    As many as the longest of them needs: at most three where all are below one, else at most two.
    """
    figures = [value for value in values if isinstance(value, (int, float))]
    most = 3 if all(abs(value) < 1 for value in figures) else 2
    return max((len(f"{value:.{most}f}".rstrip("0").partition(".")[2]) for value in figures), default=0)


def text(value: float | str | None, digits: int) -> str:
    """A figure as tables show it, with the `decimals` of its column."""
    if isinstance(value, str):
        return value
    return "–" if value is None else f"{value:.{digits}f}"


def write_item(folder: Path, name: str, item: Item, cells: Sequence[Cell]) -> None:
    """`NAME.csv` with a line per figure, `NAME.tex`, and with the extra `plots` pictures as SVG and PNG."""
    stem = name.replace(":", "_")
    lines = [[getattr(cell, column) for column in COLUMNS] for cell in cells]
    write_text(folder / f"{stem}.csv", csv_text([COLUMNS, *lines]))
    write_text(folder / f"{stem}.tex", _latex(item, cells))
    for how in item.pictures if is_possible() else ():
        for part, spec, says in drawn(item, how, cells):
            file = folder / (f"{stem}_{part}" if part else stem)
            content = svg(spec, says)
            write_text(file.with_name(f"{file.name}.svg"), content)
            with atomic_file(file.with_name(f"{file.name}.png")) as image:
                image.write(png(content))


def _latex(item: Item, cells: Sequence[Cell]) -> str:
    columns, rows = wide(cells)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        f"\\caption{{{_escaped(item.title)} ({_escaped(item.source)})}}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        " & ".join(["", *map(_escaped, columns)]) + r" \\",
        "\\midrule",
    ]
    for row in shown_rows(columns, rows):
        lines.append(" & ".join(map(_escaped, row)) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


def shown_rows(columns: Sequence[str], rows: Mapping[str, Mapping[str, Cell]]) -> list[list[str]]:
    """The name of each row and its figures, as tables show them."""
    digits = {
        column: decimals(found[column].best for found in rows.values() if column in found)
        for column in columns
    }
    return [
        [name, *(text(found[one].best if one in found else None, digits[one]) for one in columns)]
        for name, found in rows.items()
    ]


_SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "−": "--",
    }
)


def _escaped(words: str) -> str:
    return words.translate(_SPECIAL)
