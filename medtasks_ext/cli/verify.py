"""`medtasks verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import keep_judgements
from medtasks_ext.cli.words import counted, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.registry import registry
from medtasks_ext.runs.seal import Against, Sealed


def verify(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run.")],
    against: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="medtasks-manifest.json of a published card, whose heads count."),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="ROOT", help="Hold the folder against a root that was kept, 12 digits or more."),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also read all answers and compute all scores anew.")
    ] = False,
    egress: Annotated[
        bool, typer.Option("--egress", help="Only list which hosts got text of which datasets.")
    ] = False,
) -> int:
    """Name what was changed in a run's folder.

    Checks every file against the folder's seal, the chain of every answer and judgement, whose they are,
    samples against answers, and scores against samples. A seal shows changes to whoever has kept its root
    elsewhere: who changes a folder can seal it anew.

    Example: medtasks verify runs/MODEL --root 3f1c9a0b52de

    Exit code 1: something was changed, or the folder never had that root.
    """
    from medtasks_ext.runner import verify as checks
    from medtasks_ext.runs import seal
    from medtasks_ext.runs.manifest import Manifest

    path = Path(folder)
    Manifest.read(path)
    if egress:
        return _print_sent(path)
    quiet()
    found = checks.verify(path, registry(), _published(Path(against)) if against else None)
    changes = list(found.changes)
    kept = seal.against(path, root) if root else None
    if kept is not None:
        changes += kept.changes
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
    files = len({change.file for change in changes})
    typer.echo(f"{folder}: {looked}; {f'{files} of its files do not verify' if files else 'all as written'}")
    for note in found.notes:
        typer.echo(note)
    _print_seal(found.sealed)
    if kept is not None:
        _print_kept(kept, str(root))
    if kept is not None and kept.root is None:
        say_next("ask for a copy of the folder that has this root")
    elif changes:
        again = f"medtasks rescore {folder}     where the answers are as written"
        say_next("bring these files back from a copy", again)
    else:
        say_next(f"medtasks card {folder} -o card")
    return int(bool(changes) or (kept is not None and kept.root is None))


def _print_seal(sealed: Sealed) -> None:
    if sealed.root is None:
        why = "a call is under way, or was cut off" if sealed.is_open else "an older version wrote it"
        typer.echo(f"not sealed: {why}")
        return
    typer.echo(f"root: {sealed.root.root}")
    typer.echo("states: " + ", ".join(f"{root.state} {root.at}" for root in sealed.roots))
    if sealed.is_open:
        typer.echo("open: a call is under way, or was cut off; the same command ends with a new root")


def _print_kept(kept: Against, root: str) -> None:
    if kept.root is None:
        typer.echo(f"✗ the folder never had the root {root}")
    elif kept.later:
        since = ", ".join(f"{item.state} {item.at}" for item in kept.later)
        typer.echo(f"{kept.root.words} is an earlier state of it; since then: {since}")
    else:
        typer.echo(f"{kept.root.words} is its state now")


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
