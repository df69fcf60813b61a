"""`medtasks rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import command_app
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.run import finish
from medtasks_ext.cli.words import say
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

app = command_app()


@app.command("rescore")
def rescore(
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
    disagreements: Annotated[
        bool,
        typer.Option(
            "--disagreements", help="Compute nothing: list answers that the two readings see differently."
        ),
    ] = False,
) -> int:
    """Compute every metric again, without a model.

    From the stored responses.

    Example: medtasks rescore runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    if disagreements:
        from medtasks_ext.cli.disagreements import disagreements_command

        return disagreements_command(folder)
    quiet()
    from medtasks_ext.results.reading import unknown_tasks
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.lease import Lease

    run = Run(Path(folder), registry())
    run.load()
    if not run.known_names():
        fault = unknown_tasks(list(run.manifest.tasks), folder)
        raise MedtasksError(fault.what, where=fault.where, remedy="call it with the folder of these tasks")
    with Lease(run.folder, "medtasks rescore"):
        run.rescore(lambda task, what: say(f"{task}: {what}"))
        return finish(run, 0)
