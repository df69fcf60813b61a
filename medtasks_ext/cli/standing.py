"""Where own results stand among published models, on the terminal: a sentence and a strip each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from medtasks_ext.cli.tables import console

if TYPE_CHECKING:
    from medtasks_ext.report.standing import Standing

_WIDTH = 48  # characters of a strip
_MOST = 6  # standings that are printed


def print_standings(found: Sequence[Standing], *, labelled: bool) -> None:
    """The standings that have published models to stand among, best covered first.

    Args:
        found: of the report.
        labelled: say whose each is.
    """
    beside = [item for item in found if item.rivals]
    for item in sorted(beside, key=lambda item: (not item.placed, -item.alike))[:_MOST]:
        name = f"{item.entry.label}: " if labelled else ""
        console().print(f"\n{name}{item.sentence}", style="bold", markup=False)
        console().print(f"  {strip(item)}", markup=False)
        for line in item.remarks:
            console().print(f"  {line}", markup=False)
    if len(beside) > _MOST:
        console().print(f"and {len(beside) - _MOST} more; --json has all", style="dim")


def strip(item: Standing) -> str:
    """The published models from the least score to the greatest, their middle half thick, and the own one."""
    scores = [rival.score for rival in item.rivals]
    least, most = min(*scores, item.on_alike), max(*scores, item.on_alike)
    ordered = sorted(scores)

    def place(score: float) -> int:
        return round((score - least) / (most - least or 1) * (_WIDTH - 1))

    quarters = [ordered[round(share * (len(ordered) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
    low, first, middle, third, high = map(place, quarters)
    cells = [" "] * _WIDTH
    cells[low : high + 1] = "─" * (high + 1 - low)
    cells[first : third + 1] = "━" * (third + 1 - first)
    cells[middle] = "┃"
    cells[place(item.on_alike)] = "●" if item.placed else "○"
    return f"{least:.2f} {''.join(cells)} {most:.2f}"
