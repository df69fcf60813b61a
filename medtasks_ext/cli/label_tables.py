"""Scores by what studies say of documents, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from medtasks_ext.cli.tables import console, figure, show, texts
from medtasks_ext.registry.strategies import strategy_title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.labels import LabelScore
    from medtasks_ext.stats.intervals import Interval


#: tables of labels on the terminal; more are no help there
_MOST = 12


def print_labels(rows: Sequence[LabelScore], tasks: Registry, *, files: bool) -> None:
    """A table for each suite, axis, strategy and entry, where they are few; of departments the primary ones.

    Args:
        files: whether tables are written, too, which hold all.
    """
    places: dict[tuple[str, str, str, str], list[LabelScore]] = {}
    for row in rows:
        places.setdefault((row.axis, row.suite, row.strategy, row.entry.label), []).append(row)
    where = f"labels.csv{'' if files else ' of -o OUT'}"
    if len(places) > _MOST:
        axes = " and ".join(dict.fromkeys(axis for axis, *_ in places))
        console().print(f"by {axes}: {where}", style="dim")
        return
    for (axis, suite, strategy, label), some in places.items():
        heading = f"by {axis}: {label}, {tasks.suites[suite].title}, {strategy_title(strategy)}"
        heading += " (SAMPLE DATA)" if some[0].sample else ""
        columns = [
            texts(axis, "value"),
            figure("documents", lambda row: f"{row.documents:,} of {row.documents_of_all:,}"),
            figure("tasks"),
            figure("score", lambda row: f"{row.score:.4f}{_interval(row.interval)}"),
            figure("all of these tasks", lambda row: f"{row.of_all:.4f}{_interval(row.interval_of_all)}"),
        ]
        shown = [row for row in some if not row.secondary]
        show(shown, columns, heading, pad_edge=False)
        if left := len(some) - len(shown):
            typer.echo(f"and {left} secondary departments: {where}")


def _interval(found: Interval | None) -> str:
    return "" if found is None else f" \\[{found.low:.3f}, {found.high:.3f}]"
