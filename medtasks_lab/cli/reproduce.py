"""`medtasks reproduce`: the papers' tables, figures and claims, with own runs beside them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import ByLabels, out_option
from medtasks_ext.cli.tables import console, figure, show, texts
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.pictures.draw import is_possible
from medtasks_ext.results.labels import label_scores, read_labels
from medtasks_ext.results.prices import Price, prices
from medtasks_ext.studies.forms.results import is_pairwise, read_rates
from medtasks_lab.atlas.cells import Cell, Data
from medtasks_lab.atlas.models import own_models, published_models
from medtasks_lab.atlas.spec import Atlas, atlases
from medtasks_lab.atlas.statistics import CheckedClaim, cells_of, checked
from medtasks_lab.atlas.write import best, check_words, decimals, text, wide, write_all, write_item

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.results.experiments import Entry
    from medtasks_lab.atlas.spec import AtlasItem

PANEL = "Results"

_SHOWN = 20  # rows of a table that are printed


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME RUN...",
            help="bridge:tables3, a suite, or all; then folders of runs, or of `human ingest`.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(help="INPUT,OUTPUT in USD per million tokens, one for each run; else of model_configs."),
    ] = None,
    by: ByLabels = None,
    out: Annotated[str | None, out_option("Folder for CSV, LaTeX, SVG, PNG and one Parquet file.")] = None,
) -> int:
    """Recompute the papers' tables, figures and claims.

    From published data, with the largest deviation from what is printed. Own runs stand beside. Without a
    name: the list of what there is, and of what data cannot support.

    Example: medtasks reproduce bridge:tables3 runs/MODEL -o atlas

    Exit code 1: a recomputed figure is not the printed one.
    """
    tasks = registry()
    known = {suite: atlas for suite, atlas in atlases().items() if suite in tasks.suites}
    if not names:
        _list(known)
        say_next("medtasks reproduce NAME [RUN...] -o atlas")
        return 0
    chosen = _chosen(names[0], known)
    given = [_price(text) for text in price or []]
    folders = [Path(name) for name in names[1:]]
    compared = [rate for folder in folders if is_pairwise(folder) for rate in read_rates(folder)]
    entries = _entries([folder for folder in folders if not is_pairwise(folder)])
    prices_of = _prices(entries, given)
    labels, faults = label_scores(entries, read_labels([Path(name) for name in by or []], tasks), tasks)
    for fault in faults:
        say(str(fault))
    folder = Path(out) if out else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    sound = True
    found: dict[str, list[Cell]] = {}
    tally: list[CheckedClaim] = []
    for suite, items in chosen.items():
        of_suite = tasks.suites[suite]
        published = published_models(tasks, of_suite)
        own = own_models(entries, tasks, of_suite, published)
        for model in own:
            if n := sum(map(len, model.unlike.values())):
                of = sum(map(len, model.scores.values()))
                named = ", ".join(f"{words} in {count}" for words, count in model.reasons.items())
                say(
                    f"{model.name}: {n} of {of} tasks were asked under other conditions than the published "
                    f"models ({named}): not ranked among these"
                )
        data = Data(tasks, of_suite, [*published, *own], entries, prices_of, compared, labels.to_pylist())
        for name in items:
            item, key = known[suite].items[name], f"{suite}:{name}"
            found[key] = cells_of(item, data)
            sound &= _print_line(key, item, found[key])
            tally.append(checked(item, found[key]))
            if folder:
                write_item(folder, key, item, found[key])
    if len(found) > 1:
        right, printed = sum(item.right for item in tally), sum(item.printed for item in tally)
        off, of_data = sum(len(item.off) for item in tally), sum(item.compared for item in tally)
        typer.echo(
            f"{printed:,} printed figures: {right:,} come out, {off:,} {'does' if off == 1 else 'do'} not, "
            f"{printed - of_data:,} are restated without data to recompute them from"
        )
    if len(found) == 1:
        [(key, cells)] = found.items()
        _print_table(known[key.partition(":")[0]].items[key.partition(":")[2]], cells)
    if folder:
        write_all(folder / "atlas.parquet", found)
        pictures = "" if is_possible() else '; pictures need `pip install "medtasks[plots]"`'
        forms = "CSV, LaTeX, SVG and PNG" if is_possible() else "CSV and LaTeX"
        say(f"{folder}: {counted(len(found), 'block')} as {forms}, and atlas.parquet{pictures}")
        say_next("medtasks reproduce")
    else:
        say_next(" ".join(["medtasks reproduce", names[0], *(names[1:] or ["RUN"]), "-o atlas"]))
    return 0 if sound else 1


def _list(known: dict[str, Atlas]) -> None:
    """All tables and figures with their state."""
    tally: Counter[str] = Counter()
    for suite, atlas in known.items():
        for name, item in atlas.items.items():
            state = item.state
            tally[state] += 1
            picture = ", picture" if item.pictures else ""
            typer.echo(f"{suite}:{name}  {item.title} ({item.source}): {state}{picture}")
    typer.echo("\nwithout data:")
    for suite, atlas in known.items():
        tally["without data"] += len(atlas.left_out)
        for name, reason in atlas.left_out.items():
            typer.echo(f"{suite}:{name}  {reason}")
    parts = ", ".join(f"{n} {state}" for state, n in tally.items())
    typer.echo(f"\n{tally.total()} tables, figures and claims: {parts}")


def _chosen(name: str, known: dict[str, Atlas]) -> dict[str, list[str]]:
    suite, _, item = name.partition(":")
    if name == "all":
        return {key: list(atlas.items) for key, atlas in known.items()}
    if suite in known and not item:
        return {suite: list(known[suite].items)}
    if suite in known and item in known[suite].items:
        return {suite: [item]}
    if suite in known and (reason := known[suite].left_out.get(item)):
        raise MedtasksError(f"cannot be reproduced: {reason}", where=name, remedy="medtasks reproduce")
    raise MedtasksError(
        "no table or figure is called so", where=name, remedy="`medtasks reproduce` lists them"
    )


def _entries(paths: Sequence[Path]) -> list[Entry]:
    if not paths:
        return []
    from medtasks_ext.results.entries import read_results

    results = read_results(paths, registry())
    for fault in results.faults:
        say(str(fault))
    return results.entries


def _prices(entries: Sequence[Entry], given: Sequence[Price]) -> dict[str, Price]:
    if given and len(given) != len(entries):
        raise MedtasksError(
            f"{counted(len(given), 'price')} for {counted(len(entries), 'run')}",
            where="--price",
            remedy="give one for each run, in their order",
        )
    if given:
        return {entry.label: one for entry, one in zip(entries, given, strict=True)}
    known = prices()
    return {entry.label: known[entry.model] for entry in entries if entry.model in known}


def _price(words: str) -> Price:
    try:
        read, written = (float(part) for part in words.split(","))
    except ValueError:
        read = written = -1.0
    if not (0 <= read < float("inf") and 0 <= written < float("inf")):
        raise MedtasksError(
            f"{words!r} is no price", where="--price", remedy="write INPUT,OUTPUT in USD per million tokens"
        )
    return Price(read, written)


def _print_line(key: str, item: AtlasItem, cells: Sequence[Cell]) -> bool:
    """One block in a line; whether it comes out as printed, but for known contradictions."""
    found = checked(item, cells)
    typer.echo(f"{key}  {item.title}: {check_words(found, cells)}")
    sources = {claim.says: claim.contradicted for claim in item.claims}
    for cell in found.contradicted:
        n = decimals([cell.printed, cell.recomputed])
        figures = f"{text(cell.printed, n)} printed, {text(cell.recomputed, n)}"
        typer.echo(f"  {cell.row}: {figures} by {sources[cell.row]}")
    return found.sound


def _print_table(item: AtlasItem, cells: Sequence[Cell]) -> None:
    if item.statistic == "claims":
        claims = []
        for cell in cells:
            n = decimals([cell.printed, cell.recomputed])
            claims.append((cell.row, text(cell.printed, n), text(cell.recomputed, n)))
        show(claims, [texts(""), figure("printed"), figure("recomputed")], pad_edge=False)
        return
    columns, rows = wide(cells)
    digits = {column: decimals(best(found.get(column)) for found in rows.values()) for column in columns}
    lines = {
        f"{name} (yours)" if any(cell.own for cell in found.values()) else name: [
            _shown(found.get(column), item.tolerance, digits[column]) for column in columns
        ]
        for name, found in list(rows.items())[:_SHOWN]
    }
    fitting = _columns_that_fit(columns, lines)
    shown = [(name, *figures[:fitting]) for name, figures in lines.items()]
    show(shown, [texts(""), *map(figure, columns[:fitting])], pad_edge=False, collapse_padding=True)
    left = [f"{len(rows) - _SHOWN} rows"] * (len(rows) > _SHOWN) + [f"{len(columns) - fitting} columns"] * (
        fitting < len(columns)
    )
    if left:
        typer.echo(f"and {' and '.join(left)} more; -o OUT writes all")
    if item.note:
        typer.echo(item.note)


def _columns_that_fit(columns: Sequence[str], lines: Mapping[str, Sequence[str]]) -> int:
    """How many columns of figures a terminal has room for, beside the names; at least one."""
    room = console().width - max(map(len, lines), default=0) - 2
    for place, column in enumerate(columns):
        room -= max(len(column), *(len(figures[place]) for figures in lines.values()), 0) + 2
        if room < 0:
            return max(place, 1)
    return len(columns)


def _shown(cell: Cell | None, tolerance: float, digits: int) -> str:
    """The printed figure, and beside it the recomputed one where rounding does not explain the difference."""
    if cell is None:
        return ""
    if cell.deviation is not None and cell.deviation > tolerance:
        return f"{text(cell.printed, digits)} | {text(cell.recomputed, digits + 1)}"
    return text(best(cell), digits) + (f" ({cell.note})" if cell.note else "")
