"""What leaderboards take, in place of a card: the layout of a suite's own, and a submission to ours."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

from medtasks_ext.atomic import is_private, private_files
from medtasks_ext.cli.words import counted, pairs, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.registry.suites import function

#: The layout of a submission.
OWN = "medtasks"


def write_layout(
    name: str, folders: Sequence[str], out: Path, about: Sequence[str], *, own_words: bool
) -> int:
    tasks = registry()
    layouts = {suite: item.leaderboard for suite, item in tasks.suites.items() if item.leaderboard}
    if name not in (OWN, *layouts):
        what, remedy = f"no leaderboard layout {name!r}", f"use: {', '.join((OWN, *layouts))}"
        raise MedtasksError(what, where="--layout", remedy=remedy)
    if len(folders) > 1:
        raise MedtasksError("one run goes to one folder", where=f"--layout {name}", remedy="name one run")
    (folder,) = folders
    if name == OWN:
        return _submission(Path(folder), out, about)
    export = function(tasks.suites[name], layouts[name])
    with private_files(is_private(Path(folder))):  # rows hold answers
        written, refused = export(Path(folder), out, tasks, tasks.suites[name], own_words=own_words)
    for item in written:
        typer.echo(f"{item.path}: {item.n} rows{item.notes and f'  ({item.notes})'}")
    for error in refused:
        typer.echo(f"left out: {error}", err=True)
    if written:
        say_next(f"medtasks card {shlex.quote(folder)} -o card")
    return 1 if refused else 0


def _submission(folder: Path, out: Path, about: Sequence[str]) -> int:
    from medtasks_ext.report.submissions.check import levels_words
    from medtasks_ext.report.submissions.make import submit

    facts = pairs(about, "--about", "NAME=VALUE, such as access=open")
    made, notes = submit(folder, out, registry(), facts)
    for note in notes:
        say(note)
    what = f"{counted(len(made.verdicts), 'task')}; no text, no ids, but in answers to open data"
    typer.echo(f"{out}: {what}\ntrust: {levels_words(made.verdicts.values())}")
    say_next("read submission.json, commit the folder, open a pull request (docs/compare.md)")
    return 0
