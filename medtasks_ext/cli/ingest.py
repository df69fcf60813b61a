"""`medtasks ingest`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.words import counted
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.results.store.ingest import Ingested


def ingest_command(folders: list[str], store: str, *, with_text: bool, as_json: bool) -> int:
    """Put runs into a store; returns the exit code (0 done, 1 something was left out)."""
    from medtasks_ext.results.store.ingest import ingest

    items, faults = ingest(
        [Path(folder) for folder in folders],
        Path(store),
        registry(),
        with_text=with_text,
        report=lambda item: typer.echo(_line(item), err=True),
        waiting=lambda: typer.echo(f"{store}: another ingest is at work, waiting for it", err=True),
    )
    for fault in faults:
        typer.echo(str(fault), err=True)
    if as_json:
        lists = {"runs": [asdict(item) for item in items], "faults": [asdict(fault) for fault in faults]}
        content = {"store": store, **lists}
        json.dump(content, sys.stdout, ensure_ascii=False, indent=1)
        typer.echo()
    else:
        typer.echo(_summary(store, items))
    return int(any(fault.skipped for fault in faults))


def _line(item: Ingested) -> str:
    marks = [mark for mark, holds in (("SAMPLE", item.sample), ("with texts", item.text)) if holds]
    parts = [counted(item.tasks, "task"), counted(item.documents, "document"), *marks]
    return f"{item.folder}: {item.model}, {', '.join(parts)}: {item.state}"


def _summary(store: str, items: list[Ingested]) -> str:
    counts = {state: sum(item.state == state for item in items) for state in ("new", "replaced", "unchanged")}
    return f"{store}: " + ", ".join(f"{n} {state}" for state, n in counts.items() if n)
