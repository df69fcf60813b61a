"""`medtasks sync`."""

from __future__ import annotations

import typer

from medtasks_ext.registry import registry
from medtasks_ext.registry.sync import apply, changes


def sync_command(*, check: bool) -> int:
    """Bring derived files up to date, or only say which are not; returns the exit code."""
    tasks = registry()
    pending = changes(tasks)
    for change in pending:
        verb = "delete" if change.content is None else "write"
        typer.echo(f"{'stale: ' if check else ''}{verb} {change.path.relative_to(tasks.root)}")
    if check:
        typer.echo("run `medtasks sync`" if pending else "all derived files are up to date")
        return 1 if pending else 0
    apply(pending)
    typer.echo(f"{len(pending)} files written, {len(tasks.datasets)} dataset folders")
    return 0
