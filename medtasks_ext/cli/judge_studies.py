"""`medtasks study gold` and `study judge`: references, and judge models of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.atomic import private_files
from medtasks_ext.cli.arguments import out_folder, quiet
from medtasks_ext.cli.commands import DryRun, OnlyTasks, out_option
from medtasks_ext.cli.judging import ask_jury, end_study
from medtasks_ext.cli.tables import show_tables
from medtasks_ext.cli.words import names_in, say_changed, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.studies.judge_data import Case, Decisions


def gold(
    folders: Annotated[list[str], Argument(metavar="RUN...", help="Folders of runs.")],
    out: Annotated[str, out_option("Folder for verdicts and figures.")],
    jury: Annotated[str, Option(metavar="JURY", help="Jury file, or a bundled one; one judge is enough.")],
    tasks: OnlyTasks = None,
    dry_run: DryRun = False,
) -> int:
    """Let models flag doubtful reference answers.

    And compare the jury's scores of answers with and without a flagged reference. Resumable.

    Example: medtasks study gold runs/MODEL --jury jury.yaml -o gold --dry-run

    Exit code 1: verdicts are missing.
    """
    quiet()
    from medtasks_ext.judge.cases import judged_tasks
    from medtasks_ext.judge.jury import load_jury
    from medtasks_ext.runner.run import Run
    from medtasks_ext.studies.clinicians import gold_cases, gold_tables
    from medtasks_ext.studies.said import study, write_tables

    judges, wanted = load_jury(jury), set(registry().leaves_of(names_in(tasks)))
    names = dict.fromkeys(given.rstrip("/") for given in folders)
    runs, judged = {name: Run(Path(name), registry()) for name in names}, []
    for run in runs.values():
        run.load()
        done = [name for name in run.manifest.tasks if run.is_done(name) and (not tasks or name in wanted)]
        judged += judged_tasks(run.folder, registry(), done)
    say_changed(run.folder for run in runs.values())
    if not (cases := gold_cases(judged)):
        what = "no finished task of these runs is judged beside a reference"
        remedy = "`medtasks run` an open-ended task that has references first"
        raise MedtasksError(what, where=", ".join(runs), remedy=remedy)
    asked = ask_jury(
        judges, cases, Path(out), "medtasks study gold", what := "verdicts on references", dry_run=dry_run
    )
    if asked is None:
        return 0
    tables = gold_tables(cases, asked[0], {name: run.files for name, run in runs.items()})
    write_tables(Path(out), "gold", tables, judges=[judge.identity() for judge in judges.judges])
    synthetic = any(case.synthetic for task in cases for case in task.cases)
    show_tables(study("gold")["tables"], tables, sample=synthetic)
    code = end_study(asked[1], sum(row["missing"] for row in tables["tasks"]), what)
    if not code:
        judge = f"medtasks judge {' '.join(runs)} --jury {jury}"
        say_next(f"medtasks view {' '.join(runs)}" if tables["scores"] else judge)
    return code


def judge_models(
    files: Annotated[list[Path], Argument(metavar="CASES...", help="JSONL files of cases.")],
    expert: Annotated[list[Path] | None, Option(help="Decisions of experts, if not in CASES.")] = None,
    decided: Annotated[list[Path] | None, Option("--judge", help="Decisions of a judge; repeatable.")] = None,
    out: Annotated[
        str | None, out_option("Folder for the data or the figures; by default judge_data or judge_eval.")
    ] = None,
    jury: Annotated[
        str | None, Option(metavar="JURY", help="Jury file: ask these judges about each point; resumable.")
    ] = None,
    dry_run: DryRun = False,
) -> int:
    """Write training data of a judge, or compare judges with experts.

    Of cases whose scoring points experts decided, as MLB does: a tenth of the questions is held out. With
    --jury or --judge: accuracy, precision, recall, F1 and kappa of their decisions.

    Example: medtasks study judge queue.jsonl --expert decisions.jsonl -o judge_data

    Example: medtasks study judge judge_data/test_cases.jsonl --jury judge.yaml -o judge_eval

    Exit code 1: decisions are missing.
    """
    quiet()
    from medtasks_ext.studies.judge_data import decisions_about, expert_decisions, read_cases

    cases = read_cases(files)
    truth = expert_decisions(cases, expert or [])
    if not decided and not jury:
        return _write_data(cases, truth, out or "judge_data")
    by_judge = {str(path): decisions_about(cases, path) for path in decided or []}
    return _evaluate(cases, truth, by_judge, jury, Path(out or "judge_eval"), dry_run=dry_run)


def _write_data(cases: Mapping[str, Case], truth: Decisions, out: str) -> int:
    from medtasks_ext.studies.judge_data import split_by_question, write_split

    split = split_by_question(cases, truth)
    with private_files(True):  # rows hold questions and answers
        sides = write_split(Path(out), split)
    line = "{side}: {questions:,} questions, {answers:,} answers, {points:,} points ({share:.1%} met)"
    show_tables([{"frame": "sides", "line": line}], {"sides": sides})
    points = sum(len(case["points"]) for case in cases.values())
    if left := points - len(truth):
        typer.echo(f"left out: {left:,} of {points:,} points, which no expert has decided")
    evaluate = f"medtasks study judge {out}/test_cases.jsonl --jury JURY -o judge_eval"
    say_next("train a model on it (docs/judges.md)", evaluate)
    return 0


def _evaluate(
    cases: Mapping[str, Case],
    truth: Decisions,
    by_judge: dict[str, Decisions],
    jury: str | None,
    out: Path,
    *,
    dry_run: bool,
) -> int:
    from medtasks_ext.judge.jury import load_jury
    from medtasks_ext.studies.judge_data import evaluate, points_to_judge
    from medtasks_ext.studies.said import study, write_tables

    end = None
    if jury:
        judges = load_jury(jury)
        task, keys = points_to_judge(cases, truth, registry())
        asked = ask_jury(judges, [task], out, "medtasks study judge", "decisions on points", dry_run=dry_run)
        if asked is None:
            return 0
        said, end = asked
        by_judge |= {name: {} for name in judges.names}
        for (_, document), ratings in said.items():
            for judge, rated in ratings.items():
                by_judge[judge][keys[document]] = any(rated.values())
    figures = [row for name, by in by_judge.items() for row in evaluate(cases, truth, by, name)]
    points = [row for row in figures if row["measure"] == "points"]
    undecided = [{"judge": row["judge"], "n": row["of"] - row["n"]} for row in points if row["n"] < row["of"]]
    write_tables(out_folder(out), "judge_eval", {"figures": figures})
    show_tables(study("judge_eval")["tables"], {"figures": figures, "undecided": undecided})
    code = end_study(end, sum(row["n"] for row in undecided), "decisions on points")
    if not code:
        judge = "medtasks judge RUN --jury JURY --dry-run"
        say_next("name the judge as adjudicator in a jury file", judge)
    return code
