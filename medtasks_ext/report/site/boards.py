"""The scores of lines in groups, their ranks, and the tables of the pages as compact columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from medtasks_ext.registry.strategies import STRATEGIES, strategy_title
from medtasks_ext.report.axes import axis_titles, order, title
from medtasks_ext.report.groups import Group, GroupScore, group_scores, groups_of
from medtasks_ext.report.submissions.check import levels_words
from medtasks_ext.results.models import identity_of, version_of
from medtasks_ext.suites.medhelm_figures import published_win_rates

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.report.site.gather import BoardLine, Site

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


def interval_of(row: GroupScore) -> tuple[int, int, int] | None:
    if row.paper:
        return whole_of(row.paper.low), whole_of(row.paper.high), 1
    return None if row.low is None or row.high is None else (whole_of(row.low), whole_of(row.high), 0)


@dataclass(frozen=True)
class Ranking:
    """The lines that are whole in a group, proven, and asked as the suite's paper asked."""

    ranks: dict[int, tuple[int, int]]  # place of a line -> its rank, and among how many
    order: list[int]  # places of the lines, the best first
    middle: int  # the median of their scores, in ten-thousandths


@dataclass(frozen=True)
class Scores:
    site: Site
    strategies: tuple[str, ...]
    groups: tuple[Group, ...]  # that hold a score
    rows: Mapping[tuple[int, str, Group], GroupScore]  # place of a line, strategy, group
    whole: Mapping[str, Group]  # suite -> its own group, of suites that hold a score
    _rankings: dict[tuple[str, Group], Ranking] = field(default_factory=dict)
    _states: dict[tuple[int, str, Group], tuple[bool, str]] = field(default_factory=dict)

    def state(self, place: int, strategy: str, group: Group) -> tuple[bool, str]:
        """Whether all scores of a line in a group are proven, and what keeps them apart from the paper's."""
        key, line = (place, strategy, group), self.site.lines[place]
        if key not in self._states:
            items = [
                item
                for item in (() if line.published else line.entry.experiments.values())
                if item.strategy == strategy and item.score is not None and item.dataset.id in group.counted
            ]
            reasons = Counter(words for item in items if (words := line.apart(item)))
            said = ", ".join(f"{words} in {n} of {len(items)} tasks" for words, n in reasons.most_common())
            self._states[key] = all(map(line.is_proven, items)), said
        return self._states[key]

    def ranking(self, strategy: str, group: Group) -> Ranking:
        if (strategy, group) not in self._rankings:
            scores = {
                place: whole_of(row.score)
                for place in range(len(self.site.lines))
                if (row := self.rows.get((place, strategy, group))) is not None
                and row.score is not None
                and is_whole(row)
                and self.state(place, strategy, group) == (True, "")
            }
            places, first = sorted(scores, key=lambda place: -scores[place]), dict[int, int]()
            ranks = {
                place: (first.setdefault(scores[place], rank), len(places))
                for rank, place in enumerate(places, 1)
            }
            middle = int(median(scores.values())) if scores else 0
            self._rankings[strategy, group] = Ranking(ranks, places, middle)
        return self._rankings[strategy, group]


def is_whole(row: GroupScore) -> bool:
    """Whether a score stands on all tasks of the group, and on all rows and judgements of these."""
    return row.whole and not row.partial


def scores_of(site: Site) -> Scores:
    every = tuple(group for group in groups_of(site.tasks) if not group.derived and group.suite is not None)
    of_suite = {suite: tuple(group for group in every if group.suite == suite) for suite in site.tasks.suites}
    used = {item.strategy for line in site.lines for item in line.entry.experiments.values()}
    strategies: tuple[str, ...] = tuple(name for name in STRATEGIES if name in used or name == STRATEGIES[0])
    rows = {
        (place, strategy, row.group): row
        for place, line in enumerate(site.lines)
        for strategy in strategies
        for row in group_scores(line.entry, strategy, of_suite[line.entry.paper] if line.published else every)
        if row.score is not None
    }
    held = {group for _, _, group in rows}
    groups = tuple(group for group in every if group in held)
    return Scores(
        site, strategies, groups, rows, {str(one.suite): one for one in groups if one.axis == "suite"}
    )


