"""Clinicians beside a jury: their ratings of its answers, their agreement with it, and its tables.

A rater for `medtasks judge run`: `ratings`, `figures` and `show_figures` are called in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import say
from medtasks_lab.judge.clinicians import (
    BERTSCORE,
    ICC,
    JURY,
    MUCH,
    MUCH_NEARER,
    NEARER,
    PAIRWISE_ICC,
    PEOPLE,
    ROUGE,
    SPEARMAN,
    clinician_figures,
    duel,
    has_bertscore,
)
from medtasks_lab.judge.ratings import keep_ratings, kept_ratings, read_ratings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.report import Figure
    from medtasks_lab.judge.clinicians import Scored
    from medtasks_lab.judge.ratings import Ratings


def ratings(path: str | None, runs: Mapping[str, Sequence[JudgedTask]], *, keep: bool) -> Ratings:
    """Clinicians' ratings: those of a file, which are kept in the runs, or those that were kept.

    Raises:
        MedtasksError: the file is not as `read_ratings` takes it.
    """
    if path:
        given = read_ratings(Path(path), runs)
        if keep:
            keep_ratings(given, runs)
        return given
    kept, changed = kept_ratings(runs)
    if changed:
        say(f"note: {changed:,} answers that clinicians rated are others now, and their ratings do not count")
    return kept


def figures(runs: Scored, given: Ratings) -> list[Figure]:
    """Their agreement with the jury, per task and over all tasks, and by answer quality."""
    return clinician_figures(runs, given)


def show_figures(found: Sequence[Figure]) -> None:
    """Print what `figures` found."""
    if people := [item for item in found if item.table == "clinicians"]:
        _print_clinicians(people)
        _print_quality([item for item in found if item.table == "quality"])


def _print_clinicians(figures: Sequence[Figure]) -> None:
    """The four columns of MedHELM's Extended Data Table 4."""
    columns = [name for name in (JURY, ROUGE, BERTSCORE) if _of(figures, f"{PEOPLE} + {name}", ICC)]
    title = "ICC(3,k) with clinicians, and among them; below 0 counts as 0"
    rows = []
    for task in dict.fromkeys(item.task for item in figures):
        here = [item for item in figures if item.task == task]
        cells = [_with_interval(item) for name in columns for item in _of(here, f"{PEOPLE} + {name}", ICC)]
        among = _of(here, PEOPLE, PAIRWISE_ICC)
        [jury] = _of(here, f"{PEOPLE} + {JURY}", ICC)
        rows.append((task, *cells, *map(_with_interval, among), str(jury.n)))
    show(rows, [texts("task"), *map(figure, (*columns, PEOPLE, "answers"))], title, title_style="bold")
    if ROUGE not in columns:
        typer.echo("ROUGE-L is left out: none of these answers has a reference")
    elif not has_bertscore():
        typer.echo(
            "BERTScore-F is left out: MEDTASKS_BERTSCORE=1 computes it, "
            "with pip install 'medtasks[bertscore]'"
        )


def _of(figures: Iterable[Figure], between: str, measure: str) -> list[Figure]:
    return [item for item in figures if (item.between, item.measure) == (between, measure)]


def _with_interval(item: Figure) -> str:
    around = "" if item.low is None else f"\n({number(item.low, 3)}, {number(item.high, 3)})"
    return f"{number(item.value, 3)}{around}"


def _print_quality(figures: Sequence[Figure]) -> None:
    """The jury against each metric by answer quality, over all tasks where there are several."""
    tasks = list(dict.fromkeys(item.task for item in figures))
    here = [item for item in figures if item.task == tasks[-1]] if tasks else []
    levels = list(dict.fromkeys(item.item for item in here))
    value = {(item.between, item.measure, item.item): item for item in here}
    for metric in (ROUGE, BERTSCORE):
        if (duel(JURY, metric), NEARER, levels[0] if levels else "") not in value:
            continue
        columns = ["answers", f"Spearman, {JURY}", f"Spearman, {metric}"]
        columns += [f"{JURY} nearer", f"{JURY} much nearer", f"{metric} much nearer"]
        title = f"{JURY} against {metric}, by the clinicians' rating: {tasks[-1]}"
        rows = []
        for level in levels:
            rho = [value[source, SPEARMAN, level] for source in (JURY, metric)]
            shares = [
                value[duel(JURY, metric), NEARER, level],
                value[duel(JURY, metric), MUCH_NEARER, level],
                value[duel(metric, JURY), MUCH_NEARER, level],
            ]
            percent = [f"{100 * (item.value or 0):.1f} %" for item in shares]
            rows.append((level, str(rho[0].n), *(number(item.value, 3) for item in rho), *percent))
        show(rows, [texts("rating"), *map(figure, columns)], title, title_style="bold")
        typer.echo(
            f"nearer to the clinicians' mean, all z-scored; much: by more than {MUCH:g} s.d.; "
            "moderate: 3 to 4 on a scale of 1 to 5"
        )
