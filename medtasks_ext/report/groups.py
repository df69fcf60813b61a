"""Groups of datasets and their scores: the suites, and the values of every axis, inside suites and across."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.registry import registry, suites
from medtasks_ext.registry.columns import NamedGroup, Place, listed, named_groups
from medtasks_ext.registry.strategies import suffix_of
from medtasks_ext.results.conditions import Facts, comparable
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.models import model_id, version_of
from medtasks_ext.results.rollup import Members, as_parts, matrix, roll_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.results.rollup import Nearness
    from medtasks_ext.stats.intervals import Interval
    from medtasks_ext.stats.statistic import Array

ALL = "all"
#: the value that stands for the mean over the values of an axis
AVERAGE = "average"
#: Axes on which tasks of all suites can be put side by side.
ACROSS = ("language", "stage", "specialties", "task_type", "document_types", "access")
_DIGITS = 12  # what differs in later ones is equal: it is rounding


@dataclass(frozen=True, eq=False)
class Group(Members):
    """Datasets that share a value.

    Attributes:
        axis: `all`, `suite` or a field of the metadata.
        suite: the suite inside which it is; None across suites.
        name: of the registry's group, without a strategy's suffix; empty where there is none.
        parts: the ids behind its score.
        derived: whether it stands for several values of its axis: a set of the suite's, or the mean over all.
    """

    axis: str
    value: str
    suite: str | None
    derived: bool = False


@dataclass
class GroupScore:
    """What one entry has in one group with one strategy."""

    entry: Entry
    strategy: str
    group: Group
    sample: bool
    score: float | None  # 0-1; None where no task has one
    low: float | None = None  # lower end of the 95 % interval; None where a task has none
    high: float | None = None
    rough: bool = False  # whether the interval of one of its tasks is
    paper: Interval | None = None  # the interval that the suite's paper prints
    chance: float | None = None  # what guessing scores; None where a task does not list its answers
    ceiling: float | None = None  # what perfect answers score
    valid: float | None = None  # mean over finished tasks of the share of readable answers
    # the same of the share of answers that fill the token budget; None where it was not counted
    cut: float | None = None
    scored: int | None = None  # tasks with a score; None where a paper prints the group's score alone
    documents: int | None = None
    # place among entries that have all of its tasks, on those tasks; equal scores share the best
    rank: int | None = None
    of: int | None = None
    pending: int = 0  # tasks with answers that wait for a judge
    limited: bool = False  # whether a task was asked some of its documents alone
    estimate: Nearness | None = None  # how near the score is to that of all documents, where some were drawn
    short: int = 0  # tasks with fewer rows than the suite states, or fewer answers than rows
    unlike: int = 0  # tasks that were asked under other conditions than the suite's paper states

    @property
    def whole(self) -> bool:
        return not (self.pending or self.limited or self.short)

    @property
    def as_printed(self) -> bool:
        """Whether it can stand among scores that the paper prints of the whole group."""
        return self.scored == self.group.n_tasks and not self.unlike

    @property
    def partial(self) -> bool:
        return self.scored is not None and 0 < self.scored < self.group.n_tasks


@lru_cache(maxsize=8)
def groups_of(tasks: Registry) -> tuple[Group, ...]:
    """All groups that hold a dataset: all tasks, suites, their axes, and axes across suites."""
    members: dict[tuple[str, str, str | None], list[str]] = {}
    for dataset in tasks.datasets.values():
        if not dataset.metadata.grouped:
            continue
        suite = dataset.suite
        places: list[tuple[str, str, str | None]] = [(ALL, ALL, None)] if suite.in_totals else []
        places.append(("suite", suite.id, suite.id))
        for axis in (*ACROSS, *suite.axes):
            for value in dataset.metadata.axis(axis):
                across = axis in ACROSS and suite.in_totals
                places += [(axis, value, suite.id), *([(axis, value, None)] if across else [])]
        for place in dict.fromkeys(places):
            members.setdefault(place, []).append(dataset.id)
    named, of_paper = named_groups(tasks, members), listed(tasks)
    groups = [_group(tasks, place, named[place], tuple(ids), of_paper) for place, ids in members.items()]
    for suite in tasks.suites.values():
        for axis in suite.groups:
            groups += _derived(
                tasks, suite, axis, [item for item in groups if (item.suite, item.axis) == (suite.id, axis)]
            )
    return tuple(groups)


def _derived(tasks: Registry, suite: Suite, axis: str, values: Sequence[Group]) -> list[Group]:
    """The suite's sets of values on an axis, and the mean over its columns: values, some as a set."""
    sets = []
    for name, members in suite.sets.get(axis, {}).items():
        ids = tuple(dict.fromkeys(one for item in values if item.value in members for one in item.datasets))
        if ids:
            place = (axis, name, suite.id)
            group = _group(tasks, place, named_groups(tasks, [place])[place], ids, listed(tasks))
            sets.append(replace(group, name=f"{suite.id}_{name}", derived=True))
    inside = {value for members in suite.sets.get(axis, {}).values() for value in members}
    apart = [item for item in values if item.value not in inside]
    columns = [*apart, *sets] if apart else values  # sets that hold all values are no columns beside them
    if len(columns) < 2 or not suite.averaged:
        return sets
    ids = tuple(dict.fromkeys(one for item in columns for one in item.datasets))
    # the column of a table, not the suite's own figure: each value counts once, whatever its number of tasks
    return [*sets, Group("", ids, as_parts(columns), axis, AVERAGE, suite.id, derived=True)]


