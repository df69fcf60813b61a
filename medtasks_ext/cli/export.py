"""`medtasks export`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.atomic import is_private, private_files
from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.words import say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.suites import function

PANEL = "Results"


def export(
    suite: Annotated[str, typer.Argument(help="Suite with a leaderboard, such as bridge.")],
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
    out: Annotated[str, out_option("Where the folder `result` goes.")] = ".",
    own_words: Annotated[
        bool,
        typer.Option("--own-words", help="Also tasks that were asked in other words; each row says so."),
    ] = False,
) -> int:
    """Write the layout that a leaderboard takes.

    Tasks that the leaderboard does not take are left out and named: rebuilt or synthetic rows, a part of the
    rows, other words, other numbers of examples, sampled answers.

    Example: medtasks export bridge runs/MODEL -o submission
    """
    tasks = registry()
    layouts = {name: item.leaderboard for name, item in tasks.suites.items() if item.leaderboard}
    if suite not in layouts:
        raise MedtasksError(
            f"no leaderboard layout for {suite!r}",
            where="medtasks export",
            remedy=f"use: {', '.join(layouts)}",
        )
    export = function(tasks.suites[suite], layouts[suite])
    with private_files(is_private(Path(folder))):  # rows hold answers
        written, refused = export(Path(folder), Path(out), tasks, tasks.suites[suite], own_words=own_words)
    for item in written:
        typer.echo(f"{item.path}: {item.n} rows{item.notes and f'  ({item.notes})'}")
    for error in refused:
        typer.echo(f"left out: {error}", err=True)
    if written:
        say_next(f"medtasks card {shlex.quote(folder)} -o card")
    return 1 if refused else 0
