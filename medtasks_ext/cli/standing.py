"""Where own results stand among published models, on the terminal: a sentence and a strip each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from medtasks_ext.cli.tables import console

if TYPE_CHECKING:
    from medtasks_ext.report.standing import Standing

_MOST = 6  # standings that are printed


def print_standings(found: Sequence[Standing], *, labelled: bool) -> None:
    """The standings that have published models to stand among, those with a place first.

    Args:
        found: of the report.
        labelled: say whose each is.
    """
    beside = [item for item in found if item.rivals]
    for item in sorted(beside, key=lambda item: (not item.placed, -item.alike))[:_MOST]:
        name = f"{item.entry.label}: " if labelled else ""
        console().print(f"\n{name}{item.sentence}", style="bold", markup=False)
        console().print(f"  {item.strip}", markup=False)
        for line in item.remarks:
            console().print(f"  {line}", markup=False)
    if len(beside) > _MOST:
        console().print(f"and {len(beside) - _MOST} more; --json has all", style="dim")
