"""`medtasks difficulty`."""

from __future__ import annotations

from pathlib import Path

import typer
from rich import box
from rich.table import Table

from medtasks_ext.cli.tables import console
from medtasks_ext.registry import registry
from medtasks_ext.studies.difficulty import LEVELS, PAPERS_PANEL, Grading, grade, write_grading


def difficulty_command(folders: list[str], tasks: str | None, out: str) -> int:
    """Grade the questions of tasks by a panel's runs; returns the exit code."""
    names = [name.strip() for name in (tasks or "").split(",") if name.strip()]
    known = registry()
    wanted = [task for members in known.resolve(names).values() for task in members] if names else None
    gradings = grade([Path(folder) for folder in folders], known, list(dict.fromkeys(wanted or [])) or None)
    written = [write_grading(Path(out), grading) for grading in gradings]
    _print(gradings)
    for path in written:
        typer.echo(path)
    return 0


def _print(gradings: list[Grading]) -> None:
    sample = any(grading.origin == "sample" for grading in gradings)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title="SAMPLE DATA: synthetic rows, not a result" if sample else None,
        title_justify="left",
    )
    table.add_column("task", overflow="fold")
    table.add_column("method")
    for name in ("questions", *LEVELS):
        table.add_column(name, justify="right")
    for grading in gradings:
        counts = grading.counts()
        numbers = [len(grading.questions), *(counts[level] for level in LEVELS)]
        table.add_row(grading.task, grading.method, *(f"{number:,}" for number in numbers))
    console().print(table, markup=False)
    panel = gradings[0].panel
    typer.echo(f"panel of {len(panel)}: {', '.join(item['model'] for item in panel)}")
    if len(panel) != PAPERS_PANEL:
        typer.echo(
            f"the paper's panel has {PAPERS_PANEL} models; here too easy means that all are right, "
            "medium all but one, hard fewer"
        )
