"""A submission as a line of a leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.stats.bootstrap import Interval
from medtasks_lab.submissions.record import RECORD, Submission

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_lab.submissions.record import TaskResult


def submission_folders(root: Path) -> list[Path]:
    """The folders `ORG/MODEL/DATE` below a folder that hold a submission, in order."""
    return sorted(file.parent for file in root.glob(f"*/*/*/{RECORD}"))


def submitted_entry(record: Submission, folder: Path, tasks: Registry) -> Entry:
    """A submission as results are read; tasks that the registry does not know are left out."""
    experiments = {
        name: _experiment(name, item, record, tasks)
        for name, item in record.tasks.items()
        if tasks.asked(name) is not None
    }
    entry = Entry(
        model=record.model,
        label="",
        kind="medtasks",
        settings=record.settings,
        experiments={},
        folders=(folder,),
        manifest={"versions": record.versions, "started": record.started},
        details={name: str(said) for name, said in record.about.model_dump(exclude_none=True).items()},
    )
    # their conditions are those that the run recorded, and not what an entry could tell from a part of these
    entry.experiments = experiments
    return entry


def _experiment(name: str, item: TaskResult, record: Submission, tasks: Registry) -> Experiment:
    known = tasks.asked(name)
    assert known is not None  # the caller looked
    dataset, strategy = known
    measured = {"score": item.score, "valid": item.valid, "unclosed_reasoning": item.unclosed}
    metrics = {metric: value for metric, value in measured.items() if value is not None}
    conditions = item.asked
    if conditions.jury:
        metrics["judged"] = item.judged
    return Experiment(
        task=name,
        dataset=dataset,
        strategy=strategy,
        version=item.version,
        metrics=metrics,
        intervals={"score": Interval(item.spread.low, item.spread.high)} if item.spread else {},
        n=item.n,
        settings={
            "version": item.version.partition("-")[0],
            "prompt": f"{conditions.wording or 'unknown'} {conditions.prompt or ''}".strip(),
            "data": item.rows.origin + (f" @ {conditions.revision}" if conditions.revision else ""),
            "rows": conditions.rows or "",
            "rebuilt": "yes" if item.rows.rebuilt else "no",
            "documents": conditions.documents or "all",
            **(
                {"jury": "; ".join(filter(None, (conditions.jury, conditions.protocol)))}
                if conditions.jury
                else {}
            ),
        },
        loaded={
            "origin": item.rows.origin,
            "rebuilt": item.rows.rebuilt,
            "n_test": item.rows.here,
            "n_held_out": item.rows.held_out,
            "n_dropped": item.rows.dropped,
        },
        cut=dict(item.cut),
        tokens=None if item.tokens is None else dict(item.tokens),  # type: ignore[arg-type]
        recorded={"rows": {"n_of_suite": item.rows.of_suite}},
        asked=conditions,
    )
