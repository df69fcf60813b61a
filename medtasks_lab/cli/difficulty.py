"""`medtasks study difficulty`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import OnlyTasks, out_option
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import names_in, say_changed, say_next
from medtasks_ext.registry import registry
from medtasks_ext.registry.row_labels import LEVELS
from medtasks_lab.studies.difficulty import PAPERS_PANEL, Grading, grade, write_grading


def difficulty(
    folders: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Folders of the panel's runs, one per model.")
    ],
    tasks: OnlyTasks = None,
    out: Annotated[str, out_option("Folder for TASK.json.")] = "difficulty",
) -> int:
    """Grade questions as easy, medium or hard.

    By the answers of a panel of models, as MLB does.

    Example: medtasks study difficulty runs/A runs/B runs/C runs/D runs/E --tasks mlb -o difficulty
    """
    say_changed(map(Path, folders))
    names = names_in(tasks)
    known = registry()
    wanted = known.leaves_of(names) if names else None
    gradings = grade([Path(folder) for folder in folders], known, list(dict.fromkeys(wanted or [])) or None)
    written = [write_grading(Path(out), grading) for grading in gradings]
    _print(gradings)
    for path in written:
        typer.echo(path)
    say_next(f"medtasks study sample {written[0]} --size 300 -o samples.json")
    return 0


def _print(gradings: list[Grading]) -> None:
    sample = any(grading.origin == "sample" for grading in gradings)
    rows = []
    for grading in gradings:
        counts = grading.counts()
        numbers = [len(grading.questions), *(counts[level] for level in LEVELS)]
        rows.append((grading.task, grading.method, *(f"{number:,}" for number in numbers)))
    columns = [texts("task"), texts("method"), *map(figure, ("questions", *LEVELS))]
    show(rows, columns, sample=sample, pad_edge=False)
    panel = gradings[0].panel
    typer.echo(f"panel of {len(panel)}: {', '.join(item['model'] for item in panel)}")
    if len(panel) != PAPERS_PANEL:
        typer.echo(
            f"the paper's panel has {PAPERS_PANEL} models; here too easy means that all are right, "
            "medium all but one, hard fewer"
        )
