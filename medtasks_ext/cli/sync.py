"""`medtasks sync`."""

from __future__ import annotations

import os

import typer

from medtasks_ext.registry import registry
from medtasks_ext.registry.sync import apply, changes, stale


def sync_command(*, check: bool) -> int:
    """Bring derived files up to date, or only say which are not; returns the exit code."""
    from medtasks_ext.cli import reference
    from medtasks_ext.data import source_pages
    from medtasks_ext.data.json_schema import schema_changes
    from medtasks_ext.registry import catalogue

    tasks = registry()
    pending = [
        *changes(tasks),
        *schema_changes(tasks.root),
        *stale(catalogue.pages(tasks) | source_pages.pages(tasks) | reference.page(tasks.root)),
    ]
    for change in pending:
        verb = "delete" if change.content is None else "write"
        typer.echo(f"{'stale: ' if check else ''}{verb} {os.path.relpath(change.path, tasks.root)}")
    if check:
        typer.echo("run `medtasks sync`" if pending else "all derived files are up to date")
        return 1 if pending else 0
    apply(pending)
    typer.echo(f"{len(pending)} files written, {len(tasks.datasets)} dataset folders")
    return 0
