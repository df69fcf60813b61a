"""Clinicians beside a jury: their ratings of its answers, their agreement with it, and its tables.

A rater for `medtasks judge run`: `ratings`, `figures` and `show_figures` are called in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import show, spread, texts
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


def show_figures(shown: Sequence[Figure]) -> None:
    """Print what `figures` found."""
    if people := [item for item in shown if item.table == "clinicians"]:
        _print_clinicians(people)
        _print_quality([item for item in shown if item.table == "quality"])


def _print_clinicians(figures: Sequence[Figure]) -> None:
    """The four columns of MedHELM's Extended Data Table 4."""
    shown = {f"{PEOPLE} + {name}": name for name in (JURY, ROUGE, BERTSCORE)}
    iccs = [item for item in figures if item.measure == ICC and item.between in shown]
    there = {item.between for item in iccs}
    jury = [item for item in iccs if shown[item.between] == JURY]
    iccs += [item for item in figures if (item.between, item.measure) == (PEOPLE, PAIRWISE_ICC)]
    rows: list[dict[str, Any]] = [asdict(item) for item in iccs]
    rows += [{"task": item.task, "between": "answers", "answers": item.n} for item in jury]
    names = {name: title for name, title in shown.items() if name in there} | {
        PEOPLE: PEOPLE,
        "answers": "answers",
    }
    forms = ["{answers}", "{value:.3f}\n({low:.3f}, {high:.3f})", "{value:.3f}"]
    title = "ICC(3,k) with clinicians, and among them; below 0 counts as 0"
    show(*spread(rows, [texts("task")], "between", forms, names), title, title_style="bold")
    columns = names.values()
    if ROUGE not in columns:
        typer.echo("ROUGE-L is left out: none of these answers has a reference")
    elif not has_bertscore():
        typer.echo(
            "BERTScore-F is left out: MEDTASKS_BERTSCORE=1 computes it, "
            "with pip install 'medtasks[bertscore]'"
        )


def _print_quality(figures: Sequence[Figure]) -> None:
    """The jury against each metric by answer quality, over all tasks where there are several."""
    tasks = list(dict.fromkeys(item.task for item in figures))
    here = [item for item in figures if item.task == tasks[-1]] if tasks else []
    for metric in (ROUGE, BERTSCORE):
        if not any(_kind(item) == (duel(JURY, metric), NEARER) for item in here):
            continue
        headings = {
            (JURY, "n"): "answers",
            (JURY, SPEARMAN): f"Spearman, {JURY}",
            (metric, SPEARMAN): f"Spearman, {metric}",
            (duel(JURY, metric), NEARER): f"{JURY} nearer",
            (duel(JURY, metric), MUCH_NEARER): f"{JURY} much nearer",
            (duel(metric, JURY), MUCH_NEARER): f"{metric} much nearer",
        }
        rows = [replace(item, measure="n") for item in here if _kind(item) == (JURY, SPEARMAN)]
        rows += [item for item in here if _kind(item) in headings]
        heading = partial(_heading, headings)
        table = spread(rows, [texts("rating", "item")], heading, _of_kind, headings.values())
        show(*table, f"{JURY} against {metric}, by the clinicians' rating: {tasks[-1]}", title_style="bold")
        typer.echo(
            f"nearer to the clinicians' mean, all z-scored; much: by more than {MUCH:g} s.d.; "
            "moderate: 3 to 4 on a scale of 1 to 5"
        )


def _kind(item: Figure) -> tuple[str, str]:
    return item.between, item.measure


def _heading(headings: Mapping[tuple[str, str], str], item: Figure) -> str:
    return headings[_kind(item)]


def _of_kind(item: Figure) -> str:
    if item.measure == "n":
        return str(item.n)
    return number(item.value, 3) if item.measure == SPEARMAN else f"{100 * (item.value or 0):.1f} %"
