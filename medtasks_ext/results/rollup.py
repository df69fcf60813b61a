"""Results over drawn documents, which stand for those that were not drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.runs.records import EstimateRecord
from medtasks_ext.stats.bootstrap import IntervalRecord, interval_record, intervals_of_record
from medtasks_ext.stats.intervals import Interval, mean_interval, sample_sizes
from medtasks_ext.stats.sampling import Estimate, estimated, half_width, interval_of, weighted
from medtasks_ext.stats.statistic import statistic_of, unit_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.runs.manifest import Drawn
    from medtasks_ext.runs.records import TaskRecord
    from medtasks_ext.stats.statistic import Array, Statistic


@dataclass(frozen=True)
class Nearness:
    half: float  # of the 95 % interval
    asked: int  # documents
    of: int

    @property
    def words(self) -> str:
        return f"an estimate ± {self.half:.3f}, {self.asked:,} of {self.of:,} documents"


def nearness(
    weights: Sequence[float],
    scores: Sequence[float],
    records: Sequence[EstimateRecord | None],
    sizes: Sequence[int],
) -> Nearness | None:
    """How near a weighted mean, of weights that add up to 1, is to that over all documents; None where all
    were asked.
    """
    if not any(records):
        return None
    parts = [
        Estimate(score, record["variance"], record["variance"], record["degrees"])
        if record
        else Estimate(score, 0.0, 0.0, 1.0)
        for score, record in zip(scores, records, strict=True)
    ]
    estimate = weighted(weights, parts)
    of = [record["of"] if record else size for record, size in zip(records, sizes, strict=True)]
    return Nearness(half_width(estimate), sum(sizes), sum(of))


def _estimate_of(
    samples: Sequence[Mapping[str, Any]], metric: str, statistic: Statistic, units: int
) -> Estimate | None:
    """None where no document has the metric; one that lacks it counts nothing in its unit."""
    there = [sample for sample in samples if metric in sample]
    if not there:
        return None
    rows = {unit: row for row, unit in enumerate(dict.fromkeys(map(unit_of, samples)))}
    counts = statistic.counts([sample[metric] for sample in there])
    dense = counts if isinstance(counts, np.ndarray) else counts.toarray()
    sums = np.zeros((len(rows), dense.shape[1]))
    np.add.at(sums, [rows[unit_of(sample)] for sample in there], dense)
    return estimated(sums, units, statistic.value)


def drawn_results(
    samples: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, float],
    aggregations: Mapping[str, Callable[..., Any]],
    drawn: Drawn,
) -> tuple[dict[str, float], dict[str, IntervalRecord], EstimateRecord | None]:
    """Metrics of all documents from those that were drawn, their intervals, and how near the score is.

    Args:
        metrics: as if the drawn documents were all; one that no count gives is left out.
    """
    values: dict[str, float] = {}
    intervals: dict[str, IntervalRecord] = {}
    record: EstimateRecord | None = None
    for metric in metrics:
        statistic = statistic_of(aggregations[metric]) if metric in aggregations else None
        found = _estimate_of(samples, metric, statistic, drawn.units) if statistic else None
        if found is None:
            continue
        values[metric] = found.value
        intervals[metric] = interval_record(interval_of(found))
        if metric == "score":
            record = EstimateRecord(
                variance=found.variance, degrees=found.degrees, asked=len(samples), of=drawn.documents
            )
    return values, intervals, record


@dataclass(kw_only=True)
class Finished:
    """A finished task, as far as groups count it."""

    metrics: dict[str, float]  # metric -> value, without NaN; no `score` without gold or before judging
    intervals: dict[str, Interval]  # metric -> 95 % interval, where there is one
    n: int  # documents
    estimate: EstimateRecord | None = None  # how near the score is, where documents were drawn
    #: what guessing scores: an answer drawn evenly from those that each question lists; None where none does
    chance: float | None = None
    ceiling: float | None = None  # what perfect answers score; None where nothing says it


def finished_tasks(registry: Registry, records: Mapping[str, TaskRecord]) -> dict[str, Finished]:
    """What a run recorded of its tasks."""
    return {
        name: Finished(
            metrics=item["metrics"],
            intervals=intervals_of_record(item.get("intervals", {})),
            n=item["n"],
            estimate=item.get("estimate"),
            chance=item.get("chance"),
            ceiling=ceiling_of(registry.known(name)[0], item.get("highest")),
        )
        for name, item in records.items()
    }


def ceiling_of(dataset: Dataset, highest: float | None) -> float | None:
    """What perfect answers score: by the suite's own reading, where that was counted, else as declared."""
    declared = dataset.metadata.oracle_max
    return highest if highest is not None or isinstance(declared, str) else declared


