"""Clinicians' ratings from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.judge.cases import response_hash
from medtasks_ext.tables import read_sheet

if TYPE_CHECKING:
    from medtasks_ext.judge.cases import JudgedTask

COLUMNS = ("task", "document", "rater", "axis", "score")
#: (run folder, task, document) -> rater -> axis -> score
Ratings = dict[tuple[str, str, str], dict[str, dict[str, float]]]


def read_ratings(path: Path, runs: Mapping[str, Sequence[JudgedTask]]) -> Ratings:
    """Read ratings, and check them against what was judged; all faults of one kind come in one message.

    Args:
        path: CSV with the columns task, document, rater, axis, score, and run where several are judged; with
            `response` (`response_hash` of judgements), ratings of another answer are refused.
    """
    wanted = (*COLUMNS, "run") if len(runs) > 1 else COLUMNS
    known = {(run, task.name): task for run, tasks in runs.items() for task in tasks}
    given = {Path(run).resolve(): run for run in runs}
    ratings: Ratings = {}
    faults: list[str] = []
    for number, row in read_sheet(path, wanted, remedy=f"the columns are {', '.join(wanted)}"):
        named = (row.get("run") or "").rstrip("/")
        run = next(iter(runs)) if len(runs) == 1 and not named else given.get(Path(named).resolve(), named)
        by_axis = ratings.setdefault((run, row["task"], row["document"]), {}).setdefault(row["rater"], {})
        if fault := _fault(row, run, runs, known.get((run, row["task"]))):
            faults.append(f"line {number}: {fault}")
        elif row["axis"] in by_axis:
            faults.append(f"line {number}: {row['rater']} rates {row['axis']} of {row['document']} twice")
        else:
            by_axis[row["axis"]] = float(row["score"])
    faults = faults or [
        f"{rater} does not rate all axes of {document} of {name}"
        for (run, name, document), by_rater in ratings.items()
        for rater, axes in by_rater.items()
        if len(axes) < len(known[run, name].rubric.axes)
    ]
    if faults or not ratings:
        raise MedtasksError(
            some(faults, 3, "; ") or "no ratings in it",
            where=path,
            remedy="documents are named as in RUN/samples_TASK.jsonl (id, or id#trial); mend the rows",
        )
    return ratings


def _fault(row: Mapping[str, Any], run: str, runs: Mapping[str, Any], task: JudgedTask | None) -> str:
    if run not in runs:
        return f"run {run!r} is not among those given"
    if task is None:
        return f"task {row['task']!r} is not judged in this run"
    case = next((case for case in task.cases if case.document == row["document"]), None)
    if case is None:
        return f"no answer to document {row['document']!r} is in this run"
    if row.get("response") and row["response"] != response_hash(case):
        return f"the answer to {row['document']} is another one than was rated"
    if task.rubric.judging.points:
        return f"{task.name} has scoring points in place of axes (`medtasks study forms --kind points`)"
    if row["axis"] not in task.rubric.axes:
        return f"unknown axis {row['axis']!r} (axes: {', '.join(task.rubric.axes)})"
    low, high = task.rubric.protocol.scale
    try:
        on_scale = low <= float(row["score"] or "") <= high
    except ValueError:
        on_scale = False
    if not on_scale:
        return f"score {row['score']!r} is not on the scale {low:g} to {high:g}"
    return "" if row["rater"] else "no rater"
