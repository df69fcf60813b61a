"""`medtasks judge gold`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import OnlyTasks, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.words import names_in, say_changed
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, run_study

AFTER_INTERRUPT = "goes on"


@asks_jury("Jury file, or a bundled one; one judge is enough.")
def judge_gold(
    folders: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    out: Annotated[str, out_option("Folder for verdicts and figures.")],
    tasks: OnlyTasks = None,
    *,
    asking: Asking,
) -> int:
    """Let models flag doubtful reference answers.

    And compare the jury's scores of answers with and without a flagged reference. Resumable.

    Example: medtasks judge gold runs/MODEL --jury jury.yaml -o gold --dry-run

    Exit code 1: verdicts are missing.
    """
    quiet()
    from medtasks_ext.judge.cases import judged_tasks
    from medtasks_ext.runner.run import Run
    from medtasks_lab.judge.gold import FILE, gold_cases

    jury = asking.jury
    wanted = set(registry().leaves_of(names_in(tasks)))
    runs: dict[str, Run] = {}
    for name in dict.fromkeys(given.rstrip("/") for given in folders):
        runs[name] = Run(Path(name), registry())
        runs[name].load()
    say_changed(run.folder for run in runs.values())
    judged = [
        judged_tasks(
            run.folder,
            registry(),
            [name for name in run.manifest.tasks if run.is_done(name) and (not tasks or name in wanted)],
        )
        for run in runs.values()
    ]
    cases = gold_cases(judged)
    if not cases:
        raise MedtasksError(
            "no finished task of these runs is judged beside a reference",
            where=", ".join(runs),
            remedy="`medtasks run` an open-ended task that has references first",
        )
    shown = " ".join(runs)
    judge = f"medtasks judge run {shown} --jury {asking.name}"
    study = JuryStudy.of(
        FILE,
        "medtasks judge gold",
        [(jury, cases)],
        {name: run.files for name, run in runs.items()},
        sample=any(case.synthetic for task in cases for case in task.cases),
        missing=lambda found: sum(item.missing for item in found.tasks),
        then=lambda found: [f"medtasks view {shown}" if found.scores else judge],
    )
    return run_study(study, asking, Path(out))
