"""`medtasks reproduce`: the papers' tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.tables import console, figure, show, texts
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.pictures.draw import is_possible
from medtasks_ext.studies.figures.spec import Figures, figures_of_suites
from medtasks_ext.studies.figures.statistics import Cell, Check, Data, cells_of, check
from medtasks_ext.studies.figures.write import shown_rows, wide, write_item

if TYPE_CHECKING:
    from medtasks_ext.studies.figures.spec import Item

PANEL = "Results"

_SHOWN = 20  # rows of a table that are printed


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="bridge:tables3, a suite, or all.")
    ] = None,
    out: Annotated[str | None, out_option("Folder for CSV, LaTeX, SVG and PNG.")] = None,
) -> int:
    """Recompute the papers' tables and figures.

    From published data, with the largest deviation from what is printed. Without a name: the list of what
    there is, and of what data cannot support. `medtasks report` sets own runs beside published ones.

    Example: medtasks reproduce bridge:tables3 -o figures

    Exit code 1: a recomputed figure is not the printed one.
    """
    tasks = registry()
    known = {suite: found for suite, found in figures_of_suites().items() if suite in tasks.suites}
    if name is None:
        _list(known)
        say_next("medtasks reproduce NAME -o figures")
        return 0
    chosen = _chosen(name, known)
    folder = Path(out) if out else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Cell]] = {}
    checks: list[Check] = []
    papers = {suite: Data.of(tasks, tasks.suites[suite]) for suite in known}
    for key, (suite, item) in chosen.items():
        found[key] = cells_of(item, papers[suite])
        checks.append(check(item, found[key]))
        typer.echo(f"{key}  {item.title}: {checks[-1].words}")
        if folder:
            write_item(folder, key, item, found[key])
    off = sum(item.off for item in checks)
    if len(found) > 1:
        compared, printed = sum(len(item.deviations) for item in checks), sum(item.printed for item in checks)
        typer.echo(
            f"{printed:,} printed figures: {compared - off:,} come out, {off:,} do not, "
            f"{printed - compared:,} are restated without data to recompute them from"
        )
    else:
        [(_, item)] = chosen.values()
        _print_table(item, *found.values())
    if folder:
        pictures = "" if is_possible() else '; pictures need `pip install "medtasks[plots]"`'
        forms = "CSV, LaTeX, SVG and PNG" if is_possible() else "CSV and LaTeX"
        say(f"{folder}: {counted(len(found), 'block')} as {forms}{pictures}")
        say_next("medtasks reproduce")
    else:
        say_next(f"medtasks reproduce {name} -o figures")
    return 1 if off else 0


def _list(known: Mapping[str, Figures]) -> None:
    """All tables and figures with their state."""
    tally: Counter[str] = Counter()
    for suite, found in known.items():
        for name, item in found.items.items():
            tally[item.state] += 1
            picture = ", picture" if item.pictures else ""
            typer.echo(f"{suite}:{name}  {item.title} ({item.source}): {item.state}{picture}")
    typer.echo("\nwithout data:")
    for suite, found in known.items():
        tally["without data"] += len(found.left_out)
        for name, reason in found.left_out.items():
            typer.echo(f"{suite}:{name}  {reason}")
    named = ", ".join(f"{n} {state}" for state, n in sorted(tally.items()))
    typer.echo(f"\n{sum(tally.values())} tables and figures: {named}")


def _chosen(name: str, known: Mapping[str, Figures]) -> dict[str, tuple[str, Item]]:
    """Name of a block -> its suite and the block."""
    every = {
        f"{suite}:{block}": (suite, item)
        for suite, found in known.items()
        for block, item in found.items.items()
    }
    suite, _, block = name.partition(":")
    chosen = {key: pair for key, pair in every.items() if name in (key, pair[0], "all")}
    if not chosen and suite in known and block in known[suite].left_out:
        reason = known[suite].left_out[block]
        raise MedtasksError(f"cannot be reproduced: {reason}", where=name, remedy="medtasks reproduce")
    if not chosen:
        remedy = "`medtasks reproduce` lists them"
        raise MedtasksError("no table or figure is called so", where=name, remedy=remedy)
    return chosen


def _print_table(item: Item, cells: Sequence[Cell]) -> None:
    columns, rows = wide(cells)
    lines = shown_rows(columns, rows)[:_SHOWN]
    fitting = _columns_that_fit(columns, lines)
    show(
        [tuple(line[: fitting + 1]) for line in lines],
        [texts(""), *map(figure, columns[:fitting])],
        pad_edge=False,
        collapse_padding=True,
    )
    left = [f"{len(rows) - _SHOWN} rows"] * (len(rows) > _SHOWN) + [f"{len(columns) - fitting} columns"] * (
        fitting < len(columns)
    )
    if left:
        typer.echo(f"and {' and '.join(left)} more; -o OUT writes all")
    if item.note:
        typer.echo(item.note)


def _columns_that_fit(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> int:
    """How many columns of figures a terminal has room for, beside the names; at least one."""
    room = console().width - max((len(line[0]) for line in lines), default=0) - 2
    for place, column in enumerate(columns):
        room -= max(len(column), *(len(line[place + 1]) for line in lines), 0) + 2
        if room < 0:
            return max(place, 1)
    return len(columns)
