"""The frame `agreement` as tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import show, spread, texts
from medtasks_ext.judge.report import ALL, COMPOSITE, POOLED

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json


def print_agreement(run: str, frame: pa.Table) -> None:
    """Agreement between the judges of a run."""
    title = "agreement between judges" + (f" in {run}" if run else "")
    rows = [row for row in frame.to_pylist() if row["table"] == "judges"]
    rows = [row for row in rows if row["item"] in (COMPOSITE, POOLED)]
    defined = {(row["task"], row["between"]) for row in rows if row["value"] is not None}
    rows = [row for row in rows if (row["task"], row["between"]) in defined]
    if rows:
        measures = ("Spearman", "ICC(3,k)", "Cohen's kappa", "quadratic kappa")
        down = [texts("task"), texts("judges", "between")]
        show(*spread(rows, down, "measure", "{value:.3f}", measures, blank=""), title, title_style="bold")


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
    means, sds = ([row for row in rows if row["measure"] == name] for name in ("mean", "s.d."))
    pairs = [{**one, "sd": number(other["value"], 3)} for one, other in zip(means, sds, strict=True)]
    for task in [task for task in tasks if task.startswith(ALL)] or tasks:
        here = [row for row in pairs if row["task"] == task]
        table = spread(here, [texts("judge", "between")], "item", "{value:.3f} ({sd})", blank="– (–)")
        show(*table, f"ratings of judges, mean (s.d.): {task}", title_style="bold")
