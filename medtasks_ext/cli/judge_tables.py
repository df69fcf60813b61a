"""How far a jury's judges agree with each other and with clinicians, as tables of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.judge.clinicians import (
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
    duel,
    has_bertscore,
)
from medtasks_ext.judge.report import ALL, COMPOSITE, POOLED

if TYPE_CHECKING:
    from medtasks_ext.judge.report import Figure


def print_agreement(run: str, figures: Sequence[Figure]) -> None:
    """Agreement between the judges of a run."""
    pairs: dict[tuple[str, str], dict[str, Figure]] = {}
    for item in figures:
        if item.table == "judges" and item.item in (COMPOSITE, POOLED):
            pairs.setdefault((item.task, item.between), {})[item.measure] = item
    title = "agreement between judges" + (f" in {run}" if run else "")
    measures = ("Spearman", "ICC(3,k)", "Cohen's kappa", "quadratic kappa")
    rows = [
        (*place, *(number(found[name].value, 3) if name in found else "" for name in measures))
        for place, found in pairs.items()
        if any(item.value is not None for item in found.values())
    ]
    if rows:
        show(rows, [texts("task"), texts("judges"), *map(figure, measures)], title, title_style="bold")


def print_common(figures: Sequence[Figure]) -> None:
    """What is about all runs together: judges by axis, robustness, and clinicians."""
    _print_axes([item for item in figures if item.table == "judge_axes"])
    robustness = [item for item in figures if item.table == "robustness"]
    for item in robustness:
        if item.between.startswith("mean of "):
            same = [one for one in robustness if (one.task, one.measure) == (item.task, item.measure)]
            undefined = sum(one.value is None for one in same)
            left = f"; {undefined} juries that give runs equal scores are left out" if undefined else ""
            said = f"{item.measure} with the full jury {number(item.value, 3)}"
            typer.echo(f"{item.task}: {said} ({item.between}{left})")
    people = [item for item in figures if item.table == "clinicians"]
    if people:
        _print_clinicians(people)
        _print_quality([item for item in figures if item.table == "quality"])


def _print_axes(figures: Sequence[Figure]) -> None:
    """Judge x axis, over all tasks where there are several."""
    tasks = list(dict.fromkeys(item.task for item in figures))
    wide = [task for task in tasks if task.startswith(ALL)] or tasks
    for task in wide:
        here = [item for item in figures if item.task == task]
        axes = list(dict.fromkeys(item.item for item in here))
        value = {(item.between, item.item, item.measure): item.value for item in here}
        rows = []
        for judge in dict.fromkeys(item.between for item in here):
            cells = []
            for axis in axes:
                mean, sd = (number(value.get((judge, axis, measure)), 3) for measure in ("mean", "s.d."))
                cells.append(f"{mean} ({sd})")
            rows.append((judge, *cells))
        title = f"ratings of judges, mean (s.d.): {task}"
        show(rows, [texts("judge"), *map(figure, axes)], title, title_style="bold")


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
