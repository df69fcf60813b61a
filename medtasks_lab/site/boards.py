"""The tables of the leaderboard: scores of lines in groups, as compact columns for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import STRATEGIES, strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.groups import ALL, Group, GroupScore, group_scores, groups_of
from medtasks_lab.atlas.statistics import published_win_rates
from medtasks_lab.site.classes import Classes, classes_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_lab.site.gather import BoardLine, Site

#: what rows can be filtered by
FACTS = ("organisation", "size", "access", "domain", "reasoning", "date", "price")
_UNIT = 10_000


def whole_of(score: float) -> int:
    """A score as the pages have it: whole ten-thousandths, cut off.

    Pages show three digits. A number rounded to four and then to three may end up beside the one that is
    nearest (0.44249 -> 0.4425 -> 0.443); one that is cut off does not.
    """
    product = score * _UNIT
    found = math.floor(product)
    return found - 1 if found == product and Fraction(found, _UNIT) > Fraction(score) else found


@dataclass(frozen=True)
class Ranking:
    """The lines that are whole in a group, among those of their class.

    Attributes:
        ranks: place of a line -> its rank, and among how many.
        order: class -> places of its lines, the best first.
        middles: class -> the median of their scores, in ten-thousandths.
    """

    ranks: dict[int, tuple[int, int]]
    order: dict[int | None, list[int]]
    middles: dict[int | None, int]


@dataclass(frozen=True)
class Scores:
    """All scores in groups, and the classes of lines, worked out once."""

    site: Site
    strategies: tuple[str, ...]
    groups: tuple[Group, ...]  # that hold a score
    rows: Mapping[tuple[int, str, Group], GroupScore]  # place of a line, strategy, group
    classes: Mapping[tuple[str | None, str], Classes]  # suite (None: all tasks) and strategy
    whole: Mapping[str | None, Group]  # suite -> its own group; None -> all tasks
    unproven: frozenset[tuple[int, str, Group]]  # of those rows, the ones that nobody else has checked whole
    _rankings: dict[tuple[str, Group], Ranking] = field(default_factory=dict)

    @cached_property
    def named(self) -> dict[Group, tuple[str, tuple[int, str]]]:
        """Group -> the title of its value, and by what values of its axis are sorted."""
        axes = ((group, group.axis, group.value) for group in self.groups)
        return {group: (title(axis, value), order(axis, value)) for group, axis, value in axes}

    def ranks(self, strategy: str, group: Group) -> dict[int, tuple[int, int]]:
        """Place of a line that is whole in the group -> its rank in its class, and among how many."""
        return self.ranking(strategy, group).ranks

    def ranking(self, strategy: str, group: Group) -> Ranking:
        """The ranking of a group, worked out once."""
        if (strategy, group) not in self._rankings:
            self._rankings[strategy, group] = self._ranked(strategy, group)
        return self._rankings[strategy, group]

    def _ranked(self, strategy: str, group: Group) -> Ranking:
        classes = self.classes[group.suite, strategy].of
        scores: dict[int, int] = {}
        for place in range(len(self.site.lines)):
            row = self.rows.get((place, strategy, group))
            if row is None or row.score is None or not is_whole(row):
                continue
            if (place, strategy, group) not in self.unproven:
                scores[place] = whole_of(row.score)
        order: dict[int | None, list[int]] = {}
        for place in sorted(scores, key=lambda place: -scores[place]):
            order.setdefault(classes[place], []).append(place)
        ranks: dict[int, tuple[int, int]] = {}
        for places in order.values():
            first: dict[int, int] = {}
            for rank, place in enumerate(places, 1):
                ranks[place] = first.setdefault(scores[place], rank), len(places)
        middles = {name: int(median(scores[one] for one in places)) for name, places in order.items()}
        return Ranking({place: ranks[place] for place in scores}, order, middles)


def is_whole(row: GroupScore) -> bool:
    """Whether a score stands on all tasks of the group, and on all rows and judgements of these."""
    return row.whole and not row.partial


def scores_of(site: Site) -> Scores:
    """Work out the scores of all lines in all groups."""
    every = tuple(group for group in groups_of(site.tasks) if not group.derived)
    of_suite = {suite: tuple(group for group in every if group.suite == suite) for suite in site.tasks.suites}
    used = {item.strategy for line in site.lines for item in line.entry.experiments.values()}
    strategies: tuple[str, ...] = tuple(name for name in STRATEGIES if name in used or name == STRATEGIES[0])
    rows: dict[tuple[int, str, Group], GroupScore] = {}
    for place, line in enumerate(site.lines):
        groups = of_suite[line.entry.paper] if line.published else every
        for strategy in strategies:
            for row in group_scores(line.entry, strategy, groups):
                if row.score is not None:
                    rows[place, strategy, row.group] = row
    whole: dict[str | None, Group] = {group.suite: group for group in every if group.axis == "suite"}
    whole[None] = next(group for group in every if group.axis == ALL)
    classes = {
        (suite, strategy): classes_of(site.lines, group.counted, strategy, paper=suite)
        for suite, group in whole.items()
        for strategy in strategies
    }
    held = {group for _, _, group in rows}
    doubted = [_unproven(line) for line in site.lines]
    unproven = frozenset(
        key for key in rows if not key[2].counted.isdisjoint(doubted[key[0]].get(key[1], frozenset()))
    )
    return Scores(
        site, strategies, tuple(group for group in every if group in held), rows, classes, whole, unproven
    )


def _unproven(line: BoardLine) -> dict[str, frozenset[str]]:
    """Strategy -> datasets of which nobody else has checked the line's score."""
    found: dict[str, set[str]] = {}
    for item in () if line.published else line.entry.experiments.values():
        if item.score is not None and not line.is_proven(item):
            found.setdefault(item.strategy, set()).add(item.dataset.id)
    return {strategy: frozenset(names) for strategy, names in found.items()}