@dataclass(frozen=True, eq=False)
class Members:
    """What a group's score is taken over."""

    name: str
    datasets: tuple[str, ...]
    # those behind its score, a mean over parts, each the mean of its tasks; none where its tasks have no
    # mean. Others are run and shown without counting.
    parts: tuple[tuple[str, ...], ...]

    @cached_property
    def counted(self) -> frozenset[str]:
        return frozenset(name for part in self.parts or [self.datasets] for name in part)

    @cached_property
    def n_tasks(self) -> int:
        return len(self.counted)

    def weights(self, scored: Collection[str]) -> dict[str, float]:
        """Dataset -> its weight in the group's score, where these datasets have one."""
        weights: dict[str, float] = {}
        parts = self.scored_parts(scored)
        for part in parts:
            for name in part:  # a task may be in several
                weights[name] = weights.get(name, 0.0) + 1 / len(parts) / len(part)
        return weights

    def scored_parts(self, scored: Collection[str]) -> tuple[tuple[str, ...], ...]:
        """Of each part the datasets that have a score; parts without any are left out."""
        parts = (tuple(name for name in part if name in scored) for part in self.parts)
        return tuple(part for part in parts if part)


def as_parts(groups: Iterable[Members]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(name for name in group.datasets if name in group.counted) for group in groups)


@dataclass(frozen=True)
class Row:
    name: str  # task or group
    score: float | None  # mean score of its scored tasks, 0-1; None when there is none
    valid: float | None  # mean share of readable answers of its finished tasks
    n_scored: int  # finished tasks with a score
    n_tasks: int  # tasks that the group's score is taken over
    n_documents: int  # documents of its finished tasks
    sample: bool  # whether any of it comes from synthetic rows
    #: 95 % interval of the score; None where a scored task has none
    interval: Interval | None = None
    #: how near the score is to that of all documents; None where all were asked
    estimate: Nearness | None = None
    #: what guessing scores, and what perfect answers do, each weighted as the score is; None where a scored
    #: task has none
    chance: float | None = None
    ceiling: float | None = None

    @property
    def partial(self) -> bool:
        return 0 < self.n_scored < self.n_tasks


@dataclass(frozen=True)
class Layout:
    """Which finished tasks are in which groups, and how much they count there."""

    members: Array  # (groups, tasks) 1 where the task is in the group
    counted: Array  # (groups, tasks) 1 where the group's score is taken over it
    weights: Array  # (ways, tasks) in the score; groups that are scored alike share a row
    parts: tuple[tuple[tuple[int, ...], ...], ...]  # for each way the tasks of each part, by their places
    way: tuple[int, ...]  # for each group its row of `weights`

    def means(self, values: Sequence[float | None]) -> list[float | None]:
        """For each group the mean of a figure over the tasks that have it; None where there is none."""
        known = self.members * [value is not None for value in values]
        sums, sizes = known @ [value or 0.0 for value in values], known.sum(axis=1)
        pairs = zip(sums.tolist(), sizes.tolist(), strict=True)
        return [total / size if size else None for total, size in pairs]

    def scores(self, values: Sequence[float]) -> list[float | None]:
        """For each way the mean over its parts of the means of their tasks; None where no task scores."""
        return [mean(mean(values[place] for place in part) for part in parts) for parts in self.parts]


@lru_cache(maxsize=64)
def layout_of(groups: tuple[Members, ...], names: tuple[str, ...], scored: frozenset[str]) -> Layout:
    """Kept, since many entries have the same finished tasks."""
    place = {name: column for column, name in enumerate(names)}
    ways: dict[tuple[tuple[str, ...], ...], int] = {}
    way = tuple(ways.setdefault(group.scored_parts(scored), len(ways)) for group in groups)
    return Layout(
        matrix([dict.fromkeys(group.datasets, 1.0) for group in groups], names),
        matrix([dict.fromkeys(group.counted, 1.0) for group in groups], names),
        matrix([Members("", (), parts).weights(scored) for parts in ways], names),
        tuple(tuple(tuple(place[name] for name in part) for part in parts) for parts in ways),
        way,
    )


def matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    place, values = {name: column for column, name in enumerate(names)}, np.zeros((len(rows), len(names)))
    for target, row in zip(values, rows, strict=True):
        columns = [place[name] for name in row if name in place]
        target[columns] = [value for name, value in row.items() if name in place]
    return values