def _group(
    tasks: Registry,
    place: Place,
    named: NamedGroup,
    ids: tuple[str, ...],
    of_paper: Mapping[str, frozenset[str]],
) -> Group:
    suite = place[2]
    if suite and not tasks.suites[suite].averaged and len(ids) > 1:
        return Group("" if named.parts is None else named.name, ids, (), *place)
    if named.parts is None:
        own = tuple(one for one in ids if suite and one in of_paper[suite])
        return Group("", ids, (own or ids,), *place)
    return Group(named.name, ids, named.parts, *place)


def group_scores(entry: Entry, strategy: str, groups: tuple[Group, ...]) -> list[GroupScore]:
    """An entry's scores in the groups in which it has finished tasks, or in which a paper prints one."""
    done = {item.dataset.id: item for item in entry.experiments.values() if item.strategy == strategy}
    printed = {group: entry.groups.get(group.name + suffix_of(strategy)) for group in groups if group.name}
    rows = [
        GroupScore(entry, strategy, group, sample=False, score=score)
        for group, score in printed.items()
        if score is not None
    ]
    return [*_computed(entry, strategy, groups, done), *rows] if done else rows


def _computed(
    entry: Entry, strategy: str, groups: tuple[Group, ...], finished: Mapping[str, Experiment]
) -> Iterator[GroupScore]:
    items = list(finished.values())
    layout, rows = roll_up(groups, finished)
    inside, has = layout.counted > 0, np.array([item.score is not None for item in items])

    def of(*holds: bool) -> list[int]:
        """Of each group how many of its tasks have a score, and what is asked."""
        return (inside & has & np.array(holds)).sum(axis=1).tolist()  # type: ignore[no-any-return]

    cut = layout.means([item.share_cut("answers_cut") for item in items])
    pending, limited = of(*(item.covered < 1 for item in items)), of(*(item.limited for item in items))
    short = of(*(bool(item.missing) for item in items))
    unlike = of(*(bool(item.unlike_the_paper) for item in items))
    scores = _rounded([row.score for row in rows])
    lows = _rounded([row.interval.low if row.interval else None for row in rows])
    highs = _rounded([row.interval.high if row.interval else None for row in rows])
    sample, suffix = items[0].sample, suffix_of(strategy)
    for place in np.flatnonzero(layout.members.any(axis=1)).tolist():
        group, row = groups[place], rows[place]
        beside = entry.printed.get(group.name + suffix) if group.name else None
        yield GroupScore(
            entry,
            strategy,
            group,
            sample=sample,
            score=scores[place],
            low=lows[place],
            high=highs[place],
            rough=bool(row.interval and row.interval.rough),
            paper=beside.interval if beside and row.n_scored == group.n_tasks else None,
            chance=row.chance,
            ceiling=row.ceiling,
            valid=beside.valid if beside else row.valid,
            cut=cut[place],
            scored=row.n_scored,
            documents=row.n_documents,
            pending=pending[place],
            limited=bool(limited[place]),
            estimate=row.estimate,
            short=short[place],
            unlike=unlike[place],
        )


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    rounded = np.round([0.0 if value is None else value for value in values], _DIGITS).tolist()
    return [None if value is None else there for value, there in zip(values, rounded, strict=True)]


