"""`medtasks study reproduce`: the papers' tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from medtasks_ext.atomic import write_text
from medtasks_ext.cli.commands import out_option
from medtasks_ext.cli.tables import console, figure, show, texts
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.pictures import is_possible
from medtasks_ext.studies.figures import Cell, Data, cells_of, check, figures_of_suites
from medtasks_ext.studies.pictures import table_of, write_pictures
from medtasks_ext.tables import csv_text
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from medtasks_ext.studies.figures import Item


_SHOWN = 20  # rows of a table that are printed


def reproduce(
    name: Annotated[str | None, Argument(metavar="NAME", help="bridge:tables3, a suite, or all.")] = None,
    out: Annotated[str | None, out_option("Folder for CSV, SVG and PNG.")] = None,
) -> int:
    """Recompute the papers' tables and figures.

    From published data, with the largest deviation from what is printed. Without a name: the list of what
    there is, and of what data cannot support. `medtasks report` sets own runs beside published ones.

    Example: medtasks study reproduce bridge:tables3 -o figures

    Exit code 1: a recomputed figure is not the printed one.
    """
    tasks = registry()
    known = {suite: found for suite, found in figures_of_suites().items() if suite in tasks.suites}
    items = {f"{suite}:{key}": item for suite, found in known.items() for key, item in found.items.items()}
    left_out = {
        f"{suite}:{key}": why for suite, found in known.items() for key, why in found.left_out.items()
    }
    if name is None:
        _list(items, left_out)
        return 0
    chosen = {key: item for key, item in items.items() if name in (key, key.partition(":")[0], "all")}
    if not chosen:
        what = (
            f"cannot be reproduced: {left_out[name]}"
            if name in left_out
            else "no table or figure is called so"
        )
        raise MedtasksError(what, where=name, remedy="`medtasks study reproduce` lists them")
    total = Counter[str]()
    papers = {suite: Data.of(tasks, tasks.suites[suite]) for suite in known}
    for key, item in chosen.items():
        cells = cells_of(item, papers[key.partition(":")[0]])
        words, n = check(item, cells)
        total.update(n)
        typer.echo(f"{key}  {item.title}: {words}")
        if out:
            stem = key.replace(":", "_")
            write_text(Path(out, f"{stem}.csv"), csv_text([Cell._fields, *cells]))
            if is_possible():
                write_pictures(Path(out), stem, item, cells)
    off, compared, printed = (total[name] for name in ("off", "compared", "printed"))
    if len(chosen) > 1:
        typer.echo(
            f"{printed:,} printed figures: {compared - off:,} come out, {off:,} do not, "
            f"{printed - compared:,} are restated without data to recompute them from"
        )
    else:
        _print_table(item, cells)
    if out:
        forms = "CSV, SVG and PNG" if is_possible() else f"CSV; pictures need more ({install_words('plots')})"
        say(f"{out}: {counted(len(chosen), 'block')} as {forms}")
    say_next("medtasks study reproduce" if out else f"medtasks study reproduce {name} -o figures")
    return 1 if off else 0


def _list(items: dict[str, Item], left_out: dict[str, str]) -> None:
    states = {
        key: "restated" if item.statistic == "restated" else "recomputed" for key, item in items.items()
    }
    for key, item in items.items():
        picture = ", picture" if item.pictures else ""
        typer.echo(f"{key}  {item.title} ({item.source}): {states[key]}{picture}")
    typer.echo("\nwithout data:")
    for key, reason in left_out.items():
        typer.echo(f"{key}  {reason}")
    tally = Counter([*states.values(), *("without data" for _ in left_out)])
    named = ", ".join(f"{n} {state}" for state, n in sorted(tally.items()))
    typer.echo(f"\n{tally.total()} tables and figures: {named}")
    say_next("medtasks study reproduce NAME -o figures")


def _print_table(item: Item, cells: Sequence[Cell]) -> None:
    columns, rows = list(dict.fromkeys(cell.column for cell in cells)), table_of(cells)
    digits = {
        column: decimals([line[column].best for line in rows.values() if column in line])
        for column in columns
    }
    fitting = columns[: max(1, (console().width - max(map(len, rows))) // (max(map(len, columns)) + 2))]
    lines = [
        (name, *(text(line[one].best if one in line else None, digits[one]) for one in fitting))
        for name, line in list(rows.items())[:_SHOWN]
    ]
    show(lines, [texts(""), *map(figure, fitting)], pad_edge=False, collapse_padding=True)
    more = {"rows": len(rows) - len(lines), "columns": len(columns) - len(fitting)}
    if left := [f"{n} {name}" for name, n in more.items() if n]:
        typer.echo(f"and {' and '.join(left)} more; -o OUT writes all")
    if item.note:
        typer.echo(item.note)


def decimals(values: Sequence[float | str | None]) -> int:
    """With how many decimals figures of one kind stand below each other.

    As many as the longest of them needs: at most three where all are below one, else at most two.
    """
    figures = [value for value in values if isinstance(value, (int, float))]
    most = 3 if all(abs(value) < 1 for value in figures) else 2
    return max((len(f"{value:.{most}f}".rstrip("0").partition(".")[2]) for value in figures), default=0)


def text(value: float | str | None, digits: int) -> str:
    return value if isinstance(value, str) else "–" if value is None else f"{value:.{digits}f}"