def roll_up(groups: tuple[Members, ...], finished: Mapping[str, Finished]) -> tuple[Layout, list[Row]]:
    names, items = tuple(finished), list(finished.values())
    has = np.array(["score" in item.metrics for item in items], dtype=bool)
    layout = layout_of(
        groups, names, frozenset(name for name, there in zip(names, has, strict=True) if there)
    )
    values = [item.metrics.get("score", 0.0) for item in items]
    scores, intervals = layout.scores(values), _intervals(layout.weights, values, items)
    valid = layout.means([item.metrics.get("valid") for item in items])
    documents = layout.members @ np.array([item.n for item in items], dtype=float)
    scored = layout.counted @ has.astype(float)
    sample = layout.members @ np.array(["SAMPLE_DATA" in item.metrics for item in items], dtype=float)
    chances, ceilings = (
        _wholly_known(layout.weights, [getattr(item, name) for item in items])
        for name in ("chance", "ceiling")
    )
    drawn = any(item.estimate for item in items)
    estimates = [_nearness(weights, values, items) if drawn else None for weights in layout.weights]
    return layout, [
        Row(
            name=group.name,
            score=scores[way],
            valid=valid[place],
            n_scored=int(scored[place]),
            n_tasks=group.n_tasks,
            n_documents=int(documents[place]),
            sample=bool(sample[place]),
            interval=intervals[way],
            estimate=estimates[way],
            chance=chances[way],
            ceiling=ceilings[way],
        )
        for place, (group, way) in enumerate(zip(groups, layout.way, strict=True))
    ]


def roll_up_one(group: Members, finished: Mapping[str, Finished]) -> Row:
    names = (*(name for part in group.parts for name in part), *group.datasets)
    _, [row] = roll_up((group,), {name: finished[name] for name in names if name in finished})
    return row


def asked_rows(registry: Registry, names: Iterable[str], finished: Mapping[str, Finished]) -> list[Row]:
    """What was asked for, a row for each name of a task, tag or group, also of groups across suites.

    `names`: as `--tasks` said them; those that the registry does not know are left out. `finished`: name of
    a task, as it was asked, -> its result.
    """
    leaves, parts = registry.leaves, registry.parts
    return [
        roll_up_one(Members(name, tuple(leaves(name)), tuple(map(tuple, parts(name)))), finished)
        for name in dict.fromkeys(names)
        if registry.knows(name)
    ]


def _wholly_known(weights: Array, values: Sequence[float | None]) -> list[float | None]:
    """Weighted means, (ways,); None where a task that counts has no value, or none counts."""
    known = np.array([np.nan if value is None else value for value in values])
    means = np.where(weights > 0, weights * known, 0.0).sum(axis=1)
    means[~weights.any(axis=1)] = np.nan
    return [None if np.isnan(value) else value for value in means.tolist()]


def _intervals(weights: Array, scores: Sequence[float], items: Sequence[Finished]) -> list[Interval | None]:
    """Intervals of weighted means, (ways,); None where a task has none."""
    intervals: list[Interval | None] = [None] * len(weights)
    known = [item.intervals.get("score") for item in items]
    has = np.array([interval is not None for interval in known], dtype=bool)
    whole = np.flatnonzero(weights.any(axis=1) & ~weights[:, ~has].any(axis=1))
    counts = np.flatnonzero(has & weights[whole].any(axis=0)).tolist()
    if len(whole):
        own = [interval for place in counts if (interval := known[place]) is not None]
        values = [scores[place] for place in counts]
        lows, highs = [one.low for one in own], [one.high for one in own]
        sizes = sample_sizes(values, lows, highs, [max(items[place].n, 1) for place in counts])
        chosen = weights[np.ix_(whole, counts)]
        ends = np.stack(mean_interval(chosen, values, sizes), axis=1)
        roughs = (chosen > 0) @ np.array([one.rough for one in own], dtype=float) > 0
        for row, (low, high), rough in zip(whole.tolist(), ends.tolist(), roughs.tolist(), strict=True):
            intervals[row] = Interval(low, high, rough)
    return intervals


def _nearness(weights: Array, scores: Sequence[float], items: Sequence[Finished]) -> Nearness | None:
    there = np.flatnonzero(weights).tolist()
    return nearness(
        weights[there].tolist(),
        [scores[place] for place in there],
        [items[place].estimate for place in there],
        [items[place].n for place in there],
    )


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
