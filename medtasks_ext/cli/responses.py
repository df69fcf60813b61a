"""`medtasks batch in`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.arguments import hide_bars, quiet
from medtasks_ext.cli.batch import take_files
from medtasks_ext.cli.run import finish
from medtasks_ext.cli.words import counted, say
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.runner.batch import Left

_AGAIN = "`medtasks batch out` writes them again"


def responses(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder of the run.")],
    files: Annotated[
        list[str], typer.Argument(metavar="RESULTS...", help="Files of results and errors, in any order.")
    ],
) -> int:
    """Take the results of a batch back, and score what is complete.

    In the format of OpenAI's output and error files, which `vllm run-batch` writes, too, or Anthropic's.

    Example: medtasks batch in runs/MODEL results.jsonl errors.jsonl

    Exit code 1: answers are missing, or lines hold no result of this run.
    """
    quiet()
    hide_bars("")
    from medtasks_ext.runner.batch import RunIntake
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.seal import RunLease

    run, paths = Run(Path(folder), registry()), [Path(name) for name in files]
    run.load()
    with RunLease(run.folder, "medtasks batch in"):
        results = RunIntake(run)
        results.intake.check(paths)
        run.note_session({})
        try:
            sound = take_files(results.intake, paths)
        finally:
            results.close()
        results.score(lambda task, what: say(f"{task}: {what}"))
        code = finish(run, 0, how=_AGAIN)
    if results.beyond:
        say(
            f"note: {counted(results.beyond, 'answer')} to documents that later calls left out with --limit "
            "or --samples: stored, and scored by the same `medtasks batch out` or `run` command that chooses "
            "them"
        )
    _say_left(results.left)
    return code if sound else 1


def _say_left(left: Left) -> None:
    if left.without_result:
        say(f"missing: {counted(left.without_result, 'request')} without a result")
    for reason, n in left.faults.most_common():
        say(f"missing: {counted(n, 'request')} failed: {reason}")
    if left:
        say("the same `medtasks batch out` command writes them again")
