"""MLB's dimensions and departments, for `medtasks figures --suite mlb`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from medtasks_ext.cli.tables import console
from medtasks_ext.registry import paper_datasets
from medtasks_ext.results.departments import score_by_department
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.published import mlb_scores
from medtasks_ext.results.rollup import roll_up

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.run_files import RunResults

DIMENSIONS = ("medkqa", "medse", "medru", "smartserv", "smartcare")


def print_dimensions(tasks: Registry, runs: dict[str, RunResults], suffix: str) -> None:
    """The average and the five dimensions of the runs, with the published models below."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="MLB", title_justify="left")
    names = ("average", *DIMENSIONS)
    for name in ("model", *names):
        table.add_column(name, justify="left" if name == "model" else "right")
    for model, run in runs.items():
        metrics = {name: item["metrics"] for name, item in run.tasks.items()}
        cells = []
        for group in ("mlb", *(f"mlb_{name}" for name in DIMENSIONS)):
            parts = [own for part in tasks.parts(group + suffix) if (own := _of_the_paper(tasks, part))]
            leaves = [leaf for part in parts for leaf in part]
            row = roll_up(group, leaves, metrics, {}, parts=parts)
            partial = f" ({row.n_scored}/{row.n_tasks})" if row.partial else ""
            cells.append("–" if row.score is None else f"{row.score:.4f}{partial}")
        table.add_row(model, *cells)
    for model, scores in mlb_scores().items():
        table.add_row(f"{model} (published)", *(f"{scores[name]:.4f}" for name in names))
    console().print(table)
    typer.echo("Published models were run on the authors' own sample of questions, most of them not public.")


def _of_the_paper(tasks: Registry, leaves: list[str]) -> list[str]:
    """Without datasets that were added to the suite: published averages are not over them."""
    return [leaf for leaf in leaves if tasks.tasks[leaf][0].id in paper_datasets()]


def print_departments(tasks: Registry, runs: dict[str, RunResults], suffix: str) -> None:
    """Scores by primary and secondary department, where rows carry one."""
    for model, run in runs.items():
        samples = {
            leaf: (run.samples(leaf), {"score": score_statistic(tasks.tasks[leaf][0])})
            for leaf in tasks.leaves("mlb" + suffix)
            if leaf in run.tasks and run.score(leaf) is not None
        }
        lines = score_by_department(samples)
        if not lines:
            continue
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, title=f"{model}, by department", title_justify="left"
        )
        for name in ("department", "score", "tasks", "documents"):
            table.add_column(name, justify="left" if name == "department" else "right")
        for line in lines:
            indent = "  " if line.primary else ""
            table.add_row(indent + line.name, f"{line.score:.4f}", str(line.n_tasks), str(line.n_documents))
        console().print(table)
