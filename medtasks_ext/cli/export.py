"""`medtasks export`."""

from __future__ import annotations

from pathlib import Path

import typer

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry


def export_command(suite: str, folder: str, out: str) -> int:
    """Export a run for a leaderboard; returns the exit code."""
    from medtasks_ext.results.bridge_export import export_bridge

    if suite != "bridge":
        raise MedtasksError(
            f"no leaderboard layout for {suite!r}", where="medtasks export", remedy="use: bridge"
        )
    written = export_bridge(Path(folder), Path(out), registry())
    for item in written:
        note = "  (rows rebuilt from the source: not the official test rows)" if item.rebuilt else ""
        typer.echo(f"{item.path}: {item.n} rows{note}")
    return 0
