"""Groups of datasets and their scores: the suites, and the values of every axis, inside suites and across."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.registry.groups import SHARED_AXES, SUITE_AXES, group_name
from medtasks_ext.registry.metadata import SUITE_KEYS
from medtasks_ext.registry.tasks import SUFFIX
from medtasks_ext.results.bootstrap import LEVEL
from medtasks_ext.results.rollup import counted_parts, mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from medtasks_ext.metrics.statistic import Array
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment

ALL = "all"
#: Axes on which tasks of all suites can be put side by side.
ACROSS = ("language", "stage", "specialties", "task_type", "documents", "access")
_DIGITS = 12  # what differs in later ones is equal: it is rounding


@dataclass(frozen=True)
class Group:
    """Datasets that share a value.

    Attributes:
        axis: `all`, `suite` or a field of the metadata.
        value: on that axis.
        suite: the suite inside which it is; None across suites.
        name: of the registry's group, without a strategy's suffix; empty where there is none.
        datasets: ids.
        parts: the ids behind its score, a mean over parts, each the mean of its tasks.
    """

    axis: str
    value: str
    suite: str | None
    name: str
    datasets: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]

    @cached_property
    def counted(self) -> frozenset[str]:
        """Datasets that its score is taken over."""
        return frozenset(name for part in self.parts for name in part)

    @cached_property
    def n_tasks(self) -> int:
        """How many those are."""
        return len(self.counted)

    def weights(self, scored: Sequence[str]) -> dict[str, float]:
        """Dataset -> its weight in the group's score, where these datasets have one."""
        parts = counted_parts(self.datasets, set(scored), self.parts)
        return {name: 1 / len(parts) / len(part) for part in parts for name in part}


@dataclass(frozen=True)
class GroupScore:
    """What one entry has in one group with one strategy.

    Attributes:
        sample: whether its rows are synthetic.
        score: 0-1; None where no task has one.
        low: lower end of the 95 % interval, documents resampled within tasks; None where a task cannot be.
        high: upper end.
        valid: mean over finished tasks of the share of readable answers.
        cut: the same of the share of answers that fill the token budget; None where it was not counted.
        scored: tasks with a score; None where a paper prints the group's score alone.
        documents: of its finished tasks.
        rank: place among entries that have all of its tasks, on those tasks; equal scores share the best.
        of: how many those are.
    """

    entry: Entry
    strategy: str
    group: Group
    sample: bool
    score: float | None
    low: float | None = None
    high: float | None = None
    valid: float | None = None
    cut: float | None = None
    scored: int | None = None
    documents: int | None = None
    rank: int | None = None
    of: int | None = None

    @property
    def partial(self) -> bool:
        """Whether tasks of the group are missing from the score."""
        return self.scored is not None and 0 < self.scored < self.group.n_tasks


@lru_cache(maxsize=8)
def groups_of(tasks: Registry) -> tuple[Group, ...]:
    """All groups that hold a dataset: all tasks, suites, their axes, and axes across suites."""
    members: dict[tuple[str, str, str | None], list[str]] = {}
    for dataset in tasks.datasets.values():
        record = dataset.metadata
        if record.twin_of:
            continue
        suite = record.benchmark
        places = [(ALL, ALL, None), ("suite", suite, suite)]
        for axis in (*ACROSS, *SUITE_KEYS[suite]):
            for value in record.axis(axis):
                places += [(axis, value, suite), *([(axis, value, None)] if axis in ACROSS else [])]
        for place in dict.fromkeys(places):
            members.setdefault(place, []).append(dataset.id)
    return tuple(_group(tasks, *place, tuple(ids)) for place, ids in members.items())


def _group(tasks: Registry, axis: str, value: str, suite: str | None, ids: tuple[str, ...]) -> Group:
    prefixes = SHARED_AXES if suite is None else SUITE_AXES[suite]
    name = value if axis == "suite" else ""
    if axis in prefixes:
        name = group_name(suite or "medtasks", prefixes[axis], value)
    if name not in tasks.groups:
        return Group(axis, value, suite, "", ids, (ids,))
    return Group(axis, value, suite, name, ids, tuple(tuple(part) for part in tasks.parts(name)))


# ---------------------------------------------------------------------- scores


def group_scores(
    entry: Entry, strategy: str, groups: Sequence[Group], draws: Mapping[str, Array]
) -> list[GroupScore]:
    """An entry's scores in the groups in which it has finished tasks, or in which a paper prints one.

    Args:
        entry: with its experiments.
        strategy: of them.
        groups: of interest.
        draws: task -> its score on each resample, (resamples,).
    """
    done = {item.dataset.id: item for item in entry.experiments.values() if item.strategy == strategy}
    scores = {name: item.score for name, item in done.items() if item.score is not None}
    shown = [group for group in groups if any(name in done for name in group.datasets)]
    weights = _weights(shown, [scores] * len(shown), list(scores))
    values = weights @ np.array(list(scores.values()), dtype=float)
    limits = _limits(weights, [draws.get(done[name].task) for name in scores])
    rows = [
        _row(entry, strategy, group, [done[name] for name in group.datasets if name in done], value, *ends)
        for group, value, ends in zip(shown, values.tolist(), limits, strict=True)
    ]
    printed = {group: entry.groups.get(group.name + SUFFIX[strategy]) for group in groups if group.name}
    return [
        *rows,
        *(
            GroupScore(entry, strategy, group, sample=False, score=score)
            for group, score in printed.items()
            if score is not None
        ),
    ]