@dataclass(frozen=True, eq=False)
class Column:
    """A number of a group: its mean, or the share of pairs that a model wins."""

    group: Group
    title: str
    win_rates: Mapping[int, float] | None = None  # place of a line -> share; None: the column has means


#: of each row of a table, the place of the line whose score stands there
_Places = Sequence[int | None]


def suite_board(scores: Scores, suite: str) -> Json:
    axes = list(axis_titles())
    groups = [group for group in scores.groups if group.suite == suite]
    groups.sort(key=lambda group: (axes.index(group.axis), order(group.axis, group.value)))
    columns = [Column(group, title(group.axis, group.value)) for group in groups]
    if rates := _win_rates(scores, suite):  # the paper ranks by them
        columns.insert(0, Column(scores.whole[suite], "Win rate", rates))
    held = {place for place, _, group in scores.rows if group.suite == suite}
    places = [place for place in range(len(scores.site.lines)) if place in held]
    board = _board(scores, columns, lambda *_: places, [scores.site.lines[place] for place in places])
    for intervals in board["intervals"]:  # of the suite as a whole alone
        intervals[:] = [
            found if one.group.axis == "suite" else [] for one, found in zip(columns, intervals, strict=True)
        ]
    return board


def front_board(scores: Scores) -> Json:
    """A row for each model, and what each suite says of it.

    Where a paper prints several versions of a model, the one with the best mean stands there, and says which.
    Submissions stand each for itself.
    """
    lines, columns = scores.site.lines, list(_suite_columns(scores))
    found: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        found.setdefault(line.model.casefold() if line.published else f"submission {place}", []).append(place)
    models = list(found.values())

    def best(strategy: str, column: Column) -> _Places:
        return [_best(scores, places, strategy, column.group) for places in models]

    rows = [[lines[place] for place in places] for places in models]
    board = _board(scores, columns, best, [row[0] for row in rows])
    board["entries"]["label"] = list(map(_label, rows))
    facts = list(map(_facts, rows))
    board["entries"] |= {name: [one.get(name) for one in facts] for name in FACTS}
    known = [name for name, _ in board["strategies"]]
    ranks = {(name, column): _ranks(scores, name, column) for name in known for column in columns}
    of = {place: places for places in models for place in places}
    board["ranks"] = _table(known, columns, best, lambda name, one, place: ranks[name, one].get(place))
    board["versions"] = _table(
        known, columns, best, lambda name, one, place: _version(scores, name, one.group, of[place], place)
    )
    board["dates"] = _table(known, columns, best, lambda _name, _one, place: lines[place].facts.get("date"))
    return board


def _board(
    scores: Scores,
    columns: Sequence[Column],
    places: Callable[[str, Column], _Places],
    lines: Sequence[BoardLine],
) -> Json:
    """Rows, columns, and strategy, column, row -> score, interval, and what is unlike the paper."""
    titles, words = axis_titles(), {"": 0}
    wanted = {column.group for column in columns}
    used = {strategy for _, strategy, group in scores.rows if group in wanted}
    strategies = [strategy for strategy in scores.strategies if strategy in used]
    axes = list(dict.fromkeys(column.group.axis for column in columns))

    def apart(strategy: str, column: Column, place: int) -> int:
        return words.setdefault(scores.state(place, strategy, column.group)[1], len(words))

    def interval(strategy: str, column: Column, place: int) -> tuple[int, int, int] | None:
        row = scores.rows.get((place, strategy, column.group))
        return interval_of(row) if row and column.win_rates is None else None

    return {
        "strategies": [[name, strategy_title(name)] for name in strategies],
        "axes": [[axis, axis_title(titles[axis])] for axis in axes],
        "columns": [[axes.index(one.group.axis), one.title, one.group.n_tasks] for one in columns],
        "entries": {
            "label": [line.title for line in lines],
            "page": [line.page for line in lines],
            "published": [int(line.published) for line in lines],
            "trust": [levels_words(line.checked.verdicts.values()) for line in lines],
            **{name: [line.facts.get(name) for line in lines] for name in FACTS},
        },
        "scores": _table(strategies, columns, places, partial(_value, scores)),
        "intervals": _table(strategies, columns, places, interval),
        "apart": _table(strategies, columns, places, apart),
        "apart_words": list(words),
    }


