"""Clinicians' ratings from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.atomic import write_text
from medtasks_ext.csvfile import csv_text, read_sheet
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.judge.cases import response_hash
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    from medtasks_ext.judge.cases import JudgedTask

COLUMNS = ("task", "document", "rater", "axis", "score")
_KEPT = (*COLUMNS, "response")
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
        return f"{task.name} has scoring points in place of axes (`medtasks human export --kind points`)"
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


def keep_ratings(ratings: Ratings, runs: Mapping[str, Sequence[JudgedTask]]) -> None:
    """The next call compares with them without being told."""
    for run, tasks in runs.items():
        hashes = {(task.name, case.document): response_hash(case) for task in tasks for case in task.cases}
        lines = [
            (task, document, rater, axis, f"{score:g}", hashes[task, document])
            for (name, task, document), by_rater in ratings.items()
            for rater, axes in by_rater.items()
            for axis, score in axes.items()
            if name == run
        ]
        if lines:
            write_text(RunFolder(Path(run)).ratings_file, csv_text([_KEPT, *lines]))


def kept_ratings(runs: Mapping[str, Sequence[JudgedTask]]) -> tuple[Ratings, int]:
    """What `keep_ratings` wrote of the tasks at hand, and how many rated answers are others now."""
    ratings: Ratings = {}
    changed = set()
    for run, tasks in runs.items():
        path, names = RunFolder(Path(run)).ratings_file, {task.name for task in tasks}
        hashes = {(task.name, case.document): response_hash(case) for task in tasks for case in task.cases}
        remedy = "give the ratings again: --ratings FILE"
        for _, row in read_sheet(path, _KEPT, remedy=remedy) if path.is_file() else ():
            place = (row["task"], row["document"])
            if hashes.get(place) == row["response"]:
                by_rater = ratings.setdefault((run, *place), {})
                by_rater.setdefault(row["rater"], {})[row["axis"]] = float(row["score"])
            elif row["task"] in names:
                changed.add((run, *place))
    return ratings, len(changed)
