"""`medtasks judge eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.words import say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, end_study, run_study, show_tables
from medtasks_lab.judge.study import study_file

AFTER_INTERRUPT = "goes on"


@asks_jury("Jury file: ask these judges about each point; resumable.", needed=False)
def judge_eval(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="CASES...", help="JSONL files of cases.")
    ] = None,
    expert: Annotated[list[str] | None, typer.Option(help="Decisions of experts, if not in CASES.")] = None,
    decided: Annotated[
        list[str] | None, typer.Option("--judge", help="Decisions of a judge; once for each judge.")
    ] = None,
    out: Annotated[str, out_option("Folder for results.")] = "judge_eval",
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="The paper's own table: alone, with what follows from it, or below CASES."
        ),
    ] = False,
    *,
    asking: Asking | None,
) -> int:
    """Compare judges' decisions with experts'.

    On scoring points, as MLB does.

    Example: medtasks judge eval judge_data/test_cases.jsonl --jury judge.yaml -o judge_eval

    Exit code 1: decisions are missing.
    """
    quiet()
    from medtasks_lab.studies.judge_evaluation import (
        FILE,
        JudgeFigures,
        evaluate,
        points_to_judge,
        published_table,
        write_evaluation,
    )
    from medtasks_lab.studies.judge_sft import decisions_about, expert_decisions, read_cases

    tables = study_file(FILE).tables
    if published and not files:
        show_tables(tables, JudgeFigures(published=published_table()))
        say_next("medtasks judge eval CASES --jury JURY")
        return 0
    if not files or bool(decided) == bool(asking):
        raise MedtasksError(
            "needs the cases, and either decisions (--judge FILE) or judges to ask (--jury FILE)",
            where="medtasks judge eval",
            remedy="`medtasks judge eval --help` has an example; --published needs nothing",
        )
    cases = read_cases([Path(file) for file in files])
    truth = expert_decisions(cases, [Path(file) for file in expert or []])
    task, keys = points_to_judge(cases, truth, registry())
    beside, folder = published_table() if published else (), Path(out)
    study = JuryStudy.of(
        FILE,
        "medtasks judge eval",
        [(asking.jury, [task])] if asking else [],
        cases,
        truth,
        keys,
        beside,
        missing=lambda found: found.missing,
        then=lambda found: [
            "name the judge as adjudicator in a jury file", "medtasks judge run RUN --jury JURY --dry-run",
        ],
    )  # fmt: skip
    if asking:
        return run_study(study, asking, folder)
    by_judge = {name: decisions_about(cases, Path(name)) for name in decided or []}
    found = JudgeFigures({name: evaluate(cases, truth, by, name) for name, by in by_judge.items()}, beside)
    results = write_evaluation(folder, found)
    study.show(found)
    return end_study(study, found, folder, results)
