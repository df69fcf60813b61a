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
    folder: Annotated[str, typer.Argument(help="Folder of a run.")],
) -> int:
    """Compute every metric again, without a model.

    From the stored responses, by the tasks' version of now. The words that they were asked in stay in the
    record: where these did not change, results of two versions compare once both are rescored.

    Example: medtasks rescore runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    quiet()
    from medtasks_ext.results.reading import unknown_tasks
    from medtasks_ext.run.outcomes import working_in
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
