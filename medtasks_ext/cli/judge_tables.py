"""The frame `agreement` as tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import Column, figure, show, texts
from medtasks_ext.judge.report import ALL, COMPOSITE, POOLED

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json


def print_agreement(run: str, frame: pa.Table) -> None:
    """Agreement between the judges of a run."""
    pairs: dict[tuple[str, str], Json] = {}
    for row in frame.to_pylist():
        if row["table"] == "judges" and row["item"] in (COMPOSITE, POOLED):
            pair = pairs.setdefault(
                (row["task"], row["between"]), {"task": row["task"], "judges": row["between"]}
            )
            pair[row["measure"]] = row["value"]
    title = "agreement between judges" + (f" in {run}" if run else "")
    measures = ("Spearman", "ICC(3,k)", "Cohen's kappa", "quadratic kappa")
    rows = [pair for pair in pairs.values() if any(pair.get(name) is not None for name in measures)]
    if rows:
        columns = [figure(name, partial(_or_blank, measure=name)) for name in measures]
        show(rows, [texts("task"), texts("judges"), *columns], title, title_style="bold")


def _or_blank(row: Json, measure: str) -> str:
    return number(row[measure], 3) if measure in row else ""


def print_common(frame: pa.Table) -> None:
    """What is about all runs together: judges by axis, and robustness."""
    rows = frame.to_pylist()
    _print_axes([row for row in rows if row["table"] == "judge_axes"])
    robustness = [row for row in rows if row["table"] == "robustness"]
    for row in robustness:
        if row["between"].startswith("mean of "):
            place = row["task"], row["measure"]
            same = [one for one in robustness if (one["task"], one["measure"]) == place]
            undefined = sum(one["value"] is None for one in same)
            left = f"; {undefined} juries that give runs equal scores are left out" if undefined else ""
            said = f"{row['measure']} with the full jury {number(row['value'], 3)}"
            typer.echo(f"{row['task']}: {said} ({row['between']}{left})")


def _print_axes(rows: Sequence[Json]) -> None:
    """Judge x axis, over all tasks where there are several."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    for task in [task for task in tasks if task.startswith(ALL)] or tasks:
        judges: dict[str, Json] = {}
        for row in rows:
            if row["task"] == task:
                of_judge = judges.setdefault(row["between"], {"judge": row["between"]})
                of_judge[f"{row['item']}, {row['measure']}"] = row["value"]
        axes = dict.fromkeys(row["item"] for row in rows if row["task"] == task)
        columns: list[Column] = [figure(axis, partial(_mean, axis=axis)) for axis in axes]
        title = f"ratings of judges, mean (s.d.): {task}"
        show(judges.values(), [texts("judge"), *columns], title, title_style="bold")


def _mean(row: Json, axis: str) -> str:
    mean, sd = (number(row.get(f"{axis}, {measure}"), 3) for measure in ("mean", "s.d."))
    return f"{mean} ({sd})"
