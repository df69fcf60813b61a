"""`medtasks verify`."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import keep_judgements
from medtasks_ext.cli.words import counted, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry import registry


def verify(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run.")],
    against: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="medtasks-manifest.json of a published card, whose heads count."),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also read all answers and compute all scores anew.")
    ] = False,
    egress: Annotated[
        bool, typer.Option("--egress", help="Only list which hosts got text of which datasets.")
    ] = False,
) -> int:
    """Name what was changed in a run's folder.

    Checks the chain of every answer and judgement, the sealed heads, samples against answers, and scores
    against samples.

    Example: medtasks verify runs/MODEL

    Exit code 1: something was changed.
    """
    from medtasks_ext.runner import verify as checks
    from medtasks_ext.runs.manifest import Manifest

    path = Path(folder)
    heads = Manifest.read(path).heads
    if egress:
        return _print_sent(path)
    quiet()
    found = checks.verify(path, registry(), _published(Path(against)) if against else None)
    changes = list(found.changes)
    if scores:
        from medtasks_ext.runner.run import Run

        run = Run(path, registry())
        run.load()
        changes += checks.verify_scores(run, keep_judgements)
    for change in changes:
        typer.echo(f"✗ {change.file}: {change.what}")
    looked = (
        f"{counted(found.tasks, 'task')}, {counted(found.answers, 'answer')}, "
        f"{counted(found.judgements, 'judgement')}"
    )
    digest = sha256(" ".join(f"{file} {head}" for file, head in heads.items()).encode()).hexdigest()[:32]
    files = len({change.file for change in changes})
    typer.echo(f"{folder}: {looked}; {f'{files} of its files do not verify' if files else 'all as written'}")
    typer.echo(f"digest of {counted(len(heads), 'sealed head')}: {digest}")
    if changes:
        again = f"medtasks rescore {folder}     where the answers are as written"
        say_next("bring these files back from a copy", again)
    else:
        say_next(f"medtasks card {folder} -o card")
    return int(bool(changes))


def _published(file: Path) -> dict[str, str]:
    heads = read_json(file).get("heads")
    if not isinstance(heads, dict):
        raise MedtasksError(
            "names no heads", where=file, remedy="take the medtasks-manifest.json that `medtasks card` wrote"
        )
    return heads


def _print_sent(folder: Path) -> int:
    from medtasks_ext.runs.sent import read_sent

    sent = read_sent(folder)
    for item in sent:
        kind = "open" if item.is_open else "not open"
        typer.echo(f"{item.host}: {item.dataset} ({kind}; {item.way.value}; since {item.since})")
    if not sent:
        typer.echo("no text left this machine")
    return 0
