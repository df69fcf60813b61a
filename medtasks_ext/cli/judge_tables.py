"""How far a jury's judges agree with each other and with clinicians, as tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import figure, show, texts
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
    """What is about all runs together: judges by axis, and robustness."""
    _print_axes([item for item in figures if item.table == "judge_axes"])
    robustness = [item for item in figures if item.table == "robustness"]
    for item in robustness:
        if item.between.startswith("mean of "):
            same = [one for one in robustness if (one.task, one.measure) == (item.task, item.measure)]
            undefined = sum(one.value is None for one in same)
            left = f"; {undefined} juries that give runs equal scores are left out" if undefined else ""
            said = f"{item.measure} with the full jury {number(item.value, 3)}"
            typer.echo(f"{item.task}: {said} ({item.between}{left})")


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
