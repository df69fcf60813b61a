"""Results of groups from those of their tasks, also of drawn documents, which stand for the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.runs.records import EstimateRecord
from medtasks_ext.stats.bootstrap import IntervalRecord, interval_record, intervals_of_record
from medtasks_ext.stats.intervals import WILSON_OF_UNITS, Interval, mean_interval, sample_sizes
from medtasks_ext.stats.sampling import Estimate, estimated, half_width, interval_of, weighted
from medtasks_ext.stats.statistic import Counts, statistic_of, unit_of

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.runs.manifest import Drawn
    from medtasks_ext.runs.records import TaskRecord
    from medtasks_ext.stats.statistic import Array


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
    whole = EstimateRecord(variance=0.0, degrees=1.0, asked=0, of=0)
    known = [record or whole for record in records]
    parts = [
        Estimate(score, record["variance"], record["variance"], record["degrees"])
        for score, record in zip(scores, known, strict=True)
    ]
    of = sum(record["of"] or size for record, size in zip(known, sizes, strict=True))
    return Nearness(half_width(weighted(weights, parts)), sum(sizes), of)


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
    rows = {unit: row for row, unit in enumerate(dict.fromkeys(map(unit_of, samples)))}
    for metric in metrics:
        statistic = statistic_of(aggregations[metric]) if metric in aggregations else None
        there = [sample for sample in samples if metric in sample]
        if statistic is None or not there:
            continue
        counts = Counts(statistic.counts([sample[metric] for sample in there]), {}).dense
        sums = np.zeros((len(rows), counts.shape[1]))  # a document that lacks the metric counts nothing
        np.add.at(sums, [rows[unit_of(sample)] for sample in there], counts)
        found = estimated(sums, drawn.units, statistic.value)
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
        parts = [some for part in self.parts if (some := [name for name in part if name in scored])]
        for part in parts:
            for name in part:  # a task may be in several
                weights[name] = weights.get(name, 0.0) + 1 / len(parts) / len(part)
        return weights


def as_parts(groups: Iterable[Members]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(name for name in group.datasets if name in group.counted) for group in groups)


@dataclass(frozen=True)
class Row:
    name: str  # task or group
    n_tasks: int  # tasks that the group's score is taken over
    score: float | None  # mean score of its scored tasks, 0-1; None when there is none
    valid: float | None  # mean share of readable answers of its finished tasks
    n_scored: int  # finished tasks with a score
    n_documents: int  # documents of its finished tasks
    sample: bool  # whether any of it comes from synthetic rows
    interval: Interval | None  # 95 % interval of the score; None where a scored task has none
    estimate: Nearness | None  # how near the score is to that of all documents; None where all were asked
    #: what guessing scores, and what perfect answers do, weighted as the score; None where a task has none
    chance: float | None
    ceiling: float | None

    @property
    def partial(self) -> bool:
        return 0 < self.n_scored < self.n_tasks


@dataclass(frozen=True)
class Layout:
    """Which finished tasks are in which groups, and how much they count there; (groups, tasks) each."""

    members: Array  # 1 where the task is in the group
    counted: Array  # 1 where the group's score is taken over it
    weights: Array  # in the score

    def means(self, values: Sequence[float | None]) -> list[float | None]:
        """For each group the mean of a figure over the tasks that have it; None where there is none."""
        known = self.members * [value is not None for value in values]
        sizes = known.sum(axis=1)
        means = known @ [value or 0.0 for value in values] / np.maximum(sizes, 1)
        return [mean if size else None for mean, size in zip(means.tolist(), sizes.tolist(), strict=True)]

    def weighted(self, values: Sequence[float | None]) -> list[float | None]:
        """For each group the weighted mean; None where a task that counts has no value, or none counts."""
        known = np.array([np.nan if value is None else value for value in values])
        means = np.where(self.weights > 0, self.weights * known, 0.0).sum(axis=1)
        means[~self.weights.any(axis=1)] = np.nan
        return [None if np.isnan(value) else value for value in means.tolist()]


@lru_cache(maxsize=64)
def layout_of(groups: tuple[Members, ...], names: tuple[str, ...], scored: frozenset[str]) -> Layout:
    """Kept, since many entries have the same finished tasks."""
    return Layout(
        matrix([dict.fromkeys(group.datasets, 1.0) for group in groups], names),
        matrix([dict.fromkeys(group.counted, 1.0) for group in groups], names),
        matrix([group.weights(scored) for group in groups], names),
    )


def matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    place, values = {name: column for column, name in enumerate(names)}, np.zeros((len(rows), len(names)))
    for target, row in zip(values, rows, strict=True):
        columns = [place[name] for name in row if name in place]
        target[columns] = [value for name, value in row.items() if name in place]
    return values


def roll_up(groups: tuple[Members, ...], finished: Mapping[str, Finished]) -> tuple[Layout, list[Row]]:
    names, items = tuple(finished), list(finished.values())
    scored = [name for name, item in finished.items() if "score" in item.metrics]
    layout = layout_of(groups, names, frozenset(scored))
    values = [item.metrics.get("score", 0.0) for item in items]
    has = np.array(["score" in item.metrics for item in items], dtype=int)
    documents = np.array([item.n for item in items], dtype=int)
    synthetic = np.array(["SAMPLE_DATA" in item.metrics for item in items], dtype=bool)
    drawn = any(item.estimate for item in items)
    columns: dict[str, list[Any]] = {
        "score": layout.weighted(values),
        "valid": layout.means([item.metrics.get("valid") for item in items]),
        "n_scored": (layout.counted @ has).astype(int).tolist(),
        "n_documents": (layout.members @ documents).astype(int).tolist(),
        "sample": (layout.members @ synthetic > 0).tolist(),
        "interval": _intervals(layout.weights, values, items),
        "estimate": [_nearness(own, values, items) if drawn else None for own in layout.weights],
        "chance": layout.weighted([item.chance for item in items]),
        "ceiling": layout.weighted([item.ceiling for item in items]),
    }
    figures = zip(*columns.values(), strict=True)
    return layout, [
        Row(group.name, group.n_tasks, **dict(zip(columns, some, strict=True)))
        for group, some in zip(groups, figures, strict=True)
    ]


@lru_cache(maxsize=512)
def members_of(registry: Registry, name: str) -> Members:
    return Members(name, tuple(registry.leaves(name)), tuple(map(tuple, registry.parts(name))))


def asked_rows(registry: Registry, names: Iterable[str], finished: Mapping[str, Finished]) -> list[Row]:
    """What was asked for, a row for each name of a task, tag or group, also of groups across suites.

    `names`: as `--tasks` said them; those that the registry does not know are left out. `finished`: name of
    a task, as it was asked, -> its result.
    """
    rows = []
    for name in filter(registry.knows, dict.fromkeys(names)):
        group = members_of(registry, name)
        of_group = dict.fromkeys([*(task for part in group.parts for task in part), *group.datasets])
        rows += roll_up((group,), {task: finished[task] for task in of_group if task in finished})[1]
    return rows


def _intervals(weights: Array, scores: Sequence[float], items: Sequence[Finished]) -> list[Interval | None]:
    """Intervals of weighted means, (groups,); None where a task has none."""
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
            intervals[row] = Interval(low, high, rough, WILSON_OF_UNITS)
    return intervals


def _nearness(weights: Array, scores: Sequence[float], items: Sequence[Finished]) -> Nearness | None:
    there = np.flatnonzero(weights).tolist()
    return nearness(
        weights[there].tolist(),
        [scores[place] for place in there],
        [items[place].estimate for place in there],
        [items[place].n for place in there],
    )