def interval_of(row: GroupScore) -> tuple[int, int, int] | None:
    """The 95 % interval of a group's score, and 1 where it is the paper's own."""
    if row.paper:
        return whole_of(row.paper.low), whole_of(row.paper.high), 1
    return None if row.low is None or row.high is None else (whole_of(row.low), whole_of(row.high), 0)


# ---------------------------------------------------------------------- for the page


@dataclass(frozen=True, eq=False)
class Column:
    """A number of a group: its mean, or the share of pairs that a model wins."""

    group: Group
    title: str
    win_rates: Mapping[int, float] | None = None  # place of a line -> share; None: the column has means


def results_board(scores: Scores) -> Json:
    """All results in all suites, one row each."""
    groups = [group for suite, group in scores.whole.items() if suite is not None and group in scores.groups]
    return _board(scores, [_means_of(group) for group in groups])


def suite_board(scores: Scores, suite: str | None) -> Json:
    """A suite with all its axes; None: the axes on which tasks of all suites lie."""
    columns = [_means_of(group) for group in scores.groups if group.suite == suite]
    if suite is not None and (rates := win_rates(scores, suite)):  # the paper ranks by them
        columns.insert(0, Column(scores.whole[suite], "Win rate", rates))
    return _board(scores, columns)


def _means_of(group: Group) -> Column:
    return Column(group, title(group.axis, group.value))


def win_rates(scores: Scores, suite: str) -> dict[int, float]:
    """Place of a line -> the share of pairs that it wins, where the suite's paper ranks by it."""
    tasks = scores.site.tasks
    rates = published_win_rates(tasks, tasks.suites[suite])
    return {
        place: rates[line.entry.model]
        for place, line in enumerate(scores.site.lines)
        if line.published and line.entry.paper == suite and line.entry.model in rates
    }


