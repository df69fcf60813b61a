"""Rolling task scores up to groups: a plain mean over tasks, each task counting once.

This is the convention that reproduces the published averages of BRIDGE (Results, Table S3), where a
task in several specialties counts fully in each. MLB's overall is the mean over its dimensions, and
ClinicBench's scenario averages leave datasets out: `Registry.parts` says which tasks count how.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.registry.strategies import suffix_of
from medtasks_ext.results.drawn import Nearness, nearness
from medtasks_ext.stats.intervals import Interval, of_tasks

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.runs.records import EstimateRecord


@dataclass(frozen=True)
class Row:
    """One line of a roll-up."""

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

    @property
    def partial(self) -> bool:
        """Whether tasks of the group are missing from the score."""
        return 0 < self.n_scored < self.n_tasks


def roll_up(
    name: str,
    tasks: Sequence[str],
    metrics: Mapping[str, Mapping[str, float]],
    sizes: Mapping[str, int],
    intervals: Mapping[str, Interval] | None = None,
    parts: Sequence[Sequence[str]] | None = None,
    estimates: Mapping[str, EstimateRecord] | None = None,
) -> Row:
    """The row of a group.

    Args:
        tasks: all tasks that it holds.
        metrics: task -> metric -> value, for finished tasks.
        sizes: task -> number of documents, for finished tasks.
        intervals: task -> the interval of its score.
        parts: the tasks behind the score, where it is a mean over parts, each the mean of its tasks;
            other tasks of the group are run and shown without counting. An empty list: there is no score.
        estimates: task -> how near its score is, of those whose documents were drawn.
    """
    counted = counted_parts(tasks, {task for task, item in metrics.items() if "score" in item}, parts)
    done = [metrics[task] for task in tasks if task in metrics]
    means = [mean(metrics[task]["score"] for task in part) for part in counted]
    scored = [task for part in counted for task in part]
    [weights] = weights_in([(tasks, parts)], set(scored))
    known = intervals or {}
    return Row(
        name=name,
        score=mean(value for value in means if value is not None),
        valid=mean([item["valid"] for item in done if "valid" in item]),
        n_scored=len(scored) if parts is None or parts else sum("score" in item for item in done),
        n_tasks=sum(map(len, parts or [tasks])),
        n_documents=sum(sizes.get(task, 0) for task in tasks),
        sample=any("SAMPLE_DATA" in item for item in done),
        interval=of_tasks(
            [*weights.values()],
            [metrics[task]["score"] for task in weights],
            [known.get(task) for task in weights],
            [sizes.get(task, 1) for task in weights],
        ),
        estimate=nearness(
            [*weights.values()],
            [metrics[task]["score"] for task in weights],
            [(estimates or {}).get(task) for task in weights],
            [sizes.get(task, 0) for task in weights],
        ),
    )


def counted_parts(
    tasks: Sequence[str], scored: Collection[str], parts: Sequence[Sequence[str]] | None = None
) -> list[list[str]]:
    """The scored tasks that a group's score is taken over: a mean over parts, each the mean of its tasks.

    Args:
        scored: tasks that have a score.
        parts: the tasks behind the score, where it is a mean over parts; an empty list where there is none.
    """
    counted = [[task for task in part if task in scored] for part in ([tasks] if parts is None else parts)]
    return [part for part in counted if part]


def weights_in(
    groups: Iterable[tuple[Sequence[str], Sequence[Sequence[str]] | None]], scored: Collection[str]
) -> list[dict[str, float]]:
    """For each group, task -> its weight in the score.

    Args:
        groups: tasks and parts of each, as `counted_parts` takes them.
        scored: tasks that have a score.
    """
    found = []
    for tasks, parts in groups:
        counted = counted_parts(tasks, scored, parts)
        weights: dict[str, float] = {}
        for part in counted:
            for name in part:  # a task may be in several
                weights[name] = weights.get(name, 0.0) + 1 / len(counted) / len(part)
        found.append(weights)
    return found


def group_row(entry: Entry, tasks: Registry, group: str, strategy: str = "zero_shot") -> Row:
    """A group's line for one entry, with its interval where all its scored tasks can be resampled.

    Args:
        entry: a model's experiments, or its published scores.
        group: name of a task, tag or group, without the suffix of a strategy.
    """

    def asked(names: Iterable[str]) -> list[str]:
        datasets = [tasks.tasks[name][0] for name in names]
        return [dataset.task(strategy) for dataset in datasets if dataset.has(strategy)]

    leaves, parts = asked(tasks.leaves(group)), [asked(part) for part in tasks.parts(group)]
    group += suffix_of(strategy)
    if group in entry.groups:
        n = sum(map(len, parts))
        return Row(group, entry.groups[group], None, n, n, 0, sample=False)
    found = {name: entry.experiments[name] for name in leaves if name in entry.experiments}
    return roll_up(
        group,
        leaves,
        {name: item.metrics for name, item in found.items()},
        {name: item.n for name, item in found.items()},
        {name: item.intervals["score"] for name, item in found.items() if "score" in item.intervals},
        parts,
        {name: item.estimate for name, item in found.items() if item.estimate},
    )


def mean(values: Iterable[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    values = list(values)
    return sum(values) / len(values) if values else None