def _table(
    strategies: Sequence[str],
    columns: Sequence[Column],
    places: Callable[[str, Column], _Places],
    of: Callable[[str, Column, int], Any],
) -> list[list[list[Any]]]:
    return [
        [[None if place is None else of(name, one, place) for place in places(name, one)] for one in columns]
        for name in strategies
    ]


def axis_title(words: str) -> str:
    """The title of an axis without the suites that have it: a page is of one suite."""
    name = words.partition(" (")[0]
    return name[:1].upper() + name[1:]


def _value(scores: Scores, strategy: str, column: Column, place: int) -> int | list[int] | None:
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
    return value if scores.state(place, strategy, column.group)[0] else [value, row.scored or 0, 1]


def _label(lines: Sequence[BoardLine]) -> str:
    known = identity_of(lines[0].entry) if lines[0].published and len(lines) > 1 else None
    return known.title if known else lines[0].title


def _facts(lines: Sequence[BoardLine]) -> dict[str, str | float]:
    found: dict[str, str | float] = {}
    for line in reversed(lines):
        found |= line.facts
    if len({line.facts.get("reasoning") for line in lines} - {None}) > 1:
        del found["reasoning"]
    return found


def _suite_columns(scores: Scores) -> Iterator[Column]:
    """Every suite's mean; before it the win rates of a suite whose paper ranks by them."""
    for suite, group in scores.whole.items():
        name = scores.site.tasks.suites[suite].title
        if places := _win_rates(scores, suite):
            yield Column(group, f"{name}: win rate", places)
        yield Column(group, f"{name}: mean" if places else name)


def _win_rates(scores: Scores, suite: str) -> dict[int, float]:
    tasks = scores.site.tasks
    rates = published_win_rates(tasks, tasks.suites[suite])
    return {
        place: rates[line.entry.model]
        for place, line in enumerate(scores.site.lines)
        if line.published and line.entry.paper == suite and line.entry.model in rates
    }


def _best(scores: Scores, places: Sequence[int], strategy: str, group: Group) -> int | None:
    """The line of a model with its best mean on a whole suite; a part only where it has nothing else."""
    found = [(row, place) for place in places if (row := scores.rows.get((place, strategy, group)))]
    return max(found, key=lambda item: (item[0].whole, item[0].score or 0.0))[1] if found else None


def _ranks(scores: Scores, strategy: str, column: Column) -> dict[int, tuple[int, int]]:
    """Place of a line -> its rank and among how many, as the paper ranks."""
    if column.win_rates is None:
        return scores.ranking(strategy, column.group).ranks
    rates = {place: whole_of(rate) for place, rate in column.win_rates.items()}
    if strategy != scores.strategies[0]:
        return {}
    return {
        one: (1 + sum(other > rate for other in rates.values()), len(rates)) for one, rate in rates.items()
    }


def _version(scores: Scores, strategy: str, group: Group, places: Sequence[int], place: int) -> str | None:
    line = scores.site.lines[place]
    if not line.published:
        return None
    n = sum((other, strategy, group) in scores.rows for other in places)
    return ", ".join(filter(None, [version_of(line.entry), f"best of {n}" if n > 1 else ""])) or None
