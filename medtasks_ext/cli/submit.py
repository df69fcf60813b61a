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
            "--about",
            metavar="NAME=VALUE",
            help="A fact of the model, for filters: parameters_b, access, domain, reasoning, release_date, "
            "license, hub_id; repeatable.",
        ),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            "--answers",
            help="Where the file of final answers goes (by default RUN.answers.parquet); with --check where "
            "it lies (by default it is downloaded).",
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option("--address", metavar="URL", help="Where the file of answers will be had.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compute every score of submissions again; write nothing.")
    ] = False,
) -> int:
    """Write the public part of a run, for the leaderboard.

    Scores and conditions: no text, no id of a row. Final answers to open data go into a file of their own,
    which you put where others can have it. Refused: sample rows, and scores that the answers do not give. RUN
    may be a folder of `lm_eval --log_samples`.

    With --check the answers are read and scored again, on rows and prompts that are made anew here. Refused:
    another score, other documents, texts, links, more than the record.

    Example: medtasks submit runs/MODEL -o results/submissions/Qwen/Qwen3-8B/2026-05-01

    Example: medtasks submit --check results/submissions/Qwen/Qwen3-8B/2026-05-01

    Exit code 1: with --check, something does not fit, and is named.
    """
    one = len(folders) == 1
    if check and (one or answers is None):
        return _check([Path(folder) for folder in folders], Path(answers) if answers else None)
    if out is None or not one:
        raise MedtasksError(
            "one run goes to one folder, and one file holds the answers of one submission",
            where="medtasks submit",
            remedy="write: medtasks submit RUN -o results/submissions/ORG/MODEL/DATE",
        )
    quiet()
    from medtasks_ext.report.submissions.check import levels_words
    from medtasks_ext.report.submissions.make import submit as write

    given = pairs(about, "--about", "NAME=VALUE, such as access=open")
    facts = {name.strip(): value.strip() for name, value in given.items()}
    written = write(
        Path(folders[0]), Path(out), registry(), facts, Path(answers) if answers else None, address
    )
    for fault in written.faults:
        say(str(fault))
    for name, why in written.left_out.items():
        say(f"left out: {name}: {why}")
    typer.echo(f"{out}: {counted(len(written.record.tasks), 'task')}; no text, no ids")
    typer.echo(f"trust: {levels_words(written.checked.verdicts.values())}")
    steps = ["read submission.json", "commit the folder", "open a pull request (docs/compare.md)"]
    if written.answers:
        typer.echo(f"{written.answers}: final answers")
        where = address or "where others can have it, and write the URL into submission.json: answers.address"
        steps.insert(0, f"upload {written.answers} to {where}")
    say_next(", ".join(steps))
    return 0


def _check(folders: list[Path], answers: Path | None) -> int:
    quiet()
    from medtasks_ext.report.submissions.check import check_submission, levels_words

    sound = True
    for folder in folders:
        checked = check_submission(folder, registry(), answers)
        for fault in checked.faults:
            sound = False
            typer.echo(f"✗ {folder}: {fault}")
        if not checked.faults:
            typer.echo(f"✓ {folder}: {levels_words(checked.verdicts.values())}")
            reasons = {item.words for item in checked.verdicts.values() if item.why}
            typer.echo("".join(f"  {words}\n" for words in sorted(reasons)), nl=False)
    if sound:
        say_next("commit the folder, open a pull request (docs/compare.md)")
    return 0 if sound else 1
