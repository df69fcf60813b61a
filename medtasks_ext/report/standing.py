"""Where own results stand among published models: on the tasks that they have, and that were asked alike.

Nothing is claimed from fewer than three such tasks or 100 documents, and no side of the middle by an interval
that holds it. Where a suite has enough published models, the score on some of its tasks becomes one on all of
them (`stats.equating`); where not, a rank is one on these tasks alone, and says so. What stands here as
words is what terminal, page, card and site say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, get_args

import numpy as np

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.axes import title
from medtasks_ext.report.groups import Group, GroupScore, groups_of
from medtasks_ext.results.confirmed import State, confirmed_words, counted
from medtasks_ext.results.frames import SPREAD, table_of
from medtasks_ext.results.models import facts_of, model_id, version_of
from medtasks_ext.stats.equating import FEWEST_MODELS, Equating, equating
from medtasks_ext.stats.intervals import mean_interval, of_tasks, sample_sizes, width_as_sd

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array

#: Models count as of one size up to this factor.
_SIZE = 2.0
#: Billions of parameters in the name of a model: Qwen3-8B, 30B-A3B.
_BILLIONS = re.compile(r"(?<![\d.A-Za-z])(\d+(?:\.\d+)?)[bB](?![A-Za-z])")
_DIGITS = 12  # what differs in later ones is equal: it is rounding
#: Strong and weak values that are named.
NAMED = 3
#: Tasks that were asked alike, and documents of them, below which nothing is claimed.
FEWEST_TASKS, FEWEST_DOCUMENTS = 3, 100
#: Share of the ranks over which an interval may reach; beyond, there is no rank.
_WIDEST = 1 / 3
_STRIP = 48  # characters of a strip


@dataclass(frozen=True)
class Rival:
    entry: Entry
    score: float
    size: float | None  # billions of parameters


@dataclass(frozen=True)
class Strip:
    axis: str  # of the suite
    value: str  # on it
    tasks: int  # how many are compared
    score: float  # own
    low: float  # lower end of its 95 % interval
    high: float  # upper end
    #: least, quarter, median, three quarters and greatest score of the published models
    spread: tuple[float, float, float, float, float]
    below: float  # share of them that score less, ties half

    @property
    def lead(self) -> float:
        return self.score - self.spread[2]

    @property
    def side(self) -> int:
        """1 above the median, -1 below, 0 where the interval holds it."""
        return int(self.low > self.spread[2]) - int(self.high < self.spread[2])

    def row(self) -> Json:
        figures = (self.score, self.low, self.high, *self.spread, self.below)
        whose = {"axis": self.axis, "value": self.value, "tasks": self.tasks}
        return whose | dict(zip(SPREAD, figures, strict=True))

    @property
    def words(self) -> str:
        return f"{title(self.axis, self.value)} ({self.lead:+.2f} from the median, {tasks_words(self.tasks)})"


@dataclass(frozen=True)
class Value:
    axis: str
    value: str
    tasks: int
    score: float

    @property
    def words(self) -> str:
        return f"{title(self.axis, self.value)} ({self.score:.2f}, {tasks_words(self.tasks)})"


@dataclass(frozen=True)
class Equivalent:
    """The score on a whole suite that a score on some of its tasks stands for."""

    score: float
    error: float  # half of its 95 % interval


@dataclass(frozen=True)
class Standing:
    entry: Entry  # own
    suite: Suite  # with its published models
    strategy: str  # of the scores
    score: float  # over all tasks that it has
    tasks: int  # how many these are
    of_suite: int  # tasks that the suite's score is taken over
    official: int  # of its tasks, those that were asked in the suite's own words
    states: dict[
        State, int
    ]  # of its tasks: whether rows, words and examples are confirmed, claimed or different
    claimed: int  # of the tasks that were asked alike, those of which something is only claimed
    comparable: int  # of its tasks, those that were asked as the published models were
    documents_comparable: int  # documents of these
    #: own score on the tasks that were asked alike; where there is none, on all of its tasks, which says
    #: nothing of places
    score_comparable: float
    low: float | None  # lower end of its 95 % interval; None where a task has none
    high: float | None  # upper end
    #: what this stands for on the whole suite; None where it is of the whole, or too few models are published
    equivalent: Equivalent | None
    #: published models, the best first, with their scores on the same tasks, or on the whole suite if there
    #: is an `equivalent`
    rivals: tuple[Rival, ...]
    reasons: dict[str, int]  # condition -> tasks that are unlike the published ones by it
    size: float | None  # billions of parameters, by its name
    strips: tuple[Strip, ...]  # by the suite's axes; none where nothing is claimed
    profile: tuple[Value, ...]  # its own scores by these axes, where it has no strips; the highest first

    @property
    def enough(self) -> bool:
        """Whether there are published models, and enough tasks and documents that were asked alike."""
        return bool(
            self.rivals and self.comparable >= FEWEST_TASKS and self.documents_comparable >= FEWEST_DOCUMENTS
        )

    @property
    def marked(self) -> float:
        return self.equivalent.score if self.equivalent else self.score_comparable

    @property
    def ends(self) -> tuple[float, float] | None:
        if self.equivalent:
            return self.marked - self.equivalent.error, self.marked + self.equivalent.error
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def ranked(self) -> bool:
        """Enough was asked alike, and the interval leaves out most of the field."""
        return self.enough and self._range is not None and self._narrow(self._range)

    @property
    def rank_range(self) -> tuple[int, int] | None:
        return self._range if self.ranked else None

    @property
    def _range(self) -> tuple[int, int] | None:
        if self.ends is None:
            return None
        low, high = self.ends
        scores = [rival.score for rival in self.rivals]
        return 1 + sum(score > high for score in scores), 1 + sum(score > low for score in scores)

    def _narrow(self, ranks: tuple[int, int]) -> bool:
        return ranks[1] - ranks[0] + 1 <= _WIDEST * (len(self.rivals) + 1)

    @property
    def rank(self) -> int:
        """By the score alone: 1 above all."""
        return 1 + sum(rival.score > self.marked for rival in self.rivals)

    @cached_property
    def peers(self) -> list[Rival]:
        size = self.size
        return [item for item in self.rivals if size and _is_near(size, item.size)]

    @property
    def strong(self) -> list[Strip]:
        """The values whose intervals lie above the median, the furthest first."""
        above = [strip for strip in self.strips if strip.side > 0]
        return sorted(above, key=lambda strip: (-strip.below, -strip.lead))[:NAMED]

    @property
    def weak(self) -> list[Strip]:
        below = [strip for strip in self.strips if strip.side < 0]
        return sorted(below, key=lambda strip: (strip.below, strip.lead))[:NAMED]

    @property
    def sentence(self) -> str:
        of, n = self.suite.title, len(self.rivals)
        words = measured_words(self.score, self.tasks, of, self.of_suite, self.strategy)
        if not n:
            return words
        if not self.comparable:
            return f"{words}; not ranked among {n} published models: other conditions ({self._why})"
        if not self.enough:
            alike = f"{tasks_words(self.comparable)} with {self.documents_comparable:,} documents"
            return (
                f"{words}; not ranked: {alike} under the conditions of the published models, and "
                f"{FEWEST_TASKS} tasks with {FEWEST_DOCUMENTS} documents are needed"
            )
        if self.equivalent:
            words += (
                f"; {of}-equivalent {self.equivalent.score:.2f} ± {self.equivalent.error:.2f} by the "
                f"{self.comparable} under the conditions of the published models"
            )
        elif self.comparable < self.tasks:
            words += (
                f"; {self.score_comparable:.2f} on the {self.comparable} under the conditions of the "
                "published models"
            )
        if self.rank_range is None:
            return f"{words}: too little for a rank among {n} published models"
        first, last = self.rank_range
        return (
            f"{words}: rank {range_words(first, last)} of {n + 1}{self._on_these}{self._side}{self._claimed}"
        )

    @property
    def _claimed(self) -> str:
        """That the rank rests on what nobody has confirmed."""
        if not self.claimed:
            return ""
        some = (
            "" if self.claimed == self.comparable else f" in {self.claimed} of these {self.comparable} tasks"
        )
        return f", on rows or words that nobody has confirmed{some}"

    @property
    def _on_these(self) -> str:
        """That the rank is one on some tasks, where the suite has too few models to equate."""
        return " on these tasks alone" if self.comparable < self.of_suite and not self.equivalent else ""

    @property
    def _side(self) -> str:
        """Of the middle of the published models; empty where the interval holds it."""
        if self.ends is None:
            return ""
        middle = float(np.median([rival.score for rival in self.rivals]))
        low, high = self.ends
        return ", above the middle" if low > middle else ", below the middle" if high < middle else ""

    @property
    def _why(self) -> str:
        return ", ".join(f"{reason} in {count}" for reason, count in self.reasons.items())

    def row(self) -> Json:
        said = ("ranked", "rank_range", "sentence", "among_peers", "remarks")
        return {
            **vars(self),
            **{name: getattr(self, name) for name in said},
            **{state: self.states.get(state, 0) for state in get_args(State)},
            **{"entry": self.entry.label, "suite": self.suite.id, "rank_of": len(self.rivals) + 1},
            "rank": self.rank if self.ranked else None,
            "equivalent": self.equivalent and self.equivalent.score,
            "equivalent_error": self.equivalent and self.equivalent.error,
            "reasons": [*self.reasons.items()],
            "rivals": [(rival.entry.label, rival.score) for rival in self.rivals],
            "peers": [rival.entry.label for rival in self.peers],
            "strips": [strip.row() for strip in self.strips],
            "strong": [vars(strip) for strip in self.strong],
            "weak": [vars(strip) for strip in self.weak],
        }

    @property
    def remarks(self) -> list[str]:
        lines = []
        if self.ranked and self._on_these:
            lines.append(
                f"{self.suite.title} has {len(self.rivals)} published models, too few to tell its other "
                "tasks from these"
            )
        if self.enough and not self.ranked and self.ends:
            lines.append("the error reaches over more than a third of the published models")
        lines += [self.among_peers] if self.among_peers else []
        lines += [
            f"{words}: {', '.join(strip.words for strip in some)}"
            for words, some in (("above the median in", self.strong), ("below the median in", self.weak))
            if some
        ]
        if len(self.profile) > 1:
            some = min(NAMED, len(self.profile) // 2)
            best, worst = self.profile[:some], self.profile[: -some - 1 : -1]
            lines.append(
                "its own scores alone, on tasks that are not equally hard: highest "
                f"{', '.join(item.words for item in best)}; lowest {', '.join(item.words for item in worst)}"
            )
        if self.itself:
            lines.append(self.itself)
        if self.rivals:
            lines.append(confirmed_words(self.states, self.tasks))
        if self.comparable and self.reasons:
            left_out = tasks_words(self.tasks - self.comparable)
            lines.append(f"{left_out} left out here, under other conditions: {self._why}")
        return lines

    @property
    def itself(self) -> str:
        """What the paper prints of the same model, by the registry of models; empty where it prints none."""
        mine = model_id(self.entry)
        same = [item for item in self.rivals if mine is not None and model_id(item.entry) == mine]
        printed = ", ".join(f"{item.score:.2f} ({_called(item.entry)})" for item in same)
        return f"{self.suite.title} prints this model itself with {printed}" if printed else ""

    @property
    def among_peers(self) -> str:
        """Its ranks among models of its size, in words; empty where none is known."""
        if not self.ranked or self.ends is None or not (peers := self.peers):
            return ""
        first, last = (1 + sum(item.score > end for item in peers) for end in reversed(self.ends))
        rank = f"rank {range_words(first, last)} of {len(peers) + 1}"
        return f"{rank} among models of its size (about {self.size:g} B parameters)"


def measured_words(score: float, tasks: int, suite: str, of_suite: int, strategy: str) -> str:
    words = f"{score:.2f} on {tasks} of {suite}'s {tasks_words(of_suite)}"
    return words if strategy == "zero_shot" else f"{words}, {strategy_title(strategy)}"


def _called(entry: Entry) -> str:
    version = version_of(entry)
    return f"{entry.model}, {version}" if version and version not in entry.model else entry.model


def own_score(row: Json) -> float:
    return float(row["score_comparable"] if row["equivalent"] is None else row["equivalent"])


def ends_of(row: Json) -> tuple[float, float] | None:
    if row["equivalent"] is not None:
        return row["equivalent"] - row["equivalent_error"], row["equivalent"] + row["equivalent_error"]
    return None if row["low"] is None else (row["low"], row["high"])


def strip_of(row: Json) -> str:
    """Published models from the least score to the greatest, their middle half thick, and the own one."""
    scores: list[float] = sorted(rival["score"] for rival in row["rivals"])
    mine = own_score(row)
    least, most = min(scores[0], mine), max(scores[-1], mine)

    def place(score: float) -> int:
        return round((score - least) / (most - least or 1) * (_STRIP - 1))

    quarters = [scores[round(share * (len(scores) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
    low, first, middle, third, high = map(place, quarters)
    cells = [" "] * _STRIP
    cells[low : high + 1] = "─" * (high + 1 - low)
    cells[first : third + 1] = "━" * (third + 1 - first)
    cells[middle] = "┃"
    cells[place(mine)] = "●" if row["ranked"] else "○"
    return f"{least:.2f} {''.join(cells)} {most:.2f}"


def standings(
    entries: Sequence[Entry],
    tasks: Registry,
    strategies: Sequence[str],
) -> pa.Table:
    own = [entry for entry in entries if entry.kind != "published" and not entry.sample]
    fields = [
        _Field.of(entries, suite, strategy, _groups(tasks, suite.id)[0])
        for suite in tasks.suites.values()
        for strategy in strategies
        if own and suite.published
    ]
    rows = (_standing(entry, tasks, field) for entry in own for field in fields)
    return table_of("standings", (item.row() for item in rows if item))


def ranks_of(rows: Sequence[GroupScore], table: pa.Table) -> None:
    """Give own entries the rank of their standing among published models, and none where that has none."""
    known = {(row["entry"], row["suite"], row["strategy"]): row for row in table.to_pylist() if row["rivals"]}
    for row in rows:
        found = known.get((row.entry.label, row.group.suite, row.strategy))
        if found and not found["ranked"]:
            row.rank = row.of = None
        elif found and row.group.axis == "suite":
            row.rank, row.of = found["rank"], found["rank_of"]


@dataclass(frozen=True)
class _Field:
    suite: Suite
    strategy: str
    entries: list[Entry]
    sizes: list[float | None]  # billions of parameters
    columns: dict[str, int]  # dataset -> its column in `scores`
    scores: Array  # (models, datasets), NaN where one has none

    @classmethod
    def of(cls, entries: Sequence[Entry], suite: Suite, strategy: str, group: Group) -> _Field:
        found, scores = [], []
        for entry in entries:
            items = entry.experiments.values() if entry.paper == suite.id else ()
            own = {item.dataset.id: item.score for item in items if item.strategy == strategy}
            if any(score is not None for score in own.values()):
                found.append(entry)
                scores.append([own.get(name) for name in group.datasets])
        columns = {name: column for column, name in enumerate(group.datasets)}
        table = np.array(scores, dtype=float).reshape(len(found), len(columns))
        return cls(suite, strategy, found, [_size_of(entry) for entry in found], columns, table)

    def on(self, names: Sequence[str]) -> tuple[list[int], Array]:
        """Places of the models that have a score on all of these datasets, and these scores, (n, names)."""
        scores = self.scores.take([self.columns[name] for name in names], axis=1)
        there = np.flatnonzero(~np.isnan(scores).any(axis=1))
        return there.tolist(), scores[there]

    def rivals(self, places: Sequence[int], scores: Sequence[float]) -> tuple[Rival, ...]:
        ordered = sorted(zip(places, scores, strict=True), key=lambda pair: -pair[1])
        return tuple(Rival(self.entries[place], score, self.sizes[place]) for place, score in ordered)


def size_of(entry: Entry, known: Mapping[str, str]) -> float | None:
    """Billions of parameters: as somebody states them, else as the model's name does."""
    said = known.get("parameters_b", "").strip("~B ")
    try:
        return float(said)
    except ValueError:
        match = _BILLIONS.search(entry.model)
        return float(match[1]) if match else None


