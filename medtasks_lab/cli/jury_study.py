"""Studies that ask a jury outside any run: one way to ask, one folder of what it says, one end.

A study is what judges are asked about, a function from their verdicts to figures, and how figures are written
and shown. Its command only reads flags.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import typer

from medtasks_ext.cli.app import AllowField, AllowHost, AllowKey, DryRun, cost_option, jury_option
from medtasks_ext.cli.arguments import out_folder
from medtasks_ext.cli.judging import DONE, ask_all, end_code, print_estimates, say_spent, warn_withheld
from medtasks_ext.cli.tables import figure, show, spread, texts, words_of
from medtasks_ext.cli.words import say, say_next
from medtasks_ext.egress import Egress
from medtasks_lab.judge.study import Panel, StudyTable, study_file, verdicts_of

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.planner import End, JuryPlanner
    from medtasks_ext.judge.store import JudgementStore

FoundT = TypeVar("FoundT")


@dataclass(frozen=True)
class Asking:
    """A jury, and how it may be asked."""

    jury: Jury
    name: str = ""  # of the jury, as the user gave it
    dry_run: bool = False
    max_cost: float | None = None  # US dollars of all calls on the folder
    allow_host: Sequence[str] | None = None

    @classmethod
    def of(
        cls, name: str, *, allow_key: Sequence[str] | None, allow_field: Sequence[str] | None, **how: Any
    ) -> Asking:
        """From what a command was given.

        Raises:
            MedtasksError: the file is missing or none of a jury, or a limit cannot be kept with it.
        """
        from medtasks_ext.judge.checks import check_prices
        from medtasks_ext.judge.jury import load_jury

        jury = load_jury(name, list(allow_key or []))
        check_prices(jury, how["max_cost"], allow_field)
        return cls(jury, name, **how)


@dataclass(frozen=True)
class JuryStudy(Generic[FoundT]):
    """What judges are asked, and what follows from it."""

    command: str  # who holds the folder meanwhile
    what: str  # judges give, in words: `verdicts on references`
    panels: Sequence[Panel]
    figures: Callable[[pa.Table], FoundT]  # from the frame `verdicts`
    write: Callable[[Path, FoundT], Sequence[Path]]  # the figures into a folder; what was written
    show: Callable[[FoundT], None]
    missing: Callable[[FoundT], int]  # how many of `what` there are not
    then: Callable[[FoundT], Sequence[str]] = lambda found: ()  # commands that come next
    private: bool = False  # whether the folder holds text that is not open
    final: bool = False  # whether a reply without a verdict is a result, and not asked for again

    @classmethod
    def of(
        cls, file: Path, command: str, panels: Sequence[Panel], *given: Any, sample: bool = False, **more: Any
    ) -> JuryStudy[Any]:
        """A study as its file has it.

        Args:
            panels: who is asked, and what about.
            given: to the reader, after the panels and the verdicts.
            sample: whether texts are synthetic.
            more: of the study.
        """
        words = study_file(file)
        read, write = resolve_name(words.reader), resolve_name(words.writer)
        return cls(
            **{
                "command": command,
                "what": words.what,
                "panels": panels,
                "figures": lambda verdicts: read(panels, verdicts, *given),
                "write": lambda folder, found: write(folder, found, panels),
                "show": lambda found: show_tables(words.tables, found, sample=sample),
                "private": not all(task.open_access for _, tasks in panels for task in tasks),
                **more,
            }
        )


def show_tables(tables: Sequence[StudyTable], result: Any, *, sample: bool = False) -> None:
    """Print the figures of a study; that they are of synthetic texts stands above the first table."""
    for number, table in enumerate(tables):
        rows = getattr(result, table.frame)
        if not rows and table.empty:
            typer.echo(table.empty)
        for row in rows if table.line else ():
            typer.echo(words_of(table.line, row))
        if not rows or table.line:
            continue
        names = list(table.columns)[: table.names]
        columns = [texts(name, table.columns[name]) for name in names]
        if table.across:
            rows, columns = spread(rows, columns, table.across.by, table.across.figure)
        else:
            columns += [figure(name, form) for name, form in table.columns.items() if name not in names]
        show(
            rows, columns, words_of(table.title, result), sample=sample and not number, pad_edge=table.padded
        )
        if table.note:
            typer.echo(words_of(table.note, result))


def run_study(study: JuryStudy[FoundT], asking: Asking, folder: Path) -> int:
    """Ask what is not in the folder yet, write and show the figures; the exit code.

    Raises:
        MedtasksError: the jury cannot judge this, a price or a key is missing, or text may not be sent.
    """
    from medtasks_ext.engines.budget import budget_of
    from medtasks_ext.judge.budget import paid
    from medtasks_ext.judge.store import JudgementStore

    store = JudgementStore(out_folder(folder))
    held = nullcontext() if asking.dry_run else _held(folder, study)
    with held, closing(store):
        store.open(write=not asking.dry_run)
        planners = _planners(study, asking, store)
        budget = budget_of(asking.max_cost, *paid(asking.jury, [store]))
        if asking.dry_run:
            for planner in planners:
                warn_withheld(planner, planner.pending())
            print_estimates([item for one in planners for item in one.estimates(one.pending())], budget)
            return DONE
        end = ask_all(planners, budget)
        figures = study.figures(verdicts_of(study.panels, store))
        results = study.write(folder, figures)
    study.show(figures)
    for (judge, reason), n in _reasons(planners, store).most_common():
        say(f"missing: {judge}: {n:,} ({reason})")
    say_spent(end, budget, study.what)
    return end_study(study, figures, folder, results, end)


def _held(folder: Path, study: JuryStudy[Any]) -> AbstractContextManager[object]:
    """The right to write to the study's folder; to the run that it lies in, whose seal is over it."""
    from medtasks_ext.runs.folder import RunFolder
    from medtasks_ext.runs.lease import Lease
    from medtasks_ext.runs.seal import RunLease

    if RunFolder(folder.parent).manifest.is_file():
        return RunLease(folder.parent, study.command, "judged", private=study.private)
    return Lease(folder, study.command, private=study.private)


