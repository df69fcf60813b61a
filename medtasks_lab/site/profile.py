"""Where a line is strong and weak: its rank on every value of every axis, among those asked alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import axis_titles
from medtasks_ext.report.groups import ALL
from medtasks_ext.report.standing import FEWEST_DOCUMENTS, FEWEST_TASKS, NAMED
from medtasks_lab.site.boards import Scores, axis_title, interval_of, whole_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.groups import Group, GroupScore

#: Ranks among fewer lines say nothing of strong and weak sides.
_FEWEST_LINES = 5
#: Axes that people look for, in this order; those of a suite follow, others say nothing of models.
_AXES = ("language", "task_type", "specialties", "stage")
_NO_AXES = ("suite", ALL, "access")
#: Lines above and below that are named as neighbours.
_BESIDE = 3


@dataclass(frozen=True)
class Value:
    """A score on a value of an axis, with its rank."""

    group: Group
    title: str  # what readers see
    order: tuple[int, str]  # among the values of its axis
    row: GroupScore
    rank: int
    of: int
    middle: int  # the median of those that are ranked

    @property
    def below(self) -> float:
        """Share of the others that have a lower rank."""
        return (self.of - self.rank) / (self.of - 1)

    @property
    def enough(self) -> bool:
        """Whether anything is claimed from it."""
        return (self.row.scored or 0) >= FEWEST_TASKS and (self.row.documents or 0) >= FEWEST_DOCUMENTS


def profiles(scores: Scores, place: int) -> Iterator[Json]:
    """For each suite and strategy in which a line has a rank: that, its sides, its neighbours.

    Args:
        scores: of the site.
        place: of the line.
    """
    for suite, whole in scores.whole.items():
        for strategy in scores.strategies:
            row = scores.rows.get((place, strategy, whole))
            found = scores.ranks(strategy, whole)
            if suite is None or row is None or place not in found:
                continue
            rank, of = found[place]
            if of < _FEWEST_LINES:
                continue
            values = list(_values(scores, place, strategy, suite))
            yield {
                "suite": suite,
                "title": scores.site.tasks.suites[suite].title,
                "strategy": strategy_title(strategy),
                "score": whole_of(row.score or 0.0),
                "interval": interval_of(row),
                "rank": [rank, of],
                "sides": _sides(values, (of - rank) / (of - 1)),
                "axes": _by_axis(values),
                "beside": _neighbours(scores, place, strategy, whole),
            }


def _values(scores: Scores, place: int, strategy: str, suite: str) -> Iterator[Value]:
    for group, named in scores.named.items():
        if group.suite != suite or group.axis in _NO_AXES:
            continue
        row, ranking = scores.rows.get((place, strategy, group)), scores.ranking(strategy, group)
        if row is not None and place in ranking.ranks and ranking.ranks[place][1] >= _FEWEST_LINES:
            known = scores.classes[suite, strategy].of[place]
            yield Value(group, *named, row, *ranking.ranks[place], middle=ranking.middles[known])


def _sides(values: list[Value], overall: float) -> list[list[str]]:
    """Where it ranks higher than on the whole suite, and where lower: the furthest values, in words."""
    firm = sorted(
        {value.title: value for value in values if value.enough}.values(), key=lambda value: -value.below
    )
    strong = [value for value in firm if value.below > overall][:NAMED]
    weak = [value for value in reversed(firm) if value.below < overall][:NAMED]
    return [
        [f"{value.title}: rank {value.rank} of {value.of} ({value.row.scored} tasks)" for value in side]
        for side in (strong, weak)
    ]


def _by_axis(values: list[Value]) -> list[Any]:
    """Axis -> title, tasks, score, median, rank, of."""
    titles = axis_titles()
    found: dict[str, list[Any]] = {}
    for value in sorted(values, key=lambda value: value.order):
        found.setdefault(value.group.axis, []).append(
            [
                value.title,
                value.row.scored,
                whole_of(value.row.score or 0.0),
                value.middle,
                value.rank,
                value.of,
            ]
        )
    ordered = dict.fromkeys([*_AXES, *titles])
    return [[axis_title(titles[axis]), found[axis]] for axis in ordered if axis in found]


def _neighbours(scores: Scores, place: int, strategy: str, group: Group) -> list[Any]:
    """Rank, label, page, size and score of the lines around a line, itself among them."""
    ranks, order = scores.ranks(strategy, group), scores.ranking(strategy, group).order
    among = order[scores.classes[group.suite, strategy].of[place]]
    at = among.index(place)
    first = max(0, min(at - _BESIDE, len(among) - 2 * _BESIDE - 1))
    found = []
    for other in among[first : first + 2 * _BESIDE + 1]:
        line, row = scores.site.lines[other], scores.rows[other, strategy, group]
        found.append(
            [
                ranks[other][0],
                line.title,
                line.page,
                line.facts.get("size"),
                whole_of(row.score or 0.0),
                interval_of(row),
                int(other == place),
            ]
        )
    return found
