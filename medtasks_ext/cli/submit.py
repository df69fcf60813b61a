"""`medtasks submit`: what of a run may be public; with --check whether it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.words import counted, pairs, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

PANEL = "Leaderboard"
AFTER_INTERRUPT = "begins again"


def submit(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Folder of a run; with --check submissions: …/ORG/MODEL/DATE."),
    ],
    out: Annotated[str | None, out_option("Where it goes: results/submissions/ORG/MODEL/DATE.")] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE: a fact of the model, for filters: parameters_b, access, domain, reasoning, "
            "release_date, license, hub_id; repeatable."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compute every score of submissions again; write nothing.")
    ] = False,
) -> int:
    """Write the public part of a run, for the leaderboard.

    Scores, conditions, and final answers to open data with the ids of their rows: no other text, no other
    id. RUN may be a folder of `lm_eval --log_samples`. With --check the answers are read and scored again, on
    rows and prompts that are made anew here: what does not fit is refused.

    Example: medtasks submit runs/MODEL -o results/submissions/Qwen/Qwen3-8B/2026-05-01

    Exit code 1: with --check, something does not fit, and is named.
    """
    from medtasks_ext.report.submissions.check import check_submission, levels_words
    from medtasks_ext.report.submissions.make import submit as write

    quiet()
    if not check:
        if out is None or len(folders) > 1:
            remedy = "write: medtasks submit RUN -o results/submissions/ORG/MODEL/DATE"
            raise MedtasksError("one run goes to one folder", where="medtasks submit", remedy=remedy)
        facts = pairs(about, "--about", "NAME=VALUE, such as access=open")
        made, notes = write(Path(folders[0]), Path(out), registry(), facts)
        for note in notes:
            say(note)
        what = f"{counted(len(made.verdicts), 'task')}; no text, no ids, but in answers to open data"
        typer.echo(f"{out}: {what}\ntrust: {levels_words(made.verdicts.values())}")
        say_next("read submission.json, commit the folder, open a pull request (docs/compare.md)")
        return 0
    code = 0
    for folder in folders:
        checked = check_submission(Path(folder), registry())
        for fault in checked.faults:
            code = 1
            typer.echo(f"✗ {folder}: {fault}")
        if not checked.faults:
            typer.echo(f"✓ {folder}: {levels_words(checked.verdicts.values())}")
            for reason in sorted({words for words in checked.verdicts.values() if ":" in words}):
                typer.echo(f"  {reason}")
    return code