def _planners(study: JuryStudy[Any], asking: Asking, store: JudgementStore) -> list[JuryPlanner]:
    from medtasks_ext.judge.asks import RunToJudge
    from medtasks_ext.judge.checks import check_jury
    from medtasks_ext.judge.planner import JuryPlanner

    egress, final = Egress.of(asking.allow_host or []), store.unreadable if study.final else ()
    for jury, tasks in study.panels:
        check_jury(jury, tasks)
    return [
        JuryPlanner(jury, [RunToJudge(tasks, store)], say=say, egress=egress, final=final)
        for jury, tasks in study.panels
    ]


def _reasons(planners: Sequence[JuryPlanner], store: JudgementStore) -> Counter[tuple[str, str]]:
    """(judge, why there is no verdict) -> requests."""
    from medtasks_ext.judge.asks import NOT_ASKED

    asks = (ask for planner in planners for ask in planner.pending())
    return Counter((ask.request.judge, store.why_not(ask.key, NOT_ASKED)) for ask in asks)


def end_study(
    study: JuryStudy[FoundT],
    result: FoundT,
    folder: Path,
    results: Sequence[Path],
    end: End | None = None,
) -> int:
    """Say where the figures are, what is missing and what comes next; the exit code.

    Args:
        end: of a call that asked judges.
    """
    from medtasks_ext.cli.end import say_sent

    say_sent(folder)
    for path in results:
        typer.echo(f"results: {path}")
    n = study.missing(result)
    again = f"missing in all: {n:,} {study.what}; the same command asks for them again"
    code = end_code(end, missing=n > 0, again=again)
    if code == DONE and (commands := study.then(result)):
        say_next(*commands)
    return code


Command: TypeAlias = Callable[..., int]


def asks_jury(help_of_jury: str, *, needed: bool = True) -> Callable[[Command], Command]:
    """Give a command the options of all that ask a jury; its argument `asking` has what they say.

    Args:
        help_of_jury: of `--jury`.
        needed: False where the command can do without a jury; `asking` is None then.
    """
    named, money = jury_option(help_of_jury), cost_option("Stop before it has cost more USD in all.")
    jury: Any = Annotated[str, named] if needed else Annotated[str | None, named]
    options: dict[str, tuple[Any, Any]] = {
        "jury": (jury, inspect.Parameter.empty if needed else None),
        "dry_run": (DryRun, False),
        "max_cost": (Annotated[float | None, money], None),
        "allow_host": (AllowHost, None),
        "allow_key": (AllowKey, None),
        "allow_field": (AllowField, None),
    }

    def with_options(command: Command) -> Command:
        @wraps(command)
        def call(**given: Any) -> int:
            name, *how = (given.pop(option) for option in options)
            asking = Asking.of(name, **dict(zip(list(options)[1:], how, strict=True))) if name else None
            return command(asking=asking, **given)

        own = inspect.signature(command, eval_str=True)
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [item.replace(kind=keyword) for item in own.parameters.values() if item.name != "asking"]
        for name, (hint, default) in options.items():
            parameters.append(inspect.Parameter(name, keyword, default=default, annotation=hint))
        call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {item.name: item.annotation for item in parameters} | {"return": int}
        return call

    return with_options
