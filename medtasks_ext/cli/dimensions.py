"""An average over the parts of a suite, and scores by department: MLB's table, for `medtasks figures`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.tables import console, new_table
from medtasks_ext.registry.suites import function
from medtasks_ext.results.departments import score_by_department
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.rollup import roll_up

if TYPE_CHECKING:
    from medtasks_ext.cli.figures import Figures
    from medtasks_ext.results.experiments import Entry


def print_figures(asked: Figures) -> None:
    """The average and its parts, with the published models below, then departments."""
    _print_parts(asked)
    _print_departments(asked)


def _print_parts(asked: Figures) -> None:
    suite, tasks = asked.suite, asked.tasks
    assert suite.published and suite.averaged_over
    axis = suite.averaged_over
    columns = {"average": suite.id}
    columns |= {value: suite.named(suite.groups[axis], value) for value in suite.titles(axis)}
    columns = {name: group for name, group in columns.items() if group + asked.suffix in tasks.groups}
    table = new_table(["model"], [*columns], suite.title, pad_edge=False)
    for model, run in asked.runs.items():
        metrics = {name: item["metrics"] for name, item in run.tasks.items()}
        cells = []
        for group in columns.values():
            parts = tasks.parts(group + asked.suffix)
            row = roll_up(group, [leaf for part in parts for leaf in part], metrics, {}, parts=parts)
            marks = [f"{row.n_scored}/{row.n_tasks}"] if row.partial else []
            marks += ["in part"] if _in_part(asked, model, [leaf for part in parts for leaf in part]) else []
            partial = f" ({', '.join(marks)})" if marks else ""
            cells.append("–" if row.score is None else f"{row.score:.4f}{partial}")
        table.add_row(model, *cells)
    entries: list[Entry] = function(suite, suite.published.entries)(tasks, suite)
    for entry in entries:
        table.add_row(entry.label, *(f"{entry.groups[group]:.4f}" for group in columns.values()))
    console().print(table)
    typer.echo("Published models were run on the authors' own sample of questions, most of them not public.")


def _in_part(asked: Figures, model: str, leaves: Sequence[str]) -> bool:
    """Whether a score stands on a part of the rows or judgements."""
    items = asked.experiments[model]
    return any(leaf in items and not items[leaf].coverage.whole for leaf in leaves)


def _print_departments(asked: Figures) -> None:
    """Scores by primary and secondary department, where rows carry one."""
    for model, run in asked.runs.items():
        samples = {
            leaf: (run.samples(leaf), {"score": score_statistic(asked.tasks.tasks[leaf][0])})
            for leaf in asked.tasks.leaves(asked.suite.id + asked.suffix)
            if leaf in run.tasks and run.score(leaf) is not None
        }
        lines = score_by_department(samples)
        if not lines:
            continue
        table = new_table(
            ["department"], ["score", "tasks", "documents"], f"{model}, by department", pad_edge=False
        )
        for line in lines:
            indent = "  " if line.primary else ""
            table.add_row(indent + line.name, f"{line.score:.4f}", str(line.n_tasks), str(line.n_documents))
        console().print(table)
