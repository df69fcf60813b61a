"""What commands that ask a jury have in common, and two of them: `medtasks study gold` and `study judge`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from medtasks_ext.atomic import folder_for_files, private_files
from medtasks_ext.cli.arguments import out_folder, quiet
from medtasks_ext.cli.commands import DryRun, OnlyTasks
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.progress import LIMIT_REACHED, Progress
from medtasks_ext.cli.tables import figure, show, show_tables, texts
from medtasks_ext.cli.words import counted, names_in, say, say_changed, say_next, unsure_words
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry

if TYPE_CHECKING:
    from medtasks_ext.judge.asking import End, Judging
    from medtasks_ext.judge.cases import Ask, JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.studies.judge_data import Case, Decisions
    from medtasks_ext.studies.said import Said

LINE_SECONDS = 10.0
DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130


def print_estimates(judging: Judging, asks: Sequence[Ask], budget: Budget, *, limit: bool = False) -> None:
    """What a call would ask, of whom, and what it would cost at most; `limit`: it takes --max-cost."""
    try:
        judging.check(asks)
    except MedtasksError as error:
        say(f"warning: {error}")
    estimates = judging.estimates(asks)
    # short, since the names of judges need the rest of the line
    columns = [
        texts("judge"),
        figure("requests", form=","),
        figure("prompt tokens", "~{prompt tokens:,}"),
        figure("reply tokens", form=","),
        figure("USD", lambda item: _usd([item["cost"]] if item["requests"] else [])),
    ]
    asked = [item for item in estimates if item["requests"]]
    n = sum(item["requests"] for item in asked)
    every = ("all", f"{n:,}", "", "", _usd([item["cost"] for item in asked]))
    lines = [tuple(column.cell(item) for column in columns) for item in estimates]
    show([*lines, every], columns, "still to be asked; reply tokens and USD at most")
    if asked:
        typer.echo("~ estimated: four bytes of a prompt count as one token")
    if words := _spent_words(budget):
        typer.echo(f"spent on these runs so far: {words}")
    typer.echo("nothing was asked (--dry-run)")
    if limit and (most := sum(item["cost"] or 0.0 for item in asked)):
        say_next(f"the same command with --max-cost {math.ceil(most)} in place of --dry-run")
    elif asked:
        say_next("the same command without --dry-run")


def _usd(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    if costs and not known:
        return "no price"
    return f"{sum(known):,.2f}" + (" and more" if len(known) < len(costs) else "")


def _spent_words(budget: Budget) -> str:
    without = f"{counted(budget.unpriced, 'judgement')} by judges without a price" if budget.unpriced else ""
    if not budget.spent and not budget.unsure:
        return f"not known: {without}" if without else ""
    return f"{budget.spent:,.2f} USD{unsure_words(budget.unsure)}{without and f', without {without}'}"


def ask_all(judging: Judging, budget: Budget) -> End | None:
    """Ask the judges, with a display of how far they are; None where nothing is left to ask."""
    from medtasks_ext.judge.jury import check_keys
    from medtasks_ext.runner.tally import Tally

    needed = judging.needed()
    asked = {name: n for name, n in needed.items() if n}
    if not asked:
        return None
    models = judging.jury.models
    check_keys([judge for judge in models if judge.name in needed])
    tally = Tally(asked, budget=budget if any(judge.price for judge in models) else None)
    with Progress(tally, what="judgements", every=LINE_SECONDS) as progress:
        judging.say, judging.show = progress.say, progress.ended
        try:
            return judging.go(budget, needed)
        finally:
            progress.say(progress.so_far())


def say_spent(end: End | None, budget: Budget, on: str) -> None:
    if words := _spent_words(budget):
        say(f"spent on {on}: {words}")
    for judge, reason in (end.stopped if end else {}).items():
        say(f"✗ judge {judge}: {reason}")
    if end and end.out_of_money:
        say(LIMIT_REACHED)


def end_code(end: End | None, *, missing: bool, again: str) -> int:
    """The exit code of a command that asked a jury; what comes next is said, unless all is there."""
    if end and end.interrupted:
        say("medtasks: interrupted; the same command continues")
        return INTERRUPTED
    if missing:
        say(again)
        return INCOMPLETE
    return DONE


# ---------------------------------------------------------------------- studies outside any run


def ask_jury(
    jury: Jury, tasks: list[JudgedTask], folder: Path, command: str, what: str, *, dry_run: bool
) -> tuple[Said, End | None] | None:
    """Ask what is not in the folder yet; None after a dry run. `what` judges give, in words."""
    from medtasks_ext.judge.asking import Judging
    from medtasks_ext.judge.cases import NOT_ASKED, JudgementStore, RunToJudge, check_jury, paid
    from medtasks_ext.run.charge import budget_of
    from medtasks_ext.studies.said import said_of

    folder, private = out_folder(folder), not all(task.open_access for task in tasks)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(folder_for_files(folder, private=private))
        store = stack.enter_context(closing(JudgementStore(folder, write=not dry_run, command=command)))
        check_jury(jury, tasks)
        judging = Judging(jury, [RunToJudge(tasks, store)], say, Egress.of([]))
        budget = budget_of(None, *paid(jury, [store]))
        if dry_run:
            print_estimates(judging, judging.pending(), budget)
            return None
        end = ask_all(judging, budget)
        said = said_of(jury, tasks, store)
        open_asks = Counter((ask.judge, store.why_not(ask.question, NOT_ASKED)) for ask in judging.pending())
    for (judge, reason), n in open_asks.most_common():
        say(f"missing: {judge}: {n:,} ({reason})")
    say_spent(end, budget, what)
    say_sent(folder)
    return said, end


def end_study(end: End | None, missing: int, what: str) -> int:
    again = f"missing in all: {missing:,} {what}; the same command asks for them again"
    return end_code(end, missing=missing > 0, again=again)


def gold(
    folders: Annotated[list[str], Argument(metavar="RUN...", help="Folders of runs.")],
    jury: Annotated[str, Option(metavar="JURY", help="Jury file, or a bundled one; one judge is enough.")],
    tasks: OnlyTasks = None,
    dry_run: DryRun = False,
) -> int:
    """Let models flag doubtful reference answers.

    And compare the jury's scores of answers with and without a flagged reference, into gold. Resumable.

    Example: medtasks study gold runs/MODEL --jury jury.yaml --dry-run

    Exit code 1: verdicts are missing.
    """
    quiet()
    out = Path("gold")
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
        judges, cases, out, "medtasks study gold", what := "verdicts on references", dry_run=dry_run
    )
    if asked is None:
        return 0
    tables = gold_tables(cases, asked[0], {name: run.files for name, run in runs.items()})
    write_tables(out, "gold", tables, judges=[judge.identity() for judge in judges.judges])
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
    jury: Annotated[
        str | None, Option(metavar="JURY", help="Jury file: ask these judges about each point; resumable.")
    ] = None,
) -> int:
    """Write training data of a judge, or compare judges with experts.

    Of cases whose scoring points experts decided, as MLB does: a tenth of the questions is held out, into
    judge_data. With --jury or --judge: accuracy, precision, recall, F1 and kappa of their decisions, into
    judge_eval.

    Example: medtasks study judge queue.jsonl --expert decisions.jsonl

    Example: medtasks study judge judge_data/test_cases.jsonl --jury judge.yaml

    Exit code 1: decisions are missing.
    """
    quiet()
    from medtasks_ext.studies.judge_data import decisions_about, expert_decisions, read_cases

    cases = read_cases(files)
    truth = expert_decisions(cases, expert or [])
    if not decided and not jury:
        return _write_data(cases, truth, Path("judge_data"))
    by_judge = {str(path): decisions_about(cases, path) for path in decided or []}
    return _evaluate(cases, truth, by_judge, jury, Path("judge_eval"))


def _write_data(cases: Mapping[str, Case], truth: Decisions, out: Path) -> int:
    from medtasks_ext.studies.judge_data import split_by_question, write_split

    split = split_by_question(cases, truth)
    with private_files(True):  # rows hold questions and answers
        sides = write_split(out, split)
    line = "{side}: {questions:,} questions, {answers:,} answers, {points:,} points ({share:.1%} met)"
    show_tables([{"frame": "sides", "line": line}], {"sides": sides})
    points = sum(len(case["points"]) for case in cases.values())
    if left := points - len(truth):
        typer.echo(f"left out: {left:,} of {points:,} points, which no expert has decided")
    say_next(
        "train a model on it (docs/judges.md)", f"medtasks study judge {out}/test_cases.jsonl --jury JURY"
    )
    return 0


def _evaluate(
    cases: Mapping[str, Case],
    truth: Decisions,
    by_judge: dict[str, Decisions],
    jury: str | None,
    out: Path,
) -> int:
    from medtasks_ext.judge.jury import load_jury
    from medtasks_ext.studies.judge_data import evaluate, points_to_judge
    from medtasks_ext.studies.said import study, write_tables

    end = None
    if jury:
        judges = load_jury(jury)
        task, keys = points_to_judge(cases, truth, registry())
        asked = ask_jury(judges, [task], out, "medtasks study judge", "decisions on points", dry_run=False)
        assert asked is not None  # which is so after a dry run alone
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
