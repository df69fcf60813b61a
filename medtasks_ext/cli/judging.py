"""What commands that ask a jury have in common: their options, what it will cost, how far the judges are."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from medtasks_ext.atomic import folder_for_files
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.commands import AllowHost, DryRun
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
    from medtasks_ext.judge.store import CostEstimate
    from medtasks_ext.run.charge import Budget
    from medtasks_ext.studies.said import Said


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


class Asking(NamedTuple):
    jury: Jury
    name: str = ""  # of the jury, as the user gave it
    dry_run: bool = False
    max_cost: float | None = None  # US dollars of all calls on the folder
    allow_host: Sequence[str] | None = None


def ask_jury(
    asking: Asking, tasks: list[JudgedTask], folder: Path, command: str, what: str
) -> tuple[Said, End | None] | None:
    """Ask what is not in the folder yet; None after a dry run. `what` judges give, in words."""
    from medtasks_ext.judge.asking import Judging
    from medtasks_ext.judge.cases import NOT_ASKED, RunToJudge, check_jury
    from medtasks_ext.judge.store import JudgementStore, paid
    from medtasks_ext.run.charge import budget_of
    from medtasks_ext.studies.said import said_of

    folder, private = out_folder(folder), not all(task.open_access for task in tasks)
    with ExitStack() as stack:
        if not asking.dry_run:
            stack.enter_context(folder_for_files(folder, private=private))
        store = stack.enter_context(
            closing(JudgementStore(folder, write=not asking.dry_run, command=command))
        )
        check_jury(asking.jury, tasks)
        egress = Egress.of(asking.allow_host or [])
        judging = Judging(asking.jury, [RunToJudge(tasks, store)], say, egress)
        budget = budget_of(asking.max_cost, *paid(asking.jury, [store]))
        if asking.dry_run:
            warn_withheld(judging, judging.pending())
            print_estimates(judging.estimates(judging.pending()), budget)
            return None
        end = ask_all(judging, budget)
        said = said_of(asking.jury, tasks, store)
        open_asks = Counter(
            (ask.request.judge, store.why_not(ask.question, NOT_ASKED)) for ask in judging.pending()
        )
    for (judge, reason), n in open_asks.most_common():
        say(f"missing: {judge}: {n:,} ({reason})")
    say_spent(end, budget, what)
    say_sent(folder)
    return said, end


def end_study(end: End | None, missing: int, what: str) -> int:
    again = f"missing in all: {missing:,} {what}; the same command asks for them again"
    return end_code(end, missing=missing > 0, again=again)


def asks_jury(
    help_of_jury: str, *, needed: bool = True
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options of all that ask a jury; its argument `asking` has what they say.

    Not `needed`: the command can do without a jury; `asking` is None then.
    """
    named = typer.Option("--jury", metavar="JURY", help=help_of_jury)
    money = typer.Option("--max-cost", min=0.0, help="Stop before it has cost more USD in all.")
    jury: Any = Annotated[str, named] if needed else Annotated[str | None, named]
    options: dict[str, tuple[Any, Any]] = {
        "jury": (jury, inspect.Parameter.empty if needed else None),
        "dry_run": (DryRun, False),
        "max_cost": (Annotated[float | None, money], None),
        "allow_host": (AllowHost, None),
    }

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def call(**given: Any) -> int:
            from medtasks_ext.judge.cases import check_prices
            from medtasks_ext.judge.jury import load_jury

            name, dry_run, most, hosts = (given.pop(option) for option in options)
            asking = None
            if name:
                asking = Asking(load_jury(name), name, dry_run, most, hosts)
                check_prices(asking.jury, most)
            return command(asking=asking, **given)

        own = inspect.signature(command, eval_str=True)
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [item.replace(kind=keyword) for item in own.parameters.values() if item.name != "asking"]
        parameters += [
            inspect.Parameter(name, keyword, default=default, annotation=hint)
            for name, (hint, default) in options.items()
        ]
        call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {item.name: item.annotation for item in parameters} | {"return": int}
        return call

    return with_options
