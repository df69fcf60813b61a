"""What commands that ask a jury have in common: what it will cost, how far the judges are, the end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medtasks_ext.atomic import folder_for_files
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.progress import LIMIT_REACHED, Progress
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import counted, say, say_next, unsure_words
from medtasks_ext.egress import Egress
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.judge.asking import End, Judging
    from medtasks_ext.judge.cases import Ask, JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.run.charge import Budget
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
        figure("prompt tokens", lambda item: f"{'' if item.measured else '~'}{item.prompt_tokens:,}"),
        figure("reply tokens", "completion_tokens", ","),
        figure("USD", lambda item: _usd([item.cost] if item.requests else [])),
    ]
    asked = [item for item in estimates if item.requests]
    every = ("all", f"{sum(item.requests for item in asked):,}", "", "", _usd([item.cost for item in asked]))
    lines = [tuple(column.cell(item) for column in columns) for item in estimates]
    show([*lines, every], columns, "still to be asked; reply tokens and USD at most")
    if any(not item.measured and item.requests for item in estimates):
        typer.echo(
            "~ estimated: four bytes of a prompt count as one token, until the server has counted some"
        )
    if words := _spent_words(budget):
        typer.echo(f"spent on these runs so far: {words}")
    typer.echo("nothing was asked (--dry-run)")
    if limit and (most := sum(item.cost or 0.0 for item in asked)):
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
