"""`medtasks judge eval`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks_ext.cli.app import out_option
from medtasks_ext.cli.arguments import quiet
from medtasks_ext.cli.tables import Column, figure, show, texts
from medtasks_ext.cli.words import say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_lab.cli.jury_study import Asking, JuryStudy, asks_jury, end_study, run_study

if TYPE_CHECKING:
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_lab.studies.judge_evaluation import Evaluation, PublishedRow

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
    if published and not files:
        _print_published()
        say_next("medtasks judge eval CASES --jury JURY")
        return 0
    if not files or bool(decided) == bool(asking):
        raise MedtasksError(
            "needs the cases, and either decisions (--judge FILE) or judges to ask (--jury FILE)",
            where="medtasks judge eval",
            remedy="`medtasks judge eval --help` has an example; --published needs nothing",
        )
    from medtasks_lab.studies.judge_evaluation import (
        evaluate,
        judge_decisions,
        points_to_judge,
        write_evaluation,
    )
    from medtasks_lab.studies.judge_sft import decisions_about, expert_decisions, read_cases

    cases = read_cases([Path(file) for file in files])
    truth = expert_decisions(cases, [Path(file) for file in expert or []])
    task, keys = points_to_judge(cases, truth, registry())

    def asked(store: JudgementStore) -> dict[str, Evaluation]:
        by_judge = judge_decisions(task, keys, asking.jury, store) if asking else {}
        return {name: evaluate(cases, truth, decisions) for name, decisions in by_judge.items()}

    study = JuryStudy(
        command="medtasks judge eval",
        what="decisions on points",
        panels=[(asking.jury, [task])] if asking else [],
        figures=asked,
        write=write_evaluation,
        show=lambda found: _print(found, published=published),
        missing=lambda found: sum(item.missing for item in found.values()),
        then=lambda found: [
            "name the judge as adjudicator in a jury file", "medtasks judge run RUN --jury JURY --dry-run",
        ],
        private=not task.open_access,
    )  # fmt: skip
    folder = Path(out)
    if asking:
        return run_study(study, asking, folder)
    found = {name: evaluate(cases, truth, decisions_about(cases, Path(name))) for name in decided or []}
    results = write_evaluation(folder, found)
    study.show(found)
    return end_study(study, found, folder, results)


def _print(found: Mapping[str, Evaluation], *, published: bool) -> None:
    from medtasks_lab.studies.judge_evaluation import METRICS, TITLES, published_table

    judges = found.values()
    lines = [(TITLES[name], *(item.figures[name].words for item in judges)) for name in METRICS]
    lines.append(("points", *(f"{item.points:,}/{item.points + item.missing:,}" for item in judges)))
    show(lines, [texts(""), *map(figure, found)], pad_edge=False)
    if published:
        show(published_table(), _printed("published (MLB, Table 5)"), pad_edge=False)
        typer.echo("published: other answers and other experts, so no judge is ranked across the two tables")
    one = next(iter(found.values()))
    share = f" ({one.met / one.points:.1%} met)" if one.points else ""
    typer.echo(
        f"positive: met by the expert's decision{share}; [95 % interval]: questions resampled 1,000 times"
    )
    for judge, item in found.items():
        if item.missing:
            typer.echo(f"{judge} did not decide {item.missing:,} points; they count nowhere")


def _printed(heading: str) -> list[Column]:
    """The judge, and what the paper prints of it."""
    from medtasks_lab.studies.judge_evaluation import METRICS, TITLES

    figures = [figure(TITLES[name], partial(_of_printed, name), ".4f") for name in METRICS]
    return [texts(heading, "model"), figure("SFT points", "n_sft", ","), *figures]


def _of_printed(name: str, row: PublishedRow) -> float:
    return row.printed[name]


def _print_published() -> None:
    from medtasks_lab.studies.judge_evaluation import published_sizes, published_table

    rows = published_table()
    columns = [
        *_printed("judge"),
        figure("F1 of P and R", "f1", ".4f"),
        figure("kappa of A, P, R", "cohen_kappa", ".4f"),
        figure("met", "share_met", ".1%"),
    ]
    show(rows, columns, "MLB, Table 5", pad_edge=False)
    size, met, n_recalls = published_sizes(rows)
    typer.echo(
        f"{size:,} is the only number of decisions up to 1,500 that gives all {len(rows)} accuracies; "
        f"with {met} of them met, {n_recalls} of {len(rows)} recalls fit, too.\n"
        "596 disputed questions are too few for that: the unit is the scoring point, about two per question."
    )
