"""Where own results stand among published models: on the tasks that they have, and that were asked alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import title
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.models import facts_of
from medtasks_ext.stats.bootstrap import LEVEL

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.conditions import Difference
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array

#: Models count as of one size up to this factor.
_SIZE = 2.0
#: Billions of parameters in the name of a model: Qwen3-8B, 30B-A3B.
_BILLIONS = re.compile(r"(?<![\d.A-Za-z])(\d+(?:\.\d+)?)[bB](?![A-Za-z])")
_DIGITS = 12  # what differs in later ones is equal: it is rounding
#: strong and weak values that are named
NAMED = 3
_STRIP = 48  # characters of a strip
#: suite and strategy -> published models, each with its scores: dataset -> score
_Published: TypeAlias = "dict[tuple[str, str], list[tuple[Entry, dict[str, float]]]]"


@dataclass(frozen=True)
class Rival:
    """A published model on the tasks of a standing."""

    entry: Entry
    score: float


@dataclass(frozen=True)
class Strip:
    """One value of an axis: the own score among those of the published models on the same tasks."""

    axis: str  # of the suite
    value: str  # on it
    tasks: int  # how many are compared
    score: float  # own
    #: least, quarter, median, three quarters and greatest score of the published models
    spread: tuple[float, float, float, float, float]
    below: float  # share of them that score less, ties half

    @property
    def lead(self) -> float:
        """How far the own score is above the median."""
        return self.score - self.spread[2]

    @property
    def words(self) -> str:
        """The value with its lead."""
        return f"{title(self.axis, self.value)} ({self.lead:+.2f} from the median)"


@dataclass(frozen=True)
class Standing:
    """Where one entry stands in a suite with one strategy."""

    entry: Entry  # own
    suite: Suite  # with its published models
    strategy: str  # of the scores
    score: float  # over all tasks that it has
    tasks: int  # how many these are
    of_suite: int  # tasks that the suite's score is taken over
    official: int  # of its tasks, those that were asked in the suite's own words
    #: whether there are tasks that were asked as the published models were; else everything below is over all
    #: of its tasks, and says nothing of places
    placed: bool
    alike: int  # tasks behind what follows
    on_alike: float  # own score on these
    low: float | None  # lower end of its 95 % interval; None where a task cannot be resampled
    high: float | None  # upper end
    rivals: tuple[Rival, ...]  # published models with a score on all of these, the best first
    places: tuple[int, int] | None  # least and greatest place within the interval; of a placed one alone
    reasons: dict[str, int]  # condition -> tasks that are unlike the published ones by it
    size: float | None  # billions of parameters, by its name
    strips: tuple[Strip, ...]  # by the suite's axes

    @property
    def place(self) -> int:
        """Its place among the published models: 1 above all."""
        return 1 + sum(rival.score > self.on_alike for rival in self.rivals)

    @property
    def peers(self) -> list[Rival]:
        """The published models of its size."""
        size = self.size
        return [
            item
            for item in self.rivals
            if size and _is_near(size, size_of(item.entry, facts_of(item.entry, ())))
        ]

    @property
    def strong(self) -> list[Strip]:
        """The values in which it is furthest above the median, or least below."""
        return sorted(self.strips, key=lambda strip: (-strip.below, -strip.lead))[:NAMED]

    @property
    def weak(self) -> list[Strip]:
        """The values in which it is furthest below the median; none of the strong ones."""
        rest = [strip for strip in self.strips if strip not in self.strong]
        return sorted(rest, key=lambda strip: (strip.below, strip.lead))[:NAMED]

    @property
    def sentence(self) -> str:
        """Where it stands, in words."""
        of, n = self.suite.title, len(self.rivals)
        words = f"{self.score:.2f} on {self.tasks} of {of}'s {_tasks(self.of_suite)}"
        words += "" if self.strategy == "zero_shot" else f", {strategy_title(self.strategy)}"
        if not n:
            return words
        if not self.placed:
            why = ", ".join(f"{reason} in {count}" for reason, count in self.reasons.items())
            return f"{words}; no place among {n} published models, which were asked otherwise ({why})"
        if self.alike < self.tasks:
            words += f"; {self.on_alike:.2f} on the {self.alike} that were asked as the published models were"
        return f"{words}, {self.between} of {n}"

    @property
    def between(self) -> str:
        """The published models next to it."""
        ahead = [item for item in self.rivals if item.score > self.on_alike]
        equal = [item for item in self.rivals if item.score == self.on_alike]
        behind = [item for item in self.rivals if item.score < self.on_alike]
        if equal:
            return f"level with {equal[0].entry.model}"
        if not ahead:
            return f"above {behind[0].entry.model}, the best"
        if not behind:
            return f"below {ahead[-1].entry.model}, the last"
        return f"between {ahead[-1].entry.model} and {behind[0].entry.model}"

    @property
    def strip(self) -> str:
        """Published models from the least score to the greatest, their middle half thick, and the own one."""
        scores = sorted(rival.score for rival in self.rivals)
        least, most = min(scores[0], self.on_alike), max(scores[-1], self.on_alike)

        def place(score: float) -> int:
            return round((score - least) / (most - least or 1) * (_STRIP - 1))

        quarters = [scores[round(share * (len(scores) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
        low, first, middle, third, high = map(place, quarters)
        cells = [" "] * _STRIP
        cells[low : high + 1] = "─" * (high + 1 - low)
        cells[first : third + 1] = "━" * (third + 1 - first)
        cells[middle] = "┃"
        cells[place(self.on_alike)] = "●" if self.placed else "○"
        return f"{least:.2f} {''.join(cells)} {most:.2f}"

    @property
    def remarks(self) -> list[str]:
        """How sure, among whom, strong and weak, and what is left out, a line each."""
        lines = []
        if self.places and self.places[0] != self.places[1]:
            first, last = self.places
            lines.append(f"how sure: place {self.place}, between {first} and {last} within the 95 % interval")
        lines += [self.among_peers] if self.among_peers else []
        if len(self.strips) > 1 and self.tasks > 1:
            lines += [
                f"{words}: {', '.join(strip.words for strip in some)}"
                for words, some in (("strongest", self.strong), ("weakest", self.weak))
                if some
            ]
        if self.placed and self.reasons:
            reasons = ", ".join(f"{reason} in {n}" for reason, n in self.reasons.items())
            lines.append(f"{_tasks(self.tasks - self.alike)} left out here, being asked otherwise: {reasons}")
        return lines

    @property
    def among_peers(self) -> str:
        """Its place among models of its size, in words; empty where none is known."""
        if not self.placed or not (peers := self.peers):
            return ""
        place = 1 + sum(item.score > self.on_alike for item in peers)
        return (
            f"place {place} of {len(peers) + 1} among models of its size (about {self.size:g} B parameters)"
        )


def standings(
    entries: Sequence[Entry],
    draws: Sequence[Mapping[str, Array]],
    tasks: Registry,
    strategies: Sequence[str],
) -> list[Standing]:
    """Where each own entry stands in each suite, with each strategy in which it has scores.

    Args:
        entries: own and published ones.
        draws: for each entry, task -> its score on each resample.
        strategies: of the report.
    """
    published = _published(entries)
    return [
        found
        for entry, values in zip(entries, draws, strict=True)
        if entry.kind != "published" and not entry.sample
        for suite in tasks.suites.values()
        for strategy in strategies
        if (found := _standing(entry, values, tasks, suite, strategy, published))
    ]


def size_of(entry: Entry, known: Mapping[str, str]) -> float | None:
    """Billions of parameters of a model: as somebody states them, else as its name does.

    Args:
        entry: whose model it is.
        known: what is known of the model (`results.models.facts_of`).
    """
    said = known.get("parameters_b", "").strip("~B ")
    try:
        return float(said)
    except ValueError:
        found = _BILLIONS.search(entry.model)
        return float(found[1]) if found else None


def _is_near(one: float, other: float | None) -> bool:
    return other is not None and max(one, other) <= _SIZE * min(one, other)


def _tasks(n: int) -> str:
    return "1 task" if n == 1 else f"{n} tasks"


def _standing(
    entry: Entry,
    draws: Mapping[str, Array],
    tasks: Registry,
    suite: Suite,
    strategy: str,
    published: _Published,
) -> Standing | None:
    if suite.published is None:
        return None
    group, axes = _groups(tasks, suite.id)
    own = {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.strategy == strategy and item.score is not None and item.dataset.id in group.counted
    }
    if not own:
        return None
    unlike = {name: item.unlike_the_paper for name, item in own.items()}
    alike = [name for name, item in own.items() if item.may_stand_beside]
    chosen = alike or list(own)
    scored = _scored(published.get((suite.id, strategy), []), chosen)
    weights = group.weights(frozenset(chosen))
    weight = np.array([weights[name] for name in chosen])
    values = np.array([own[name].score for name in chosen], dtype=float)
    table = np.array([scores for _, scores in scored], dtype=float).reshape(-1, len(chosen))
    mine = float(weight @ values)
    of_rivals = table @ weight
    low, high, places = _range(weight, [draws.get(own[name].task) for name in chosen], of_rivals)
    order = np.argsort(-of_rivals, kind="stable").tolist()
    everything = group.weights(frozenset(own))
    reasons = Counter(
        words for found in unlike.values() for words in dict.fromkeys(one.condition for one in found)
    )
    reasons.update({"part of the rows or judgements": n} if (n := _parts(own, unlike)) else {})
    return Standing(
        entry=entry,
        suite=suite,
        strategy=strategy,
        score=float(sum(everything[name] * (own[name].score or 0.0) for name in own)),
        tasks=len(own),
        of_suite=group.n_tasks,
        official=sum(item.facts.wording == "official" for item in own.values()),
        placed=bool(alike and scored),
        alike=len(chosen),
        on_alike=mine,
        low=low,
        high=high,
        rivals=tuple(Rival(scored[place][0], float(of_rivals[place])) for place in order),
        places=places if alike and scored else None,
        reasons=dict(reasons.most_common()),
        size=size_of(entry, facts_of(entry, ())),
        strips=tuple(_strips(axes, chosen, values, table)) if scored else (),
    )


@lru_cache(maxsize=32)
def _groups(tasks: Registry, suite: str) -> tuple[Group, list[Group]]:
    """The suite's own group, and those of its axes that form groups."""
    groups = [group for group in groups_of(tasks) if group.suite == suite]
    [own] = [group for group in groups if group.axis == "suite"]
    axes = [axis for axis in tasks.suites[suite].groups if axis not in tasks.suites[suite].tags]
    return own, [group for group in groups if group.axis in axes and not group.derived]


