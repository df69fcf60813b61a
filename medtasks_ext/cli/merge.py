"""`medtasks merge`."""

from __future__ import annotations

from pathlib import Path

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import finish
from medtasks_ext.registry import registry
from medtasks_ext.runs.manifest import TaskState


def merge_command(folders: list[str], out: str, *, partial: bool) -> int:
    """Join shards; returns the exit code (0 done, 1 a task failed or was missing)."""
    quiet()
    from medtasks_ext.runner.shards import merge_shards

    run = merge_shards(
        [Path(folder) for folder in folders],
        Path(out),
        registry(),
        partial=partial,
        report=lambda task, what: typer.echo(f"{task}: {what}", err=True),
    )
    missing = [entry for entry in run.manifest.tasks.values() if entry.state is TaskState.MISSING]
    return finish(run, len(missing))
