"""What commands that ask a jury show: what it will cost, how far the judges are."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from medtasks_ext.cli.cost_words import JURY_RULE, bound_words
from medtasks_ext.cli.tables import console, new_table
from medtasks_ext.cli.words import counted, say, say_next
from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cost import jury_bound

if TYPE_CHECKING:
    from medtasks_ext.engines.budget import Budget
    from medtasks_ext.judge.asks import Ask, RunToJudge
    from medtasks_ext.judge.budget import Estimate
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.planner import End, JuryPlanner
    from medtasks_ext.runner.run import Run

LINE_SECONDS = 10.0


def warn_withheld(engine: JuryPlanner, asks: Sequence[Ask]) -> None:
    """Say which texts a judge's server may not receive."""
    try:
        engine.check(asks)
    except MedtasksError as error:
        say(f"warning: {error}")


def money_words(budget: Budget) -> str:
    """What was spent, in this call and before, and what may have been; nothing where nothing was."""
    if not budget.spent and not budget.unsure:
        return f"not known: {_without_price(budget)}" if budget.unpriced else ""
    unsure = f", and up to {budget.unsure:,.2f} for requests whose reply never came" if budget.unsure else ""
    more = f", without {_without_price(budget)}" if budget.unpriced else ""
    return f"{budget.spent:,.2f} USD{unsure}{more}"


def _without_price(budget: Budget) -> str:
    return f"{counted(budget.unpriced, 'judgement')} by judges without a price"


def print_estimates(estimates: Sequence[Estimate], budget: Budget) -> None:
    """What is still to be asked, judge by judge, and what it costs at most."""
    batches = any(item.batch_cost is not None for item in estimates)
    # short, since the names of judges need the rest of the line
    columns = ["requests", "prompt tokens", "reply tokens", "USD"]
    title = "still to be asked; reply tokens and USD at most"
    table = new_table(["judge"], columns + ["as a batch"] * batches, title)
    for item in estimates:
        table.add_row(
            item.judge,
            f"{item.requests:,}",
            f"{'' if item.measured else '~'}{item.prompt_tokens:,}",
            f"{item.completion_tokens:,}",
            _usd([item.cost] if item.requests else []),
            *([number(item.batch_cost, 2)] if batches else []),
        )
    asked = [item for item in estimates if item.requests]
    costs = [_usd([item.cost for item in asked])]
    if batches:  # the others are asked one by one, at the full price
        costs.append(_usd([item.cost if item.batch_cost is None else item.batch_cost for item in asked]))
    table.add_row("all", f"{sum(item.requests for item in asked):,}", "", "", *costs)
    console().print(table)
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


def print_bound(jury: Jury, runs: Iterable[Run], to_judge: Mapping[str, RunToJudge]) -> None:
    """What judging all answers of the runs costs at most by MedHELM's rule, where it can be said."""
    total, n = None, 0
    for run, chosen in zip(runs, to_judge.values(), strict=True):
        for task in chosen.tasks:
            stored = run.files.read_task(task.name)
            tokens = stored.get("tokens")
            budget = stored["config"].get("generation_kwargs", {}).get("max_gen_toks")
            if tokens is None or budget is None:
                continue
            found = jury_bound(jury, tokens["input"], stored["n"], int(budget))
            if found is not None:
                total, n = found if total is None else total + found, n + 1
    if total is not None:
        of = f"all answers of {counted(n, 'task')} whose tokens were counted"
        typer.echo(f"{of}: {bound_words(total)}; {JURY_RULE}")


def _usd(costs: Sequence[float | None]) -> str:
    """A sum of costs, some of which may not be known; what nobody charges is no 0.00."""
    known = [cost for cost in costs if cost is not None]
    if costs and not known:
        return "no price"
    return f"{sum(known):,.2f}" + (" and more" if len(known) < len(costs) else "")


class _Progress:
    """A bar per judge on a terminal; a line now and then elsewhere."""

    def __init__(self, totals: Mapping[str, int]) -> None:
        self.totals = dict(totals)
        self.done, self.failed = Counter[str](), Counter[str]()
        self._said = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self.lines = {name: self.bar.add_task(name, total=n) for name, n in totals.items()}

    def __enter__(self) -> _Progress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()
        else:
            self._line()

    def report(self, judge: str, judged: bool) -> None:
        self.done[judge] += 1
        self.failed[judge] += not judged
        if self.bar:
            if judge not in self.lines:  # first asked in a later round
                self.lines[judge] = self.bar.add_task(judge, total=None)
            self.bar.advance(self.lines[judge])
        elif time.monotonic() - self._said > LINE_SECONDS:
            self._line()

    def say(self, line: str) -> None:
        if self.bar:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            say(line)

    def _line(self) -> None:
        self._said = time.monotonic()
        parts = [
            f"{name} {self.done[name]}/{total}"
            + (f" ({self.failed[name]} failed)" if self.failed[name] else "")
            for name, total in self.totals.items()
        ]
        parts += [f"{name} {self.done[name]}" for name in self.done if name not in self.totals]
        say("asked: " + ", ".join(parts))


def ask_all(engine: JuryPlanner, asks: Sequence[Ask]) -> End:
    """Ask the judges, with a display of how far they are."""
    with _Progress(Counter(ask.request.judge for ask in asks)) as progress:
        engine.report, engine.say = progress.report, progress.say
        return engine.run()


def number(value: float | None, digits: int) -> str:
    """A figure with so many digits, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"
