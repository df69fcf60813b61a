"""Groups of datasets and their scores: the suites, and the values of every axis, inside suites and across."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.registry import registry, suites
from medtasks_ext.registry.columns import NamedGroup, Place, listed, named_groups
from medtasks_ext.registry.strategies import suffix_of
from medtasks_ext.results.conditions import Facts, comparable
from medtasks_ext.results.frames import names
from medtasks_ext.results.models import model_id, version_of
from medtasks_ext.results.rollup import Members, as_parts, matrix, roll_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry, Suite
    from medtasks_ext.results.experiments import Entry, Experiment
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

    @cached_property
    def columns(self) -> Json:
        """Of the frame `groups`, and the group itself."""
        place = {"suite": self.suite, "axis": self.axis, "value": self.value}
        return {**place, "title": title(self.axis, self.value), "tasks": self.n_tasks, "group": self}


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


def group_scores(entry: Entry, strategy: str, groups: tuple[Group, ...]) -> list[Json]:
    """Rows of the frame `groups`: where an entry has finished tasks, or a paper prints its score.

    Beside its columns a row has its `group` and `source`, the entry, and `whole`: whether its score stands on
    all documents and judgements of its tasks.
    """
    done = {item.dataset.id: item for item in entry.experiments.values() if item.strategy == strategy}
    row = {
        **dict.fromkeys(names("groups")),
        **{"entry": entry.label, "model": entry.model, "kind": entry.kind, "strategy": strategy},
        **{"model_id": model_id(entry), "model_version": version_of(entry), "limited": entry.limited},
        **dict.fromkeys(("sample", "interval_rough", "partial"), False),
        **dict.fromkeys(("pending", "rows_in_part", "other_conditions"), 0),
        **{"source": entry, "whole": True},
    }
    rows = [row | figures for figures in _computed(entry, strategy, groups, done)] if done else []
    for group in groups:
        printed = entry.groups.get(group.name + suffix_of(strategy)) if group.name else None
        if printed is not None:
            rows.append(row | group.columns | {"score": printed})
    return rows


def _computed(
    entry: Entry, strategy: str, groups: tuple[Group, ...], finished: Mapping[str, Experiment]
) -> Iterator[Json]:
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
    for place in np.flatnonzero(layout.members.any(axis=1)).tolist():
        group, row = groups[place], rows[place]
        beside = entry.printed.get(group.name + suffix_of(strategy)) if group.name else None
        paper = beside.interval if beside and row.n_scored == group.n_tasks else None
        yield {
            **group.columns,
            "sample": items[0].sample,
            "score": _rounded(row.score),
            "interval_low": _rounded(row.interval and row.interval.low),
            "interval_high": _rounded(row.interval and row.interval.high),
            "interval_rough": bool(row.interval and row.interval.rough),
            **{f"paper_interval_{end}": paper and getattr(paper, end) for end in ("low", "high")},
            **{"chance": row.chance, "ceiling": row.ceiling, "cut": cut[place]},
            "valid": beside.valid if beside else row.valid,
            **{"tasks_scored": row.n_scored, "partial": row.partial, "documents": row.n_documents},
            "estimate_half": row.estimate and row.estimate.half,
            "documents_of": row.estimate and row.estimate.of,
            **{"pending": pending[place], "rows_in_part": short[place], "other_conditions": unlike[place]},
            "whole": not (pending[place] or limited[place] or short[place]),
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def beyond(rows: Iterable[Json]) -> list[float]:
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
        several = 1 < row["tasks_scored"] < suite["tasks_scored"]
        if several and same not in seen and not row["group"].derived:
            seen.add(same)
            above, below = row["interval_low"] - suite["score"], row["interval_high"] - suite["score"]
            found[-1] = max(above, 0.0) + min(below, 0.0)
    return found


def best_and_worst(rows: Sequence[Json], most: int) -> tuple[list[Json], list[Json]]:
    """The groups that are clearly better, and clearly worse, than their suite; the furthest first."""
    far = sorted(zip(beyond(rows), rows, strict=True), key=itemgetter(0))
    worst = [row for by, row in far if by < 0][:most]
    return [row for by, row in reversed(far) if by > 0][:most], worst


def rank(rows: Sequence[Json]) -> None:
    """Set `rank` and `rank_of`: synthetic rows among themselves, strategies each for itself.

    A row is ranked among the entries that have all of its tasks and were asked them alike or nearly so
    (`comparable`). Rows with pending judgements or a part of the documents have no rank.
    """
    families: dict[tuple[str, bool], dict[int, list[Json]]] = {}
    for row in rows:
        if row["score"] is not None:
            by_entry = families.setdefault((row["strategy"], row["sample"]), {})
            by_entry.setdefault(id(row["source"]), []).append(row)
    for (strategy, _), by_entry in families.items():
        _rank(strategy, [*by_entry.values()])


def _rank(strategy: str, by_entry: Sequence[Sequence[Json]]) -> None:
    scored = [
        {
            item.dataset.id: item
            for item in own[0]["source"].experiments.values()
            if item.strategy == strategy and item.score is not None
        }
        for own in by_entry
    ]
    # over all of their documents and judgements
    known = [{name: item for name, item in items.items() if item.whole} for items in scored]
    names = list(dict.fromkeys(name for items in known for name in items))
    cells = [[items[name].score if name in items else None for name in names] for items in known]
    values = np.array(cells, dtype=float).reshape(len(by_entry), len(names))
    alike = _alike(known, names)
    weigh = lru_cache(maxsize=None)(Group.weights)
    printed: dict[Group, list[float]] = {}
    as_printed: dict[Group, list[float]] = {}
    for row in chain.from_iterable(by_entry):
        if row["tasks_scored"] is None:  # a score that the paper prints without those of its tasks
            printed.setdefault(row["group"], []).append(row["score"])
        elif row["whole"] and _is_as_printed(row):
            as_printed.setdefault(row["group"], []).append(row["score"])
    for number, own in enumerate(by_entry):
        weights = matrix([weigh(row["group"], frozenset(scored[number])) for row in own], names)
        # a task counts against a rival that has its score, and was asked alike
        lacking = (np.isnan(values) | ~alike[number]).astype(float) @ (weights > 0).T
        means = np.where(lacking > 0, np.nan, np.nan_to_num(values) @ weights.T)  # (entries, rows)
        limit = np.array([row["score"] for row in own]) + 10**-_DIGITS
        better, of = (means > limit).sum(axis=0).tolist(), (~np.isnan(means)).sum(axis=0).tolist()
        for place, row in enumerate(own):
            if not row["whole"]:
                continue
            group, alone = row["group"], row["tasks_scored"] is None
            rivals = printed.get(group, []) if alone or _is_as_printed(row) else []
            if alone:
                rivals, better[place], of[place] = [*rivals, *as_printed.get(group, [])], 0, 0
            row["rank"] = 1 + better[place] + sum(score > float(limit[place]) for score in rivals)
            row["rank_of"] = of[place] + len(rivals)


def _is_as_printed(row: Json) -> bool:
    """Whether it can stand among scores that the paper prints of the whole group."""
    return row["tasks_scored"] == row["tasks"] and not row["other_conditions"]


def _alike(known: Sequence[Mapping[str, Experiment]], names: Sequence[str]) -> Array:
    """(entries, entries, names)."""
    found = np.zeros((len(known), len(known), len(names)), dtype=bool)
    for column, name in enumerate(names):
        ways: dict[Facts, list[int]] = {}
        for number, items in enumerate(known):
            if name in items:
                ways.setdefault(items[name].facts, []).append(number)
        for one, other in product(ways, repeat=2):
            if comparable(one, other):
                found[np.ix_(ways[one], ways[other], [column])] = True
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


def order(axis: str, value: str) -> tuple[int, str]:
    """For sorting values as the vocabulary and the suites list them, others by name."""
    known = [*registry().titles.get(axis, ()), *(["", AVERAGE] if value == AVERAGE else [])]
    return (known.index(value) if value in known else len(known), value)
