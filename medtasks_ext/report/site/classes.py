"""Which results may be ranked among each other: classes of lines that were asked alike, task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from medtasks_ext.results.conditions import RULES, Asked, comparable

if TYPE_CHECKING:
    from medtasks_ext.report.site.gather import Line
    from medtasks_ext.results.experiments import Experiment

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
_Way = Mapping[str, Asked]


@dataclass(frozen=True)
class Classes:
    """The classes of a suite and strategy, and which line is in which."""

    found: tuple[Class, ...]
    of: tuple[int | None, ...]  # (lines,); None of a line without a score


def classes_of(
    lines: Sequence[Line], datasets: frozenset[str], strategy: str, *, paper: str | None
) -> Classes:
    """Divide lines into classes; no line is in two.

    Args:
        lines: of the leaderboard.
        datasets: on which they are compared.
        strategy: of the results.
        paper: suite whose published lines are ranked among each other, as their paper ranks them.
    """
    found = [Class(of_paper=True)]
    known: dict[tuple[Any, ...], Asked] = {}
    placed: dict[tuple[bool, tuple[tuple[str, int], ...]], int] = {}
    of: list[int | None] = []
    for line in lines:
        items = [
            item
            for item in line.entry.experiments.values()
            if item.strategy == strategy and item.dataset.id in datasets and item.score is not None
        ]
        if line.published:
            has = bool(items or line.entry.groups) and line.entry.settings["published"] == paper
            of.append(0 if has else None)
            continue
        if not items:
            of.append(None)
            continue
        way = {item.dataset.id: known.setdefault(_moving(item.asked), item.asked) for item in items}
        alike = not any(line.unlike(item) for item in items)
        key = alike, tuple((name, id(asked)) for name, asked in way.items())
        if key not in placed:
            placed[key] = _place(found, way, line, items, may_join_paper=alike and _of_now(items))
        of.append(placed[key])
    return Classes(tuple(found), tuple(of))


def _place(
    found: list[Class], way: _Way, line: Line, items: Sequence[Experiment], *, may_join_paper: bool
) -> int:
    for number, item in enumerate(found):
        if item.of_paper and not may_join_paper:
            continue
        if all(_alike(way, other) for other in item.ways):
            item.ways.append(way)
            return number
    found.append(Class(of_paper=False, words=_words(line, items), ways=[way]))
    return len(found) - 1


def _of_now(items: Sequence[Experiment]) -> bool:
    """Whether the tasks were scored by the version that they have now."""
    return all(item.version.partition("-")[0] == item.dataset.version.partition("-")[0] for item in items)


def _alike(one: _Way, other: _Way) -> bool:
    few, many = sorted((one, other), key=len)
    return all(
        few[name] is many[name] or comparable(few[name], many[name]).grade != "other"
        for name in few
        if name in many
    )


def _moving(asked: Asked) -> tuple[Any, ...]:
    """What can move a score; the room for prompts does where some did not fit."""
    room = asked.context if asked.inputs_cut else None
    return (*(getattr(asked, name) for name in _MOVING), asked.answers_cut, room)


def _words(line: Line, items: Sequence[Experiment]) -> str:
    """What differs from the paper, or from the tasks as they are now."""
    reasons = Counter(
        reason
        for item in items
        for reason in dict.fromkeys(part.partition(":")[0] for part in line.unlike(item))
    )
    old = sum(not _of_now([item]) for item in items)
    named = [*reasons.most_common(), *([("an older version of the task", old)] if old else [])]
    return ", ".join(f"{reason} in {n} of {len(items)} tasks" for reason, n in named) or "unlike those above"