def group_frame(rows: Sequence[GroupScore], titles: Mapping[tuple[str, str], str]) -> pa.Table:
    of_entry = {
        number: {
            "model": entry.model,
            "model_id": model_id(entry),
            "model_version": version_of(entry),
            "limited": entry.limited,
        }
        for number, entry in {id(row.entry): row.entry for row in rows}.items()
    }
    return table_of(
        "groups",
        [
            {
                **vars(row),
                **{"entry": row.entry.label, "kind": row.entry.kind, **of_entry[id(row.entry)]},
                **{"suite": row.group.suite, "axis": row.group.axis, "value": row.group.value},
                "title": titles[row.group.axis, row.group.value],
                **{"interval_low": row.low, "interval_high": row.high, "interval_rough": row.rough},
                "paper_interval_low": row.paper.low if row.paper else None,
                "paper_interval_high": row.paper.high if row.paper else None,
                **{"tasks_scored": row.scored, "tasks": row.group.n_tasks, "partial": row.partial},
                "estimate_half": row.estimate.half if row.estimate else None,
                "documents_of": row.estimate.of if row.estimate else None,
                **{"rows_in_part": row.short, "other_conditions": row.unlike, "rank_of": row.of},
            }
            for row in rows
        ],
    )


def is_derived(tasks: Registry, row: Json) -> bool:
    sets = tasks.suites[row["suite"]].sets if row["suite"] else {}
    return row["value"] == AVERAGE or row["value"] in sets.get(row["axis"], {})


def beyond(tasks: Registry, rows: Iterable[Json]) -> list[float]:
    """How far each group of several tasks lies, with its interval, above its suite's score; below: negative.

    0 of what is no such group. Of groups of the same tasks the first counts.
    """
    place, known = itemgetter("entry", "suite", "strategy"), list(rows)
    suites = {place(row): row for row in known if row["axis"] == "suite" and row["score"] is not None}
    found, seen = list[float](), set[tuple[Any, ...]]()
    for row in known:
        suite, same = suites.get(place(row)), (*place(row), row["score"], row["documents"])
        found.append(0.0)
        if suite is None or row["axis"] in ("suite", "access") or row["interval_low"] is None:
            continue
        if (
            1 < row["tasks_scored"] < suite["tasks_scored"]
            and same not in seen
            and not is_derived(tasks, row)
        ):
            seen.add(same)
            above, below = row["interval_low"] - suite["score"], row["interval_high"] - suite["score"]
            found[-1] = max(above, 0.0) + min(below, 0.0)
    return found


def best_and_worst(tasks: Registry, rows: Iterable[Json], most: int) -> tuple[list[Json], list[Json]]:
    """The groups that are clearly better, and clearly worse, than their suite; the furthest first."""
    known = list(rows)
    far = sorted(zip(beyond(tasks, known), known, strict=True), key=itemgetter(0))
    worst = [row for by, row in far if by < 0][:most]
    return [row for by, row in reversed(far) if by > 0][:most], worst


def rank(rows: Sequence[GroupScore]) -> None:
    """Set `rank` and `of`: synthetic rows among themselves, strategies each for itself.

    A row is ranked among the entries that have all of its tasks and were asked them alike or nearly so
    (`comparable`). Rows with pending judgements or a part of the documents have no rank.
    """
    families: dict[tuple[str, bool], list[GroupScore]] = {}
    for row in rows:
        if row.score is not None:
            families.setdefault((row.strategy, row.sample), []).append(row)
    for (strategy, _), family in families.items():
        _rank(strategy, family)


