"""`medtasks dev site`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.collector import collector_paused
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry


def site(
    out: Annotated[str, out_option("Folder to write; one of an earlier site is replaced.")],
    submissions: Annotated[
        str | None,
        typer.Option(help="Folder with ORG/MODEL/DATE; by default results/submissions, if it is there."),
    ] = None,
    published: Annotated[bool, typer.Option(help="Also models that the suites' papers print.")] = True,
) -> int:
    """Build the static leaderboard.

    Published and submitted models on all suites and axes, a page for each model and dataset. The pages open
    as files, too, and load nothing from elsewhere. Every submission is checked: its answers are scored again.
    What is not proven has no rank.

    Example: medtasks dev site -o build/leaderboard

    Exit code 1: a submission could not be read or does not follow, and is named.
    """
    from medtasks_ext.report.site.gather import gather_site
    from medtasks_ext.report.site.write import write_site

    folder = Path(submissions or "results/submissions")
    if submissions and not folder.is_dir():
        raise MedtasksError("no such folder", where=folder, remedy="name the folder of submissions")
    with collector_paused():
        found = gather_site(registry(), folder if folder.is_dir() else None, published=published)
        write_site(Path(out), found)
    for fault in found.faults:
        say(f"left out: {fault}")
    own = sum(not line.published for line in found.lines)
    lines = f"{counted(len(found.lines) - own, 'published result')}, {counted(own, 'submission')}"
    typer.echo(f"{lines}, {counted(len(found.models), 'model page')}")
    say_next(f"open {Path(out) / 'index.html'}")
    return 1 if found.faults else 0
