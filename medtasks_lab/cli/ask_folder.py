"""Ask a jury outside any run: what it says is kept in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.cli.judging import ask_all, print_estimates, warn_withheld
from medtasks_ext.cli.words import say
from medtasks_ext.egress import Egress

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.judge.cases import JudgedTask
    from medtasks_ext.judge.jury import Jury
    from medtasks_ext.judge.planner import End
    from medtasks_ext.judge.store import JudgementStore


@dataclass(frozen=True)
class Asked:
    """What a jury has said so far."""

    store: JudgementStore
    outcome: End | None  # of this call; None where nothing was left to ask


@contextmanager
def ask_in_folder(
    folder: Path,
    jury: Jury,
    tasks: list[JudgedTask],
    *,
    command: str,
    dry_run: bool,
    max_cost: float | None,
    allow_host: Sequence[str] | None,
) -> Iterator[Asked | None]:
    """Ask what is not in the folder yet; None for a dry run, which prints the estimates.

    Args:
        command: who holds the folder meanwhile.

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
    check_prices(jury, max_cost)
    store = JudgementStore(folder)
    with nullcontext() if dry_run else Lease(folder, command), closing(store):
        store.open(write=not dry_run)
        budget = budget_of(max_cost, jury, [store])
        engine = JuryPlanner(
            jury, [RunToJudge(tasks, store)], budget, say=say, egress=Egress.of(allow_host or [])
        )
        asks = engine.pending()
        if dry_run:
            warn_withheld(engine, asks)
            print_estimates(engine.estimates(asks), budget)
            yield None
            return
        outcome = None
        if asks:
            needed = {ask.request.judge for ask in asks}
            check_keys([judge for judge in jury.models if judge.name in needed])
            outcome = ask_all(engine, asks)
        yield Asked(store, outcome)