def _rank(strategy: str, rows: Sequence[GroupScore]) -> None:
    by_entry: dict[int, list[GroupScore]] = {}
    for row in rows:
        by_entry.setdefault(id(row.entry), []).append(row)
    entries = [own[0].entry for own in by_entry.values()]
    scored = [
        {
            item.dataset.id: item
            for item in entry.experiments.values()
            if item.strategy == strategy and item.score is not None
        }
        for entry in entries
    ]
    # over all of their documents and judgements
    known = [{name: item for name, item in items.items() if item.whole} for items in scored]
    names = list(dict.fromkeys(name for items in known for name in items))
    cells = [[items[name].score if name in items else None for name in names] for items in known]
    values = np.array(cells, dtype=float)
    values = values.reshape(len(entries), len(names))
    alike = _alike(entries, known, names)
    weigh = lru_cache(maxsize=None)(Group.weights)
    printed = _by_group(row for row in rows if row.scored is None)
    as_printed = _by_group(row for row in rows if row.as_printed and row.whole)
    for number, own in enumerate(by_entry.values()):
        weights = matrix([weigh(row.group, frozenset(scored[number])) for row in own], names)
        # a task counts against a rival that has its score, and was asked alike
        lacking = (np.isnan(values) | ~alike[number]).astype(float) @ (weights > 0).T
        means = np.where(lacking > 0, np.nan, np.nan_to_num(values) @ weights.T)  # (entries, rows)
        limit = np.array([row.score for row in own]) + 10**-_DIGITS
        better, of = (means > limit).sum(axis=0).tolist(), (~np.isnan(means)).sum(axis=0).tolist()
        for place, row in enumerate(own):
            if not row.whole:
                continue
            rivals = printed.get(row.group, []) if row.scored is None or row.as_printed else []
            if row.scored is None:  # a score that the paper prints without those of its tasks
                rivals, better[place], of[place] = [*rivals, *as_printed.get(row.group, [])], 0, 0
            row.rank = 1 + better[place] + sum(score > float(limit[place]) for score in rivals)
            row.of = of[place] + len(rivals)


def _by_group(rows: Iterable[GroupScore]) -> dict[Group, list[float]]:
    found: dict[Group, list[float]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row.score or 0.0)
    return found


def _alike(
    entries: Sequence[Entry], known: Sequence[Mapping[str, Experiment]], names: Sequence[str]
) -> Array:
    """(entries, entries, names)."""
    found = np.zeros((len(entries), len(entries), len(names)), dtype=bool)
    for column, name in enumerate(names):
        ways: dict[Facts, list[int]] = {}
        for number, items in enumerate(known):
            if name in items:
                ways.setdefault(items[name].facts, []).append(number)
        for one, mine in ways.items():
            for other, theirs in ways.items():
                if comparable(one, other):
                    found[np.ix_(mine, theirs, [column])] = True
    return found


# The titles of axes and of their values, and their order.

#: axis -> title, for those that all suites have; in the order of display
_SHARED = {
    ALL: "all tasks",
    "suite": "suite",
    "language": "language",
    "specialties": "specialty",
    "stage": "clinical stage",
    "task_type": "kind of task",
    "document_types": "kind of document",
    "access": "access to the data",
}


def axis_titles() -> dict[str, str]:
    """Axis -> title, in the order of display; an axis of single suites names them."""
    own, known = {}, suites()
    for axis in dict.fromkeys(axis for suite in known.values() for axis in suite.axes):
        having = [suite for suite in known.values() if axis in suite.axes]
        own[axis] = f"{having[0].title_of(axis)} ({', '.join(suite.title for suite in having)})"
    return {**_SHARED, **own}


def title(axis: str, value: str) -> str:
    if axis == ALL:
        return "all tasks (plain mean)"
    if axis == "access":
        return value
    if value == AVERAGE:
        return "Average of these"
    return registry().titles.get(axis, {}).get(value) or value.replace("_", " ").capitalize()


def titles_of(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    return {pair: title(*pair) for pair in {*pairs}}


def order(axis: str, value: str) -> tuple[int, str]:
    """For sorting values as the vocabulary and the suites list them, others by name."""
    known = [*registry().titles.get(axis, ()), *(["", AVERAGE] if value == AVERAGE else [])]
    return (known.index(value) if value in known else len(known), value)
