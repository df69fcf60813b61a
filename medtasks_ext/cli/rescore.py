"""`medtasks rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import finish, say_damaged
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry


def rescore(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Folder of a run; with --check submissions: …/ORG/MODEL/DATE."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Compute every score of submissions again; write nothing.")
    ] = False,
) -> int:
    """Compute every metric again, without a model.

    From the stored responses, by the tasks' version of now. The words that they were asked in stay in the
    record: where these did not change, results of two versions compare once both are rescored.

    With --check the answers of submissions are read and scored again, on rows and prompts that are made anew
    here: what does not fit is refused.

    Example: medtasks rescore runs/MODEL

    Exit code 1: a task failed or is missing; with --check, something does not fit, and is named.
    """
    quiet()
    if check:
        return _check(folders)
    if len(folders) > 1:
        raise MedtasksError("one run at a time", where="medtasks rescore", remedy="name one folder")
    (folder,) = folders
    from medtasks_ext.results.reading import unknown_tasks
    from medtasks_ext.run.store import working_in
    from medtasks_ext.runner.run import Run

    run = Run(Path(folder), registry())
    run.load()
    if not run.known_names():
        fault = unknown_tasks(list(run.manifest.tasks), folder)
        raise MedtasksError(fault.what, where=fault.where, remedy="call it with the folder of these tasks")
    with working_in(run.folder, "medtasks rescore") as run.answers:
        say_damaged(run)
        run.rescore(lambda task, what: say(f"{task}: {what}"))
        return finish(run, 0)


def _check(folders: list[str]) -> int:
    from medtasks_ext.report.submissions.check import check_submission, levels_words

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
