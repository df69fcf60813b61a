"""`medtasks submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

PANEL = "Leaderboard"


def submit(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[
        str, typer.Option("-o", "--out", help="Where it goes: results/submissions/ORG/MODEL/DATE.")
    ],
    about: Annotated[
        list[str] | None,
        typer.Option(
            "--about",
            metavar="NAME=VALUE",
            help="A fact of the model, for filters: parameters_b, access, domain, reasoning, release_date, "
            "license, hub_id; repeatable.",
        ),
    ] = None,
) -> int:
    """Write what of a run may be public, for the leaderboard.

    Scores, what they follow from, conditions, heads of the chains. No text, no id of a row. Refused: sample
    rows, and a run that does not verify.

    Example: medtasks submit runs/MODEL -o results/submissions/Qwen/Qwen3-8B/2026-05-01
    """
    from medtasks_lab.submissions.submission import submit as write

    facts = dict(_fact(item) for item in about or [])
    written = write(Path(folder), Path(out), registry(), facts)
    for fault in written.faults:
        say(str(fault))
    for name, why in written.left_out.items():
        say(f"left out: {name}: {why}")
    for file in written.files:
        typer.echo(f"{file}: {file.stat().st_size:,} bytes")
    documents = sum(item.n for item in written.record.tasks.values())
    typer.echo(
        f"{counted(len(written.record.tasks), 'task')}, {counted(documents, 'document')}; no text, no ids"
    )
    say_next("read submission.json, commit the folder, open a pull request (docs/submitting.md)")
    return 0


def _fact(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise MedtasksError(
            f"{text!r} is no NAME=VALUE", where="--about", remedy="such as --about access=open"
        )
    return name.strip(), value.strip()
