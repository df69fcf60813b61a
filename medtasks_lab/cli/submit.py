"""`medtasks submit`: what of a run may be public; with --check whether it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.words import counted, pairs, say, say_next
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry import registry
from medtasks_lab.submissions.record import read_record
from medtasks_lab.submissions.trust import levels_words

if TYPE_CHECKING:
    from medtasks_lab.submissions.check import Checked

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
        list[str] | None,
        typer.Option("--address", metavar="URL", help="Where the file of answers will be had; repeatable."),
    ] = None,
    without: Annotated[
        bool, typer.Option("--no-answers", help="Give no answers: every score is self-reported.")
    ] = False,
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="SUBMISSION",
            help="Write into the submission of somebody else how far this run agrees with it.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="SITE", help="With --confirm: who confirms.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            help="With --confirm: by which command the model was run again, as others may see it.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=0.0001, max=0.05, help="With --confirm: what counts as agreement."),
    ] = 0.02,
    check: Annotated[
        bool, typer.Option("--check", help="Compute every score of submissions again; write nothing.")
    ] = False,
) -> int:
    """Write the public part of a run, for the leaderboard.

    Scores, what they follow from, conditions, heads of the chains: no text, no id of a row. Final answers to
    open data go into a file of their own, which you put where others can have it. Refused: sample rows, and a
    run that does not verify. RUN may be a folder of `lm_eval --log_samples`.

    With --check every score of a submission is computed again, from what documents contribute, by the code
    that a run takes; groups, too. The answers are read and scored again on rows and prompts that are made
    anew here. Refused: another score, another version, texts, links, the same model and conditions twice, a
    level of trust that does not follow, folders that are too large together for one pull request.

    With --confirm a second site states how far its own run agrees, task by task: over all documents or N of
    them, or over the same answers. For data that is not open nothing else lifts a result above self-reported.

    Example: medtasks submit runs/MODEL -o results/submissions/Qwen/Qwen3-8B/2026-05-01

    Example: medtasks submit --check results/submissions/Qwen/Qwen3-8B/2026-05-01

    Example: medtasks submit runs/MODEL --confirm results/submissions/Qwen/Qwen3-8B/2026-05-01 --by charite

    Exit code 1: with --check, something does not fit, and is named.
    """
    if check:
        return _check(folders, Path(answers) if answers else None)
    if confirm:
        return _confirm(folders, Path(confirm), by, command, tolerance)
    if len(folders) > 1 or out is None:
        raise MedtasksError(
            "one run goes to one folder",
            where="medtasks submit",
            remedy="write: medtasks submit RUN -o results/submissions/ORG/MODEL/DATE",
        )
    quiet()
    from medtasks_lab.submissions.submission import AnswerFile
    from medtasks_lab.submissions.submission import submit as write

    given = pairs(about, "--about", "NAME=VALUE, such as access=open")
    facts = {name.strip(): value.strip() for name, value in given.items()}
    wish = AnswerFile(Path(answers) if answers else None, tuple(address or ()), given=not without)
    written = write(Path(folders[0]), Path(out), registry(), facts, wish)
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
    typer.echo(f"trust: {levels_words(written.checked.verdicts.values())}")
    for why, names in written.no_rank.items():
        typer.echo(f"no rank: {counted(len(names), 'task')} ({some(names, 3)}): {why}")
    _print_flags(written.checked)
    steps = ["read submission.json", "commit the folder", "open a pull request (docs/compare.md)"]
    said = written.record.answers
    if written.answers and said:
        typer.echo(f"{written.answers}: {said.size:,} bytes, final answers, sha256 {said.sha256}")
        if said.addresses:
            steps.insert(0, f"upload {written.answers} to {said.addresses[0]}")
        else:
            what = "upload it, and write the URL into submission.json under answers.addresses"
            steps.insert(0, f"{what} (or submit again with --address)")
    say_next(", ".join(steps))
    return 0


def _check(folders: list[str], answers: Path | None) -> int:
    quiet()
    from medtasks_lab.submissions.check import check_submission, too_large

    if answers and len(folders) > 1:
        raise MedtasksError(
            "one file holds the answers of one submission", where="--answers", remedy="check one folder"
        )
    code = 0
    if finding := too_large([Path(folder) for folder in folders]):
        typer.echo(f"✗ {finding}")
        code = 1
    for folder in folders:
        checked = check_submission(Path(folder), registry(), answers)
        for finding in checked.findings:
            typer.echo(f"✗ {finding}")
        _print_flags(checked)
        if checked.findings:
            code = 1
            typer.echo(f"{folder}: {counted(len(checked.findings), 'thing')} must be mended")
        else:
            looked = f"{counted(checked.tasks, 'task')} from {counted(checked.documents, 'document')}"
            typer.echo(f"✓ {folder}: {looked}; all scores follow; {levels_words(checked.verdicts.values())}")
    if not code:
        say_next("commit the folder, open a pull request (docs/compare.md)")
    return code


def _print_flags(checked: Checked) -> None:
    for flag in checked.flags:
        waits = "no rank until a maintainer has looked" if flag.waits else "the other one waits"
        typer.echo(f"⚑ {flag} ({waits}; record {checked.record})")


def _confirm(
    folders: list[str], submission: Path, by: str | None, command: str | None, tolerance: float
) -> int:
    quiet()
    from medtasks_lab.submissions.submission import write_confirmation_of

    if len(folders) > 1 or not by:
        raise MedtasksError(
            "a second site confirms by one run, and says who it is",
            where="medtasks submit --confirm",
            remedy="write: medtasks submit RUN --confirm SUBMISSION --by SITE",
        )
    file, said, left_out = write_confirmation_of(
        Path(folders[0]), submission, registry(), by=by, command=command, tolerance=tolerance
    )
    for name, why in left_out.items():
        say(f"left out: {name}: {why}")
    agreed, record = 0, read_record(submission)
    for name in said.tasks:
        agrees = said.agrees(name, record.tasks[name].n)
        agreed += agrees
        typer.echo(f"{'✓' if agrees else '✗'} {name}: {said.words(name)}")
    typer.echo(f"{file}: {agreed} of {counted(len(said.tasks), 'task')} confirmed, by {said.basis}")
    say_next("commit the file, open a pull request from your own account (docs/compare.md)")
    return 0
