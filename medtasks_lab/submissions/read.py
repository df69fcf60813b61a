"""A submission as a line of a leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.stats.intervals import Interval, of_earlier
from medtasks_lab.submissions.record import RECORD, Submission, TaskResult

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_lab.submissions.record import TaskResult


def submission_folders(root: Path) -> list[Path]:
    """The folders `ORG/MODEL/DATE` below a folder that hold a submission, in order."""
    return sorted(file.parent for file in root.glob(f"*/*/*/{RECORD}"))


def submitted_entry(record: Submission, folder: Path, tasks: Registry) -> Entry:
    """A submission as results are read; tasks that the registry does not know are left out."""
    experiments = {
        name: _experiment(name, item, tasks)
        for name, item in record.tasks.items()
        if tasks.asked(name) is not None
    }
    return Entry(
        model=record.model,
        label="",
        kind="medtasks",
        conditions=record.run,
        experiments=experiments,
        folders=(folder,),
        manifest={"versions": record.versions, "started": record.started},
        details={name: str(said) for name, said in record.about.model_dump(exclude_none=True).items()},
    )


def _experiment(name: str, item: TaskResult, tasks: Registry) -> Experiment:
    known = tasks.asked(name)
    assert known is not None  # the caller looked
    dataset, _ = known
    measured = {"score": item.score, "valid": item.valid, "unclosed_reasoning": item.unclosed}
    metrics = {metric: value for metric, value in measured.items() if value is not None}
    if item.conditions.observed.judged is not None:
        metrics["judged"] = item.conditions.observed.judged
    return Experiment(
        task=name,
        dataset=dataset,
        conditions=item.conditions,
        metrics=metrics,
        intervals=_intervals(item),
        n=item.n,
        tokens=None if item.tokens is None else dict(item.tokens),  # type: ignore[arg-type]
    )


def _intervals(item: TaskResult) -> dict[str, Interval]:
    """That of the score; the percentiles of an earlier version become an interval of today."""
    if item.spread is None or item.score is None:
        return {}
    return {"score": of_earlier(item.score, Interval(item.spread.low, item.spread.high), item.n)}
