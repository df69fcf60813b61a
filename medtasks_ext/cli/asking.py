"""Studies that ask a jury outside any run: one way to ask, one folder of what it says, one end."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from medtasks_ext.atomic import folder_for_files
from medtasks_ext.cli.app import AllowHost, DryRun
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.end import say_sent
from medtasks_ext.cli.judging import ask_all, end_code, print_estimates, say_spent, warn_withheld
from medtasks_ext.cli.words import say
from medtasks_ext.egress import Egress

if TYPE_CHECKING:
    from medtasks_ext.judge.asking import End
    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.studies.said import Said


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
    from medtasks_ext.judge.asks import NOT_ASKED, RunToJudge
    from medtasks_ext.judge.checks import check_jury
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
            from medtasks_ext.judge.checks import check_prices
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
