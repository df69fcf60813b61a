"""`medtasks merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import finish
from medtasks_ext.cli.words import say
from medtasks_ext.registry import registry
from medtasks_ext.runs.manifest import TaskState


def merge(
    folders: Annotated[list[str], typer.Argument(metavar="SHARD...", help="Folders of the shards of a run.")],
    out: Annotated[str, typer.Option("-o", "--out", help="Folder of the run that they make.")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave tasks that lack responses without a score; else refuse.")
    ] = False,
) -> int:
    """Join shards of a run, and score it.

    Example: medtasks merge runs/MODEL-shard-* -o runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    quiet()
    from medtasks_ext.runner.shards import merge_shards

    run = merge_shards(
        [Path(folder) for folder in folders],
        Path(out),
        registry(),
        partial=partial,
        report=lambda task, what: say(f"{task}: {what}"),
    )
    missing = [entry for entry in run.manifest.tasks.values() if entry.state is TaskState.MISSING]
    return finish(run, len(missing))