def _row(
    entry: Entry,
    strategy: str,
    group: Group,
    members: Sequence[Experiment],
    value: float,
    low: float | None,
    high: float | None,
) -> GroupScore:
    n = sum(item.score is not None and item.dataset.id in group.counted for item in members)
    shares = [item.share_cut("answers_cut") for item in members]
    return GroupScore(
        entry,
        strategy,
        group,
        sample=members[0].sample,
        score=round(value, _DIGITS) if n else None,
        low=low,
        high=high,
        valid=mean(item.metrics["valid"] for item in members if "valid" in item.metrics),
        cut=mean(share for share in shares if share is not None),
        scored=n,
        documents=sum(item.n for item in members),
    )


def _weights(
    groups: Sequence[Group], scored: Sequence[Collection[str]], names: Sequence[str]
) -> Array:
    """(groups, names): the weight of each dataset in each group's score, where these have one."""
    place = {name: column for column, name in enumerate(names)}
    matrix = np.zeros((len(groups), len(names)))
    for row, group, known in zip(matrix, groups, scored, strict=True):
        for name, weight in group.weights(known).items():
            row[place[name]] = weight
    return matrix


def _limits(weights: Array, draws: Sequence[Array | None]) -> list[tuple[float | None, float | None]]:
    """Ends of the intervals of weighted means; None where a task that counts was not resampled."""
    limits: list[tuple[float | None, float | None]] = [(None, None)] * len(weights)
    has = np.array([values is not None for values in draws], dtype=bool)
    whole = np.flatnonzero(weights.any(axis=1) & ~weights[:, ~has].any(axis=1))
    if len(whole):
        resampled = weights[whole][:, has] @ np.stack([values for values in draws if values is not None])
        ends = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
        for place, low, high in zip(whole, *ends, strict=True):
            limits[place] = (round(float(low), _DIGITS), round(float(high), _DIGITS))
    return limits


# ---------------------------------------------------------------------- ranks


def ranked(rows: Sequence[GroupScore]) -> list[GroupScore]:
    """The same with `rank` and `of`: synthetic rows among themselves, strategies each for itself."""
    families: dict[tuple[str, bool], list[int]] = {}
    for place, row in enumerate(rows):
        families.setdefault((row.strategy, row.sample), []).append(place)
    found = list(rows)
    for (strategy, _), places in families.items():
        for place, rank, of in _ranks(strategy, [rows[place] for place in places], places):
            found[place] = replace(rows[place], rank=rank, of=of)
    return found


def _ranks(
    strategy: str, rows: Sequence[GroupScore], places: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """(place, rank, of) of each row that has a score."""
    entries = {id(row.entry): row.entry for row in rows}
    scored = {key: _scored(entry, strategy) for key, entry in entries.items()}
    names = list(dict.fromkeys(name for item in scored.values() for name in item))
    table = np.array([[scored[key].get(name, np.nan) for name in names] for key in entries]).reshape(
        len(entries), len(names)
    )
    known = [scored[id(row.entry)] for row in rows]
    weights = _weights([row.group for row in rows], known, names)
    lacking = np.isnan(table).astype(float) @ (weights > 0).T.astype(float)
    values = np.where(lacking > 0, np.nan, np.nan_to_num(table) @ weights.T)  # (entries, rows)
    whole: dict[Group, list[float]] = {}  # scores of whole groups, from those that have no tasks
    for row in rows:
        if row.scored is None and row.score is not None:
            whole.setdefault(row.group, []).append(row.score)
    complete: dict[Group, list[float]] = {}
    for row in rows:
        if row.scored == row.group.n_tasks and row.score is not None:
            complete.setdefault(row.group, []).append(row.score)
    for row, place, column in zip(rows, places, values.T, strict=True):
        if row.score is None:
            continue
        if row.scored is None:
            rivals = np.array([*whole[row.group], *complete.get(row.group, [])])
        else:
            rivals = column[~np.isnan(column)]
            if row.scored == row.group.n_tasks:
                rivals = np.append(rivals, whole.get(row.group, []))
        yield place, 1 + int((rivals > row.score + 10**-_DIGITS).sum()), len(rivals)


def _scored(entry: Entry, strategy: str) -> dict[str, float]:
    return {
        item.dataset.id: item.score
        for item in entry.experiments.values()
        if item.strategy == strategy and item.score is not None
    }
