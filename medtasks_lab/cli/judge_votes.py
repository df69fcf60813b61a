"""`medtasks judge votes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import Prompts, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.judging import number
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, run_study

if TYPE_CHECKING:
    from medtasks_lab.judge.votes import VoteFigures

AFTER_INTERRUPT = "goes on"


@asks_jury("Jury file, or a bundled one.")
def judge_votes(
    votes_file: Annotated[str, typer.Argument(metavar="VOTES", help="JSONL file of criteria with votes.")],
    task: Annotated[
        str, typer.Option(metavar="TASK", help="Task whose judges are asked about single criteria.")
    ],
    out: Annotated[str, out_option("Folder for verdicts and figures.")],
    prompts: Prompts = None,
    *,
    asking: Asking,
) -> int:
    """Compare judges with the votes of physicians.

    On single criteria, as HealthBench does: macro F1 of each judge, beside that of each physician. Resumable.

    Example: medtasks judge votes votes.jsonl --task healthbench_full --jury jury.yaml -o votes --dry-run

    Exit code 1: verdicts are missing.
    """
    quiet()
    from medtasks_ext.errors import MedtasksError
    from medtasks_ext.judge.cases import rubric_of
    from medtasks_ext.prompts.official.choice import wish_of
    from medtasks_lab.judge.votes import read_votes, vote_figures, voted_task, write_votes

    jury, votes = asking.jury, read_votes(Path(votes_file))
    dataset = registry().datasets.get(task)
    rubric = rubric_of(dataset, wish_of(prompts)) if dataset else None
    if rubric is None:
        raise MedtasksError(
            f"{task} is no judged task", where="--task", remedy="name a judged one, such as healthbench_full"
        )
    asked_about = voted_task(task, votes, rubric)
    sample = any(case.synthetic for case in asked_about.cases)
    study = JuryStudy(
        command="medtasks judge votes",
        what="verdicts on criteria",
        panels=[(jury, [asked_about])],
        figures=lambda store: vote_figures(asked_about, votes, jury, store),
        write=lambda folder, found: write_votes(folder, found, jury, sample=sample),
        show=lambda found: _print(found, sample=sample),
        missing=lambda found: sum(found.missing.values()),
        private=not sample,
    )
    return run_study(study, asking, Path(out))


def _print(found: VoteFigures, *, sample: bool) -> None:
    rows = []
    for item in found.judges:
        around = "" if item.low is None else f" [{number(item.low, 3)}, {number(item.high, 3)}]"
        others = f"{item.physicians}, {number(item.median, 3)}" if item.physicians else "–"
        below = "–" if item.below is None else f"{item.below:.0%}"
        f1 = f"{number(item.agreement.macro, 3)}{around}"
        rows.append((item.rater, item.category, f1, f"{item.agreement.pairs:,}", others, below))
    columns = [texts("rater"), texts("category")]
    columns += map(figure, ("macro F1", "pairs", "physicians, median", "below"))
    show(rows, columns, "macro F1 with physicians' votes, by category of criterion", sample=sample)
    typer.echo("below: share of the physicians whose macro F1 with the other physicians is lower")
