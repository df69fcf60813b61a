"""What commands that ask a jury show: what it will cost, how far the judges are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.cost_words import unsure_words
from medtasks_ext.cli.progress import LIMIT_REACHED, Progress
from medtasks_ext.cli.tables import figure, show, texts
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.judge.asking import End, Judging
    from medtasks_ext.judge.asks import Ask
    from medtasks_ext.judge.cost import CostEstimate
    from medtasks_ext.run.charge import Budget

LINE_SECONDS = 10.0
DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130


def warn_withheld(judging: Judging, asks: Sequence[Ask]) -> None:
    try:
        judging.check(asks)
    except MedtasksError as error:
        say(f"warning: {error}")


def money_words(budget: Budget) -> str:
    if not budget.spent and not budget.unsure:
        return f"not known: {_without_price(budget)}" if budget.unpriced else ""
    more = f", without {_without_price(budget)}" if budget.unpriced else ""
    return f"{budget.spent:,.2f} USD{unsure_words(budget.unsure)}{more}"


def _without_price(budget: Budget) -> str:
    return f"{counted(budget.unpriced, 'judgement')} by judges without a price"


def print_estimates(estimates: Sequence[CostEstimate], budget: Budget) -> None:
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
    if words := money_words(budget):
        typer.echo(f"spent on these runs so far: {words}")
    typer.echo("nothing was asked (--dry-run)")
    if most := sum(item.cost or 0.0 for item in asked):
        say_next(f"the same command with --max-cost {math.ceil(most)} in place of --dry-run")
    elif asked:
        say_next("the same command without --dry-run")


def _usd(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    if costs and not known:
        return "no price"
    return f"{sum(known):,.2f}" + (" and more" if len(known) < len(costs) else "")


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
    if words := money_words(budget):
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


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
