"""`medtasks check-submission`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.words import counted, say_next
from medtasks_ext.registry import registry

PANEL = "Leaderboard"


def check_submission(
    folders: Annotated[list[str], typer.Argument(metavar="FOLDER...", help="Submissions: …/ORG/MODEL/DATE.")],
) -> int:
    """Compute every score of a submission again.

    From what documents contribute, by the code that a run takes; groups, too. Refused: another score, another
    version, texts, links, the same model and conditions twice.

    Example: medtasks check-submission results/submissions/Qwen/Qwen3-8B/2026-05-01

    Exit code 1: something does not fit, and is named.
    """
    from medtasks_lab.submissions.check import check_submission as check

    code = 0
    for folder in folders:
        found = check(Path(folder), registry())
        for finding in found.findings:
            typer.echo(f"✗ {finding}")
        if found.findings:
            code = 1
            typer.echo(f"{folder}: {counted(len(found.findings), 'thing')} must be mended")
        else:
            looked = f"{counted(found.tasks, 'task')} from {counted(found.documents, 'document')}"
            typer.echo(f"✓ {folder}: {looked}; all scores follow")
    if not code:
        say_next("commit the folder, open a pull request (docs/submitting.md)")
    return code