def _size_of(entry: Entry) -> float | None:
    return size_of(entry, facts_of(entry, ()))


def _is_near(one: float, other: float | None) -> bool:
    return other is not None and max(one, other) <= _SIZE * min(one, other)


def range_words(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def tasks_words(n: int) -> str:
    return "1 task" if n == 1 else f"{n} tasks"


def _standing(entry: Entry, tasks: Registry, field: _Field) -> Standing | None:
    group, axes = _groups(tasks, field.suite.id)
    own = {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.strategy == field.strategy and item.score is not None and item.dataset.id in group.counted
    }
    if not own:
        return None
    unlike = {name: item.unlike_the_paper for name, item in own.items()}
    alike = [name for name, item in own.items() if item.may_stand_beside]
    chosen = alike or list(own)
    items = [own[name] for name in chosen]
    weight = _weights(group, chosen)
    places, table = field.on(chosen)
    scores = np.array([item.score for item in items], dtype=float)
    rivals = field.rivals(places, (table @ weight).tolist())
    interval = of_tasks(
        weight, scores, [item.intervals.get("score") for item in items], [item.n for item in items]
    )
    documents = sum(item.n for item in items) if alike else 0
    enough = len(alike) >= FEWEST_TASKS and documents >= FEWEST_DOCUMENTS
    equivalent = None
    if enough and len(alike) < group.n_tasks and (fit := _fit(field, group, tuple(chosen))):
        equivalent = Equivalent(*fit.score(scores, np.array([*map(_variance, items)])))
        everything = sorted(group.counted)  # sums of one order have the same last digits
        whole, (places, of_all) = _weights(group, everything), field.on(everything)
        rivals = field.rivals(places, [float(whole @ values) for values in of_all])
    weights = group.weights(frozenset(own))
    reasons = Counter(
        words
        for differences in unlike.values()
        for words in dict.fromkeys(one.condition for one in differences)
    )
    if n := sum(not unlike[name] and not item.whole for name, item in own.items()):
        reasons["part of the rows or judgements"] += n
    claims = bool(enough and len(table))
    return Standing(
        entry=entry,
        suite=field.suite,
        strategy=field.strategy,
        score=float(sum(weights[name] * (own[name].score or 0.0) for name in own)),
        tasks=len(own),
        of_suite=group.n_tasks,
        official=sum(item.facts.wording == "official" for item in own.values()),
        states=counted(item.confirmed.state for item in own.values()),
        claimed=sum(own[name].confirmed.state == "claimed" for name in alike),
        comparable=len(alike),
        documents_comparable=documents,
        score_comparable=float(weight @ scores),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        equivalent=equivalent,
        rivals=rivals,
        reasons=dict(reasons.most_common()),
        size=_size_of(entry),
        strips=tuple(_strips(axes, items, table)) if claims else (),
        profile=() if claims else tuple(_profile(axes, list(own.values()))),
    )


def _weights(group: Group, names: Sequence[str]) -> Array:
    weights = group.weights(frozenset(names))
    return np.array([weights[name] for name in names])


def _variance(item: Experiment) -> float:
    """Of a score, by the sampling of its documents."""
    interval, score = item.intervals.get("score"), item.score or 0.0
    return width_as_sd(interval) ** 2 if interval else score * (1 - score) / max(item.n, 1)


def _fit(field: _Field, group: Group, chosen: tuple[str, ...]) -> Equating | None:
    """How the suite's score follows from these tasks; None where too few models have all of them."""
    names = [*chosen, *sorted(group.counted - set(chosen))]
    places, table = field.on(names)
    if len(places) < FEWEST_MODELS:
        return None
    families = _families([field.entries[place] for place in places])
    return _equating(table.tobytes(), len(names), len(chosen), tuple(_weights(group, names)), families)


@lru_cache(maxsize=64)
def _equating(
    table: bytes, n: int, asked: int, weights: tuple[float, ...], families: tuple[str, ...]
) -> Equating:
    scores = np.frombuffer(table).reshape(-1, n)
    return equating(scores, np.array(weights), range(asked), families)


def _families(models: Sequence[Entry]) -> tuple[str, ...]:
    """Who made each model, as its paper says, else as other models whose names begin alike say."""
    said = [facts_of(entry, ()).get("maker", "").lower() for entry in models]
    # the letters with which its name begins
    stems = [(re.match(r"[^\W\d_]*", entry.model) or [""])[0].lower() for entry in models]
    makers = {stem: maker for stem, maker in zip(stems, said, strict=True) if maker}
    return tuple(maker or makers.get(stem, stem) for maker, stem in zip(said, stems, strict=True))


@lru_cache(maxsize=32)
def _groups(tasks: Registry, suite: str) -> tuple[Group, list[Group]]:
    groups = [group for group in groups_of(tasks) if group.suite == suite]
    [own] = [group for group in groups if group.axis == "suite"]
    axes = [axis for axis in tasks.suites[suite].groups if axis not in tasks.suites[suite].tags]
    return own, [group for group in groups if group.axis in axes and not group.derived]


def _members(groups: Sequence[Group], items: Sequence[Experiment]) -> Array:
    """(groups, items) whether an item counts in a group; 0 in the groups with too few of them."""
    members = np.array(
        [[item.dataset.id in group.counted for item in items] for group in groups], dtype=float
    )
    members = members.reshape(len(groups), len(items))
    documents = members @ np.array([item.n for item in items])
    members[(members.sum(axis=1) < FEWEST_TASKS) | (documents < FEWEST_DOCUMENTS)] = 0
    return members


def _strips(groups: Sequence[Group], items: Sequence[Experiment], table: Array) -> Iterator[Strip]:
    members = _members(groups, items)
    sizes = members.sum(axis=1)
    intervals = [item.intervals.get("score") for item in items]
    kept = np.flatnonzero(sizes).tolist()
    if not kept or any(interval is None for interval in intervals):
        return
    known = [interval for interval in intervals if interval is not None]
    shares = members[kept] / sizes[kept, None]
    scores = np.array([item.score for item in items], dtype=float)
    n_documents = sample_sizes(
        scores, [one.low for one in known], [one.high for one in known], [item.n for item in items]
    )
    lows, highs = mean_interval(shares, scores, n_documents)
    # (rivals, groups) and (groups,), rounded: what is equal stays equal
    others, mine = np.round(table @ shares.T, _DIGITS), np.round(shares @ scores, _DIGITS)
    quarters = np.quantile(others, [0, 0.25, 0.5, 0.75, 1], axis=0).T.tolist()
    below = ((others < mine) + 0.5 * (others == mine)).mean(axis=0).tolist()
    for place, number in enumerate(kept):
        group, (least, quarter, middle, three, greatest) = groups[number], quarters[place]
        yield Strip(
            group.axis,
            group.value,
            int(sizes[number]),
            float(mine[place]),
            float(lows[place]),
            float(highs[place]),
            (least, quarter, middle, three, greatest),
            below[place],
        )


def _profile(groups: Sequence[Group], items: Sequence[Experiment]) -> list[Value]:
    members = _members(groups, items)
    scores = np.array([item.score for item in items], dtype=float)
    values = [
        Value(group.axis, group.value, int(row.sum()), float(row @ scores / row.sum()))
        for group, row in zip(groups, members, strict=True)
        if row.any()
    ]
    return sorted(values, key=lambda item: -item.score)
