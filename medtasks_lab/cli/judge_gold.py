"""`medtasks judge gold`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import OnlyTasks, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import names_in
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, run_study

if TYPE_CHECKING:
    from medtasks_lab.judge.gold import GoldFigures, GoldScore, GoldTask

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
    from medtasks_lab.judge.gold import gold_cases, gold_figures, write_gold

    jury = asking.jury
    wanted = {leaf for leaves in registry().resolve(names_in(tasks)).values() for leaf in leaves}
    runs: dict[str, Run] = {}
    for name in dict.fromkeys(given.rstrip("/") for given in folders):
        runs[name] = Run(Path(name), registry())
        runs[name].load()
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
    sample = any(case.synthetic for task in cases for case in task.cases)
    files, shown = {name: run.files for name, run in runs.items()}, " ".join(runs)
    judge = f"medtasks judge run {shown} --jury {asking.name}"
    study = JuryStudy(
        command="medtasks judge gold",
        what="verdicts on references",
        panels=[(jury, cases)],
        figures=lambda store: gold_figures(cases, jury, store, files),
        write=lambda folder, found: write_gold(folder, found, jury),
        show=lambda found: _print(found, sample=sample),
        missing=lambda found: sum(item.missing for item in found.tasks),
        then=lambda found: [f"medtasks view {shown}" if found.scores else judge],
        private=not all(task.open_access for task in cases),
    )
    return run_study(study, asking, Path(out))


def _print(found: GoldFigures, *, sample: bool) -> None:
    columns = [
        texts("task"),
        figure("documents"),
        figure("flagged", _flagged),
        figure("rank correlation", lambda item: number(item.rank_correlation, 3)),
    ]
    show(found.tasks, columns, "references flagged as not reasonable", sample=sample)
    if not found.scores:
        typer.echo("scores by reference: `medtasks judge` the runs first")
        return
    columns = [
        texts("task"),
        texts("run"),
        figure("flagged", lambda score: f"{number(score.flagged, 3)} ({score.n_flagged})"),
        figure("accepted", lambda score: f"{number(score.accepted, 3)} ({score.n_accepted})"),
        figure("difference", _difference),
    ]
    show(found.scores, columns, "jury's score by reference, 0-1")
    if any(item.rank_correlation is not None for item in found.tasks):
        typer.echo("rank correlation: of the runs' scores with all references and with the accepted ones")


def _flagged(item: GoldTask) -> str:
    return f"{item.flagged} ({100 * item.flagged / item.documents:.1f} %)" if item.documents else "–"


def _difference(score: GoldScore) -> str:
    around = "" if score.low is None else f" [{number(score.low, 3)}, {number(score.high, 3)}]"
    return f"{number(score.difference, 3)}{around}"
