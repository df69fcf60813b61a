"""Which results may be ranked among each other: classes of lines that were asked alike, task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from medtasks_ext.results.conditions import RULES, Facts, comparable

if TYPE_CHECKING:
    from medtasks_ext.results.experiments import Experiment
    from medtasks_lab.site.gather import BoardLine

_MOVING = tuple(rule.field for rule in RULES if rule.moves)


@dataclass
class Class:
    """Lines that are comparable with each other on every task that two of them share.

    Attributes:
        of_paper: they were asked as the suite's paper asked, and stand among what it prints.
        words: what differs from the paper, and in how many tasks.
        ways: the ways in which the tasks of its members were asked.
    """

    of_paper: bool
    words: str = ""
    ways: list[_Way] = field(default_factory=list)


#: dataset -> what of its conditions can move the score; the same object where that is the same
_Way = Mapping[str, Facts]


@dataclass(frozen=True)
class Classes:
    """The classes of a suite and strategy, and which line is in which."""

    found: tuple[Class, ...]
    of: tuple[int | None, ...]  # (lines,); None of a line without a score


def classes_of(
    lines: Sequence[BoardLine], datasets: frozenset[str], strategy: str, *, paper: str | None
) -> Classes:
    """Divide lines into classes; no line is in two, and what is not proven is in none.

    Args:
        lines: of the leaderboard.
        datasets: on which they are compared.
        strategy: of the results.
        paper: suite whose published lines are ranked among each other, as their paper ranks them.
    """
    known: dict[tuple[Any, ...], Facts] = {}
    of: list[int | None] = [None] * len(lines)
    by_way: dict[tuple[bool, tuple[tuple[str, int], ...]], list[int]] = {}
    ways: dict[int, tuple[_Way, list[Experiment]]] = {}
    for place, line in enumerate(lines):
        if line.published and line.entry.paper != paper:
            continue
        items = [item for item in line.scored.get(strategy, ()) if item.dataset.id in datasets]
        if line.published:
            of[place] = 0 if items or line.entry.groups else None
        elif items:
            way = {item.dataset.id: known.setdefault(_moving(item.facts), item.facts) for item in items}
            # rows that nobody has confirmed stand in a part of their own
            as_paper = not any(line.unlike(item) for item in items) and _of_now(items) and not _said(items)
            key = as_paper, tuple((name, id(asked)) for name, asked in way.items())
            by_way.setdefault(key, []).append(place)
            ways[place] = way, items
    found = [Class(of_paper=True)]
    # the ways that most lines share come first: an odd one does not keep them out of a class
    for (as_paper, _), places in sorted(by_way.items(), key=lambda pair: (-len(pair[1]), pair[1][0])):
        shared, items = ways[places[0]]
        number = _place(found, shared, lines[places[0]], items, may_join_paper=as_paper)
        for place in places:
            of[place] = number
    return Classes(tuple(found), tuple(of))


def _place(
    found: list[Class], way: _Way, line: BoardLine, items: Sequence[Experiment], *, may_join_paper: bool
) -> int:
    for number, item in enumerate(found):
        if (may_join_paper or not item.of_paper) and all(_alike(way, other) for other in item.ways):
            item.ways.append(way)
            return number
    words = _words(line, items) or _between(way, found[0].ways)
    found.append(Class(of_paper=False, words=words, ways=[way]))
    return len(found) - 1


def _of_now(items: Sequence[Experiment]) -> bool:
    """Whether the tasks were scored by the version that they have now."""
    return all(item.version.partition("-")[0] == item.dataset.version.partition("-")[0] for item in items)


def _said(items: Sequence[Experiment]) -> int:
    """How many tasks have rows, words or examples that nobody has confirmed."""
    return sum(item.confirmed.state == "claimed" for item in items)


def _alike(one: _Way, other: _Way) -> bool:
    few, many = sorted((one, other), key=len)
    return all(
        few[name] is many[name] or comparable(few[name], many[name]).grade != "other"
        for name in few
        if name in many
    )


def _moving(asked: Facts) -> tuple[Any, ...]:
    """What can move a score; the room for prompts does where some did not fit."""
    room = asked.context if asked.inputs_cut else None
    return (*(getattr(asked, name) for name in _MOVING), asked.answers_cut, room)


def _words(line: BoardLine, items: Sequence[Experiment]) -> str:
    """What differs from the paper, or from the tasks as they are now."""
    reasons = Counter(
        reason for item in items for reason in dict.fromkeys(one.condition for one in line.unlike(item))
    )
    old = sum(not _of_now([item]) for item in items)
    named = [*reasons.most_common(), *([("an older version of the task", old)] if old else [])]
    named += [("rows as the submitter says", said)] if (said := _said(items)) else []
    return ", ".join(f"{reason} in {n} of {len(items)} tasks" for reason, n in named)


def _between(way: _Way, others: Sequence[_Way]) -> str:
    """What keeps a way of asking apart from those that were asked as the paper asked."""
    unlike = next(other for other in others if not _alike(way, other))
    reasons = Counter(
        reason
        for name in way.keys() & unlike.keys()
        for reason in dict.fromkeys(
            item.condition
            for item in comparable(way[name], unlike[name]).differences
            if item.grade == "other"
        )
    )
    return ", ".join(f"{reason} in {n} of {len(way)} tasks" for reason, n in reasons.most_common())
