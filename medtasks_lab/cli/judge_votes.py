"""`medtasks judge votes`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import Prompts, out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, run_study

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
    from medtasks_ext.prompts.official.choice import prompt_source_of
    from medtasks_lab.judge.votes import FILE, read_votes, voted_task

    jury, votes = asking.jury, read_votes(Path(votes_file))
    dataset = registry().datasets.get(task)
    rubric = rubric_of(dataset, prompt_source_of(prompts)) if dataset else None
    if rubric is None:
        raise MedtasksError(
            f"{task} is no judged task", where="--task", remedy="name a judged one, such as healthbench_full"
        )
    asked_about = voted_task(task, votes, rubric)
    sample = any(case.synthetic for case in asked_about.cases)
    study = JuryStudy.of(
        FILE,
        "medtasks judge votes",
        [(jury, [asked_about])],
        votes,
        sample=sample,
        missing=lambda found: sum(found.missing.values()),
        private=not sample,
    )
    return run_study(study, asking, Path(out))
