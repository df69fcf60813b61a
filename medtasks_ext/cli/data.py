"""`medtasks data`: what a user needs to bring data of their own."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from medtasks_ext.data.template import write_template
from medtasks_ext.registry import registry


def template_command(name: str, out: str | None) -> int:
    """Write the templates of a dataset, or of all datasets of a group; returns the exit code."""
    tasks = registry()
    root = Path(out or os.environ.get("MEDTASKS_DATA_DIR") or "medtasks_data")
    leaves = [leaf for members in tasks.resolve([name]).values() for leaf in members]
    for dataset in dict.fromkeys(tasks.tasks[leaf][0] for leaf in leaves):
        template = write_template(dataset, root)
        for path in template.written:
            typer.echo(f"wrote {path}")
        for path in template.kept:
            typer.echo(f"left  {path} (exists)")
    typer.echo(f"fill test.jsonl, then: MEDTASKS_DATA_DIR={root} medtasks run --tasks {name} …")
    return 0
