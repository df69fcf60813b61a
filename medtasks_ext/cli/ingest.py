"""`medtasks ingest`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import AsJson
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.results.store.ingest import Ingested


def ingest(
    folders: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Folders of runs, or of lm_eval --output_path.")
    ],
    store: Annotated[str, typer.Option(help="Folder of the store; made if there is none.")],
    with_text: Annotated[
        bool,
        typer.Option(
            "--with-text",
            help="Store prompts and responses, too: ALL texts, those of gated and private data included.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Put runs into a store of Parquet tables.

    Scores per document and results, for report, DuckDB and Polars; no text. All runs go in, or none; a run
    that went on takes the place of its former state.

    Example: medtasks ingest runs/* --store store
    """
    from medtasks_ext.results.store.ingest import ingest

    items, faults = ingest(
        [Path(folder) for folder in folders],
        Path(store),
        registry(),
        with_text=with_text,
        report=lambda item: say(_line(item)),
        waiting=lambda: say(f"{store}: another ingest is at work, waiting for it"),
    )
    for fault in faults:
        say(str(fault))
    if as_json:
        lists = {"runs": [asdict(item) for item in items], "faults": [asdict(fault) for fault in faults]}
        content = {"store": store, **lists}
        json.dump(content, sys.stdout, ensure_ascii=False, indent=1)
        typer.echo()
    else:
        typer.echo(_summary(store, items))
        say_next(f"medtasks report {store} -o report")
    return int(any(fault.skipped for fault in faults))


def _line(item: Ingested) -> str:
    marks = [mark for mark, holds in (("SAMPLE", item.sample), ("with texts", item.text)) if holds]
    parts = [counted(item.tasks, "task"), counted(item.documents, "document"), *marks]
    return f"{item.folder}: {item.model}, {', '.join(parts)}: {item.state}"


def _summary(store: str, items: list[Ingested]) -> str:
    counts = {state: sum(item.state == state for item in items) for state in ("new", "replaced", "unchanged")}
    return f"{store}: " + ", ".join(f"{n} {state}" for state, n in counts.items() if n)
