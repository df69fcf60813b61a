"""What a block of the atlas is computed from, and the figures that come out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from medtasks_ext.results.published import published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.results.prices import Price
    from medtasks_ext.studies.forms.results import ExpertRate
    from medtasks_lab.atlas.models import PaperModel
    from medtasks_lab.atlas.spec import PrintedFigures


@dataclass(frozen=True)
class Cell:
    """One figure."""

    row: str
    column: str
    printed: float | str | None = None
    recomputed: float | str | None = None
    own: bool = False  # recomputed of a run, not of published data
    note: str = ""  # of how many tasks, where not of all
    point: bool = False  # of a model behind a trend

    @property
    def deviation(self) -> float | None:
        """Of the recomputed figure from the printed one; words that differ are infinitely far."""
        if self.printed is None or self.recomputed is None:
            return None
        if isinstance(self.printed, float) and isinstance(self.recomputed, float):
            return abs(self.printed - self.recomputed)
        return 0.0 if self.printed == self.recomputed else float("inf")


@dataclass(frozen=True)
class Data:
    """What a block is computed from."""

    tasks: Registry
    suite: Suite
    models: Sequence[PaperModel]  # published ones, then own ones
    entries: Sequence[Entry] = ()  # own ones
    prices: Mapping[str, Price] = field(default_factory=dict)  # label of an own one -> of its model
    compared: Sequence[ExpertRate] = ()  # by experts of one's own
    labels: Sequence[Json] = ()  # own ones' scores on documents with a label, rows of the frame


def printed_figures(given: PrintedFigures | None) -> dict[tuple[str, str], float | str]:
    """(row, column) -> figure as the file has it."""
    printed: dict[tuple[str, str], float | str] = {}
    for row in published(given.file) if given else ():
        assert given
        if any(row[name] != value for name, value in given.where.items()):
            continue
        pairs = (
            [
                (row[given.column], row[given.value]),
                *(
                    (f"{row[given.column]}, {end}", row[name])
                    for end, name in zip(("low", "high"), given.interval, strict=False)
                ),
            ]
            if given.column
            else [(name, row[column]) for name, column in given.columns.items()]
        )
        printed |= {(row[given.row], name): _number(value) for name, value in pairs if value}
    return printed


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
