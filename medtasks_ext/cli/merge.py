"""`medtasks merge`."""

from __future__ import annotations

from pathlib import Path

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import finish
from medtasks_ext.registry import registry


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
    missing = [name for name, state in run.manifest["tasks"].items() if state["state"] == "missing"]
    return finish(run, len(missing))