def _parts(own: Mapping[str, Experiment], unlike: Mapping[str, Sequence[Difference]]) -> int:
    return sum(not unlike[name] and not item.whole for name, item in own.items())


def _published(entries: Sequence[Entry]) -> _Published:
    found: _Published = {}
    for entry in entries:
        if entry.kind != "published":
            continue
        scores: dict[str, dict[str, float]] = {}
        for item in entry.experiments.values():
            if item.score is not None:
                scores.setdefault(item.strategy, {})[item.dataset.id] = item.score
        for strategy, of in scores.items():
            found.setdefault((entry.paper, strategy), []).append((entry, of))
    return found


def _scored(
    rivals: Sequence[tuple[Entry, Mapping[str, float]]], chosen: Sequence[str]
) -> list[tuple[Entry, list[float]]]:
    """The published models with a score on all of these tasks."""
    return [
        (entry, [scores[name] for name in chosen])
        for entry, scores in rivals
        if all(name in scores for name in chosen)
    ]


def _range(
    weight: Array, draws: Sequence[Array | None], rivals: Array
) -> tuple[float | None, float | None, tuple[int, int] | None]:
    """The interval of the own score, and of its place among fixed scores."""
    known = [values for values in draws if values is not None]
    if len(known) < len(draws):
        return None, None, None
    resampled = weight @ np.stack(known)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(resampled, tails).tolist()
    return low, high, (1 + int((rivals > high).sum()), 1 + int((rivals > low).sum()))


def _strips(groups: Sequence[Group], chosen: Sequence[str], values: Array, table: Array) -> Iterator[Strip]:
    members = np.array([[name in group.counted for name in chosen] for group in groups], dtype=float)
    sizes = members.sum(axis=1)
    kept = np.flatnonzero(sizes).tolist()
    shares = members[kept] / sizes[kept, None]
    # (rivals, groups) and (groups,), rounded: what is equal stays equal
    others, mine = np.round(table @ shares.T, _DIGITS), np.round(shares @ values, _DIGITS)
    quarters = np.quantile(others, [0, 0.25, 0.5, 0.75, 1], axis=0).T.tolist()
    below = ((others < mine) + 0.5 * (others == mine)).mean(axis=0).tolist()
    for place, number in enumerate(kept):
        group, (least, quarter, middle, three, greatest) = groups[number], quarters[place]
        spread = (least, quarter, middle, three, greatest)
        yield Strip(group.axis, group.value, int(sizes[number]), float(mine[place]), spread, below[place])
