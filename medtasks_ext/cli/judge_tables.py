"""The frame `agreement` as tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import show, spread, texts
from medtasks_ext.judge.report import ALL, COMPOSITE, POOLED
from medtasks_ext.studies.clinicians import MUCH, PEOPLE, ROUGE, has_bertscore

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.judge.report import Figure


def print_agreement(run: str, frame: pa.Table) -> None:
    title = "agreement between judges" + (f" in {run}" if run else "")
    rows = [row for row in frame.to_pylist() if row["table"] == "judges"]
    rows = [row for row in rows if row["item"] in (COMPOSITE, POOLED)]
    defined = {(row["task"], row["between"]) for row in rows if row["value"] is not None}
    rows = [row for row in rows if (row["task"], row["between"]) in defined]
    if rows:
        measures = ("Spearman", "ICC(3,k)", "Cohen's kappa", "quadratic kappa")
        down = [texts("task"), texts("judges", "between")]
        show(*spread(rows, down, "measure", "{value:.3f}", measures, blank=""), title, title_style="bold")


def print_axes(frame: pa.Table) -> None:
    """Judge x axis of all runs together, over all tasks where there are several."""
    rows = [row for row in frame.to_pylist() if row["table"] == "judge_axes"]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    means, sds = ([row for row in rows if row["measure"] == name] for name in ("mean", "s.d."))
    pairs = [{**one, "sd": number(other["value"], 3)} for one, other in zip(means, sds, strict=True)]
    for task in [task for task in tasks if task.startswith(ALL)] or tasks:
        here = [row for row in pairs if row["task"] == task]
        table = spread(here, [texts("judge", "between")], "item", "{value:.3f} ({sd})", blank="– (–)")
        show(*table, f"ratings of judges, mean (s.d.): {task}", title_style="bold")


def print_clinicians(figures: Sequence[Figure]) -> None:
    """MedHELM's Extended Data Table 4, and who is nearer to the clinicians by answer quality."""
    people = [row for row in figures if row.table == "clinicians"]
    if not people:
        return
    forms = ["{value:.3f}\n({low:.3f}, {high:.3f})", "{value:.3f}"]
    title = "ICC(3,k) with clinicians, and among them; below 0 counts as 0"
    names = {row.between: row.between.removeprefix(f"{PEOPLE} + ") for row in people}
    show(*spread(people, [texts("task")], "between", forms, names), title, title_style="bold")
    if ROUGE not in names.values():
        typer.echo("ROUGE-L is left out: none of these answers has a reference")
    elif not has_bertscore():
        typer.echo("BERTScore-F is left out: MEDTASKS_BERTSCORE=1 computes it (medtasks[bertscore])")
    quality = [row for row in figures if row.table == "quality"]
    for task in dict.fromkeys(row.task for row in quality[-1:]):
        here = [row for row in quality if row.task == task]
        table = spread(
            here, [texts("rating", "item"), texts("of", "between")], "measure", "{value:.3f} ({n})"
        )
        show(*table, f"by the clinicians' rating: {task}", title_style="bold")
        typer.echo(
            f"shares of answers; all z-scored; much: by more than {MUCH:g} s.d.; moderate: 3 to 4 of 1 to 5"
        )
