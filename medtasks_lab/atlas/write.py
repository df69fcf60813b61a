"""Blocks of the atlas as files: CSV, LaTeX and pictures each, all of them together as Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file, write_text
from medtasks_ext.csvfile import csv_text
from medtasks_ext.report.pictures.draw import is_possible, png, svg
from medtasks_lab.atlas.picture import drawn
from medtasks_lab.atlas.statistics import largest_deviation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from medtasks_lab.atlas.cells import Cell
    from medtasks_lab.atlas.spec import AtlasItem
    from medtasks_lab.atlas.statistics import CheckedClaim

COLUMNS = ("row", "column", "printed", "recomputed", "yours", "note", "point")


def wide(cells: Sequence[Cell]) -> tuple[list[str], dict[str, dict[str, Cell]]]:
    """Columns, and row -> column -> cell; own rows first, points of trends left out."""
    shown = [cell for cell in cells if not cell.point]
    rows: dict[str, dict[str, Cell]] = {}
    for cell in sorted(shown, key=lambda cell: not cell.own):
        rows.setdefault(cell.row, {})[cell.column] = cell
    return list(dict.fromkeys(cell.column for cell in shown)), rows


def best(cell: Cell | None) -> float | str | None:
    """The printed figure, else the recomputed one."""
    if cell is None:
        return None
    return cell.recomputed if cell.printed is None else cell.printed


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


def write_item(folder: Path, name: str, item: AtlasItem, cells: Sequence[Cell]) -> list[Path]:
    """`NAME.csv` with a line per figure, `NAME.tex`, and with the extra `plots` pictures as SVG and PNG."""
    stem = name.replace(":", "_")
    table = folder / f"{stem}.csv"
    write_text(table, cells_csv(cells))
    tex = folder / f"{stem}.tex"
    write_text(tex, _latex(item, cells))
    return [table, tex, *(_pictures(folder / stem, item, cells) if is_possible() else [])]


def cells_csv(cells: Sequence[Cell]) -> str:
    """A block as CSV, with a line per figure."""
    return csv_text([COLUMNS, *map(_line, cells)])


def check_words(found: CheckedClaim, cells: Sequence[Cell]) -> str:
    """How far a block comes out as printed, in words.

    A check mark stands for figures that were recomputed and came out, nothing else.
    """
    restated = found.printed - found.compared
    if not found.printed:
        return f"{len(cells):,} figures, none printed"
    if not found.compared:
        return f"{restated:,} printed figures restated; no data to recompute them from"
    words = f"{found.right:,} of {found.compared:,} printed figures come out"
    if found.sound:
        off = [cell.deviation for cell in cells if cell.deviation is not None and cell not in found.off]
        words += f", at most {max(off, default=0.0):.4f} off"
    else:
        words += f", at most {largest_deviation(cells):.4f} off"
    if found.contradicted:
        words += f"; {len(found.contradicted)} contradicts the paper's own data"
    words += f"; {restated:,} more restated" if restated else ""
    return f"{'✓' if not found.off else '✗'} {words}"


def _pictures(stem: Path, item: AtlasItem, cells: Sequence[Cell]) -> list[Path]:
    made = []
    for how in item.pictures:
        for part, drawing in drawn(item, how, cells):
            spec = drawing.spec
            name = f"{stem.name}_{part}" if part else stem.name
            vector, image = stem.with_name(f"{name}.svg"), stem.with_name(f"{name}.png")
            content = svg(spec, drawing.says)
            write_text(vector, content)
            with atomic_file(image) as file:
                file.write(png(content))
            made += [vector, image]
    return made


def write_all(path: Path, cells: Mapping[str, Sequence[Cell]]) -> None:
    """All blocks in one table; words and figures in columns of their own."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = [
        {
            "item": name,
            "row": cell.row,
            "column": cell.column,
            **{
                f"{side}{kind}": value if isinstance(value, of) else None
                for side, value in (("printed", cell.printed), (_side(cell), cell.recomputed))
                for kind, of in (("", float), ("_words", str))
            },
            "note": cell.note,
            "point": cell.point,
        }
        for name, some in cells.items()
        for cell in some
    ]
    sides = [f"{side}{kind}" for side in ("printed", "recomputed", "yours") for kind in ("", "_words")]
    kinds = {name: pa.string() if name.endswith("_words") else pa.float64() for name in sides}
    schema = pa.schema(
        {
            **dict.fromkeys(("item", "row", "column"), pa.string()),
            **kinds,
            "note": pa.string(),
            "point": pa.bool_(),
        }
    )
    with atomic_file(path) as file:
        parquet.write_table(pa.Table.from_pylist(rows, schema), file, compression="zstd")


def _side(cell: Cell) -> str:
    return "yours" if cell.own else "recomputed"


def _line(cell: Cell) -> list[object]:
    own = cell.recomputed if cell.own else None
    recomputed = None if cell.own else cell.recomputed
    return [cell.row, cell.column, cell.printed, recomputed, own, cell.note, cell.point]


def _latex(item: AtlasItem, cells: Sequence[Cell]) -> str:
    columns, rows = wide(cells)
    own = [name for name, found in rows.items() if any(cell.own for cell in found.values())]
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        f"\\caption{{{_escaped(item.title)} ({_escaped(item.source)})}}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        " & ".join(["", *map(_escaped, columns)]) + r" \\",
        "\\midrule",
    ]
    digits = {column: decimals(best(found.get(column)) for found in rows.values()) for column in columns}
    for place, (name, found) in enumerate(rows.items()):
        if own and place == len(own):
            lines.append("\\midrule")
        shown = (text(best(found.get(column)), digits[column]) for column in columns)
        lines.append(" & ".join(map(_escaped, [name, *shown])) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


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
