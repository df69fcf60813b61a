"""Ask a jury outside any run: what it says is kept in a folder of its own, and every such call ends alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.judging import ask_all, print_estimates, warn_withheld
from medtasks_ext.cli.words import say
from medtasks_ext.egress import Egress

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.planner import End, JuryPlanner
    from medtasks_ext.judge.store import JudgementStore

DONE, INCOMPLETE, INTERRUPTED = 0, 1, 130


@dataclass(frozen=True)
class Asked:
    """What a jury has said so far."""

    planner: JuryPlanner
    store: JudgementStore
    end: End | None  # of this call; None where nothing was left to ask

    @property
    def missing(self) -> Counter[tuple[str, str]]:
        """(judge, reason) -> requests without a verdict."""
        from medtasks_ext.judge.asks import NOT_ASKED

        return Counter(
            (ask.request.judge, self.store.failed.get(ask.key, NOT_ASKED)) for ask in self.planner.pending()
        )

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the call."""
        return self.end is not None and self.end.interrupted


@contextmanager
def ask_in_folder(
    folder: Path,
    jury: Jury,
    tasks: list[JudgedTask],
    *,
    command: str,
    dry_run: bool = False,
    max_cost: float | None = None,
    allow_host: Sequence[str] | None = None,
    allow_field: Sequence[str] | None = None,
    private: bool = False,
) -> Iterator[Asked | None]:
    """Ask what is not in the folder yet; None for a dry run, which prints the estimates.

    Args:
        command: who holds the folder meanwhile.
        private: the folder holds text that is not open.

    Raises:
        MedtasksError: the jury cannot judge this, a price or a key is missing, or text may not be sent.
    """
    from medtasks_ext.judge.asks import RunToJudge
    from medtasks_ext.judge.budget import budget_of
    from medtasks_ext.judge.checks import check_jury, check_prices
    from medtasks_ext.judge.jury import check_keys
    from medtasks_ext.judge.planner import JuryPlanner
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.runs.lease import Lease

    check_jury(jury, tasks)
    check_prices(jury, max_cost, allow_field)
    store = JudgementStore(folder)
    with nullcontext() if dry_run else Lease(folder, command, private=private), closing(store):
        store.open(write=not dry_run)
        budget = budget_of(max_cost, jury, [store])
        egress = Egress.of(allow_host or [])
        planner = JuryPlanner(jury, [RunToJudge(tasks, store)], budget, say=say, egress=egress)
        asks = planner.pending()
        if dry_run:
            warn_withheld(planner, asks)
            print_estimates(planner.estimates(asks), budget)
            yield None
            return
        end = None
        if asks:
            needed = {ask.request.judge for ask in asks}
            check_keys([judge for judge in jury.models if judge.name in needed])
            end = ask_all(planner, asks)
        yield Asked(planner, store, end)


def say_end(asked: Asked, results: Path, missing: Sequence[str]) -> int:
    """Say what is missing and why, and where results are; the exit code.

    Args:
        missing: what has no verdict, a line each.
    """
    from medtasks_ext.cli.end import say_sent

    for line in missing:
        say(f"missing: {line}; the same command asks again")
    for judge, reason in (asked.end.stopped if asked.end else {}).items():
        say(f"✗ judge {judge}: {reason}")
    if asked.end and asked.end.out_of_money:
        say("✗ --max-cost is reached; a higher one continues")
    say_sent(results.parent)
    typer.echo(f"results: {results}")
    if asked.interrupted:
        say("medtasks: interrupted; the same command continues")
        return INTERRUPTED
    return INCOMPLETE if missing else DONE
