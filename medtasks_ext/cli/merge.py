"""`medtasks merge`."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.atomic import is_private, private_files
from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.end import print_scores, say_end
from medtasks_ext.cli.words import say
from medtasks_ext.registry import registry
from medtasks_ext.runs.lease import Lease
from medtasks_ext.runs.manifest import TaskState


def merge(
    folders: Annotated[list[str], typer.Argument(metavar="SHARD...", help="Folders of the shards of a run.")],
    out: Annotated[str, out_option("Folder of the run that they make.")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave tasks that lack responses without a score; else refuse.")
    ] = False,
) -> int:
    """Join shards of a run, and score it.

    Example: medtasks merge runs/MODEL-shard-* -o runs/MODEL

    Exit code 1: a task failed or is missing.
    """
    quiet()
    from medtasks_ext.runner.shards import merge_shards

    shards, made = [Path(folder) for folder in folders], Path(out)
    # the run appears whole, so the lease lies beside its place
    place = made.resolve().with_name(f".{made.resolve().name}.merge")
    with ExitStack() as stack:
        stack.enter_context(private_files(any(map(is_private, shards))))
        stack.callback(_without, place)
        stack.enter_context(Lease(place, "medtasks merge"))
        run = merge_shards(
            shards, made, registry(), partial=partial, report=lambda task, what: say(f"{task}: {what}")
        )
        missing = [entry for entry in run.manifest.tasks.values() if entry.state is TaskState.MISSING]
        print_scores(run, run.results())
        return say_end(run, len(missing), again=None)


def _without(folder: Path) -> None:
    with suppress(OSError):  # another call works there
        folder.rmdir()