def _board(scores: Scores, columns: Sequence[Column]) -> Json:
    axes = list(axis_titles())
    columns = sorted(
        columns,
        key=lambda column: (axes.index(column.group.axis), order(column.group.axis, column.group.value)),
    )
    groups = [column.group for column in columns]
    strategies, suites = used_strategies(scores, groups), suites_of(columns)
    shown = [
        place
        for place in range(len(scores.site.lines))
        if any((place, strategy, group) in scores.rows for strategy in strategies for group in groups)
    ]
    return {
        **common_parts(scores, columns, entry_columns([scores.site.lines[place] for place in shown])),
        "scores": [
            [[value_in(scores, strategy, column, place) for place in shown] for column in columns]
            for strategy in strategies
        ],
        "intervals": [
            [
                [interval_in(scores, strategy, column, place) for place in shown]
                if column.group.axis in ("suite", ALL) and column.win_rates is None
                else []
                for column in columns
            ]
            for strategy in strategies
        ],
        "classes": [
            [[scores.classes[suite, strategy].of[place] for place in shown] for suite in suites]
            for strategy in strategies
        ],
    }


def used_strategies(scores: Scores, groups: Sequence[Group]) -> list[str]:
    """The strategies in which some line has a score in one of these groups."""
    wanted = set(groups)
    used = {strategy for _, strategy, group in scores.rows if group in wanted}
    return [strategy for strategy in scores.strategies if strategy in used]


def suites_of(columns: Sequence[Column]) -> list[str | None]:
    """The suites of columns; None: of all suites."""
    return list(dict.fromkeys(column.group.suite for column in columns))


def common_parts(scores: Scores, columns: Sequence[Column], entries: Json) -> Json:
    """What every table says of rows and columns: strategies, axes, suites, what the classes of a suite are.

    Args:
        entries: what its rows are of, as `entry_columns` has it.
    """
    tasks, titles, suites = scores.site.tasks, axis_titles(), suites_of(columns)
    strategies = used_strategies(scores, [column.group for column in columns])
    axes = list(dict.fromkeys(column.group.axis for column in columns))
    return {
        "strategies": [[name, strategy_title(name)] for name in strategies],
        "axes": [[axis, axis_title(titles[axis])] for axis in axes],
        "suites": [[suite, _suite_title(tasks, suite)] for suite in suites],
        "class_words": [
            [[item.words for item in scores.classes[suite, strategy].found] for suite in suites]
            for strategy in strategies
        ],
        "entries": entries,
        "columns": [
            [
                axes.index(column.group.axis),
                column.title,
                column.group.n_tasks,
                suites.index(column.group.suite),
            ]
            for column in columns
        ],
    }


def axis_title(words: str) -> str:
    """The title of an axis without the suites that have it: a page is of one suite."""
    name = words.partition(" (")[0]
    return name[:1].upper() + name[1:]


def _suite_title(tasks: Registry, suite: str | None) -> str:
    return "all suites" if suite is None else tasks.suites[suite].title


def entry_columns(lines: Sequence[BoardLine]) -> dict[str, list[Any]]:
    """What the rows of a table are of, column by column."""
    return {
        "label": [line.title for line in lines],
        "page": [line.page for line in lines],
        "published": [int(line.published) for line in lines],
        "invented": [int(bool(line.record and line.record.invented)) for line in lines],
        "trust": [line.trust for line in lines],
        "level": [line.lowest.place if line.lowest else None for line in lines],
        "waits": [line.checked.waits for line in lines],
        **{name: [line.facts.get(name) for line in lines] for name in FACTS},
    }


def value_in(scores: Scores, strategy: str, column: Column, place: int) -> int | list[int] | None:
    """A line's score or win rate in a column.

    A score that does not stand on all tasks, rows and judgements has the number of tasks beside it; one that
    stands on all, and is not proven, has a third number.
    """
    if column.win_rates is not None:
        rate = column.win_rates.get(place) if strategy == scores.strategies[0] else None
        return None if rate is None else whole_of(rate)
    row = scores.rows.get((place, strategy, column.group))
    if row is None or row.score is None:
        return None
    value = whole_of(row.score)
    if not is_whole(row):
        return [value, row.scored or 0]
    return [value, row.scored or 0, 1] if (place, strategy, column.group) in scores.unproven else value


def interval_in(scores: Scores, strategy: str, column: Column, place: int) -> tuple[int, int, int] | None:
    """The interval of a line's score in a column; None of win rates."""
    row = scores.rows.get((place, strategy, column.group))
    return interval_of(row) if row and column.win_rates is None else None
