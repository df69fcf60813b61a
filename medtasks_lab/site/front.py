"""The front page: a row for each model, its results in all suites side by side; pictures by size and date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from medtasks_ext.results.models import identity_of, version_of
from medtasks_lab.site.boards import (
    FACTS,
    Column,
    Scores,
    common_parts,
    entry_columns,
    interval_in,
    used_strategies,
    value_in,
    whole_of,
    win_rates,
)

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.groups import Group
    from medtasks_lab.site.gather import BoardLine


@dataclass(frozen=True)
class ModelRow:
    """A model with its published results, or one submission."""

    places: tuple[int, ...]  # of its lines
    lines: tuple[BoardLine, ...]

    @property
    def published(self) -> bool:
        """Whether papers print it."""
        return self.lines[0].published

    @property
    def label(self) -> str:
        """What readers see."""
        first = self.lines[0]
        if not first.published:
            return first.entry.label
        known = identity_of(first.entry)
        return known.title if known and len(self.lines) > 1 else first.entry.model

    @cached_property
    def facts(self) -> dict[str, str | float]:
        """What is known of it; whether it reasons only where all its lines say the same."""
        found: dict[str, str | float] = {}
        for line in reversed(self.lines):
            found |= line.facts
        if len({line.facts.get("reasoning") for line in self.lines} - {None}) > 1:
            del found["reasoning"]
        return found


def model_rows(lines: Sequence[BoardLine]) -> list[ModelRow]:
    """Published lines joined by the registry of models; submissions each for itself."""
    found: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        found.setdefault(line.model if line.published else f"submission {place}", []).append(place)
    return [ModelRow(tuple(places), tuple(lines[place] for place in places)) for places in found.values()]


def front_board(scores: Scores) -> Json:
    """All models, and what each suite says of them.

    Where a paper prints several versions of a model, the one with the best mean stands there, and says which.
    """
    rows = model_rows(scores.site.lines)
    columns = _columns(scores)
    strategies = used_strategies(scores, [column.group for column in columns])

    def table(of: Callable[[str, Column, int], Any]) -> list[list[list[Any]]]:
        """Strategy, column, row -> what is said of the line that stands there."""
        return [
            [
                [
                    None if place is None else of(strategy, column, place)
                    for place in chosen[strategy, column.group]
                ]
                for column in columns
            ]
            for strategy in strategies
        ]

    chosen = {
        (strategy, column.group): [_best(scores, row, strategy, column.group) for row in rows]
        for strategy in strategies
        for column in columns
    }
    entries = {
        **entry_columns([row.lines[0] for row in rows]),
        "label": [row.label for row in rows],
        **{name: [row.facts.get(name) for row in rows] for name in FACTS},
    }
    of_rows = {place: row for row in rows for place in row.places}
    ranks = {
        (strategy, column): _ranks(scores, strategy, column) for strategy in strategies for column in columns
    }
    return {
        **common_parts(scores, columns, entries),
        "scores": table(partial(value_in, scores)),
        "intervals": table(partial(interval_in, scores)),
        "ranks": table(lambda strategy, column, place: ranks[strategy, column].get(place)),
        "versions": table(
            lambda strategy, column, place: _version(scores, strategy, column.group, of_rows[place], place)
        ),
        "dates": table(lambda _strategy, _column, place: scores.site.lines[place].facts.get("date")),
        "classes": [
            [
                [
                    None if place is None else scores.classes[group.suite, strategy].of[place]
                    for place in chosen[strategy, group]
                ]
                for group in dict.fromkeys(column.group for column in columns)
            ]
            for strategy in strategies
        ],
    }


def _columns(scores: Scores) -> list[Column]:
    """Every suite's mean; before it the win rates of a suite whose paper ranks by them."""
    tasks, found = scores.site.tasks, []
    for suite, group in scores.whole.items():
        if suite is None or group not in scores.groups:
            continue
        name = tasks.suites[suite].title
        if places := win_rates(scores, suite):
            found.append(Column(group, f"{name}: win rate", places))
        found.append(Column(group, f"{name}: mean" if places else name))
    return found


def _best(scores: Scores, row: ModelRow, strategy: str, group: Group) -> int | None:
    """The line of a model with its best mean on a whole suite; a part only where it has nothing else."""
    found = [
        (scores.rows[place, strategy, group], place)
        for place in row.places
        if (place, strategy, group) in scores.rows
    ]
    return max(found, key=lambda item: (item[0].whole, item[0].score or 0.0))[1] if found else None


def _ranks(scores: Scores, strategy: str, column: Column) -> dict[int, tuple[int, int]]:
    """Place of a line -> its rank and among how many, as the paper ranks."""
    if column.win_rates is None:
        return scores.ranks(strategy, column.group)
    if strategy != scores.strategies[0]:
        return {}
    rates = [whole_of(rate) for rate in column.win_rates.values()]
    return {
        place: (1 + sum(other > whole_of(rate) for other in rates), len(rates))
        for place, rate in column.win_rates.items()
    }


def _version(scores: Scores, strategy: str, group: Group, row: ModelRow, place: int) -> str | None:
    """Which version a published number is of, and of how many it is the best."""
    if not row.published:
        return None
    version = version_of(scores.site.lines[place].entry) or ""
    n = sum((other, strategy, group) in scores.rows for other in row.places)
    return ", ".join(filter(None, [version, f"best of {n}" if n > 1 else ""])) or None
