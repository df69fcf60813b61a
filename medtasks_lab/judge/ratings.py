"""Clinicians' ratings from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import write_text
from medtasks_ext.csvfile import csv_text, read_sheet
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.judge.cases import response_hash
from medtasks_ext.runs.folder import RunFolder

if TYPE_CHECKING:
    from medtasks_ext.judge.cases import Case, JudgedTask

COLUMNS = ("task", "document", "rater", "axis", "score")
_KEPT = (*COLUMNS, "response")

#: (run folder, task, document) -> rater -> axis -> score
Ratings = dict[tuple[str, str, str], dict[str, dict[str, float]]]


def read_ratings(path: Path, runs: Mapping[str, Sequence[JudgedTask]]) -> Ratings:
    """Read ratings and check them against what was judged.

    Args:
        path: CSV with the columns task, document, rater, axis, score, and run where several are judged;
            with `response` (`response_hash` of judgements), ratings of another answer are refused.
        runs: run folder as given -> its judged tasks.

    Raises:
        MedtasksError: an unknown run, task, document or axis, a score off the scale, a rating given
            twice or not on all axes. All faults of one kind come in one message.
    """
    wanted = (*COLUMNS, "run") if len(runs) > 1 else COLUMNS
    remedy = f"give ratings as a CSV with the columns {', '.join(wanted)}"
    rows = list(read_sheet(path, wanted, remedy=remedy))
    known = {
        (run, task.name): (task, {case.document: case for case in task.cases})
        for run, tasks in runs.items()
        for task in tasks
    }
    only = next(iter(runs)) if len(runs) == 1 else None
    given = {Path(run).resolve(): run for run in runs}
    ratings: Ratings = {}
    faults: list[str] = []
    for number, row in rows:
        named = (row.get("run") or "").rstrip("/")
        run = only if only and not named else given.get(Path(named).resolve(), named)
        place = (run, row["task"], row["document"])
        task, cases = known.get((run, row["task"]), (None, {}))
        if fault := _fault(row, run, runs, task, cases):
            faults.append(f"line {number}: {fault}")
        elif row["axis"] in ratings.setdefault(place, {}).setdefault(row["rater"], {}):
            faults.append(f"line {number}: {row['rater']} rates {row['axis']} of {row['document']} twice")
        else:
            ratings[place][row["rater"]][row["axis"]] = float(row["score"])
    if not faults:
        faults = [
            f"{rater} does not rate all axes of {document} of {name}"
            for (run, name, document), by_rater in ratings.items()
            for rater, axes in by_rater.items()
            if len(axes) < len(known[run, name][0].rubric.axes)
        ]
    if faults or not ratings:
        raise MedtasksError(
            some(faults, 3, "; ") or "no ratings in it",
            where=path,
            remedy="documents are named as in RUN/samples_TASK.jsonl (id, or id#trial); mend the rows",
        )
    return ratings


def keep_ratings(ratings: Ratings, runs: Mapping[str, Sequence[JudgedTask]]) -> None:
    """Write each run's ratings beside its judgements: the next call compares with them without being told."""
    for run, tasks in runs.items():
        hashes = {(task.name, case.document): response_hash(case) for task in tasks for case in task.cases}
        lines = [
            (task, document, rater, axis, f"{score:g}", hashes[task, document])
            for (name, task, document), by_rater in ratings.items()
            if name == run
            for rater, axes in by_rater.items()
            for axis, score in axes.items()
        ]
        if lines:
            write_text(RunFolder(Path(run)).ratings_file, csv_text([_KEPT, *lines]))


def kept_ratings(runs: Mapping[str, Sequence[JudgedTask]]) -> tuple[Ratings, int]:
    """What `keep_ratings` wrote of the tasks at hand, and how many rated answers are others now."""
    ratings: Ratings = {}
    changed = set()
    for run, tasks in runs.items():
        path = RunFolder(Path(run)).ratings_file
        if not path.is_file():
            continue
        hashes = {(task.name, case.document): response_hash(case) for task in tasks for case in task.cases}
        chosen = {task.name for task in tasks}
        for _, row in read_sheet(path, _KEPT, remedy="give the ratings again: --ratings FILE"):
            place = (row["task"], row["document"])
            if hashes.get(place) == row["response"]:
                by_rater = ratings.setdefault((run, *place), {})
                by_rater.setdefault(row["rater"], {})[row["axis"]] = float(row["score"])
            elif row["task"] in chosen:
                changed.add((run, *place))
    return ratings, len(changed)


def _fault(
    row: Mapping[str, str | None],
    run: str,
    runs: Mapping[str, Sequence[JudgedTask]],
    task: JudgedTask | None,
    cases: Mapping[str, Case],
) -> str:
    if run not in runs:
        return f"run {run!r} is not among those given"
    if task is None:
        return f"task {row['task']!r} is not judged in this run"
    case = cases.get(row["document"] or "")
    if case is None:
        return f"no answer to document {row['document']!r} is in this run"
    if row.get("response") and row["response"] != response_hash(case):
        return f"the answer to {row['document']} is another one than was rated"
    if task.rubric.judging.points:
        return f"{task.name} has scoring points in place of axes (`medtasks human export --kind points`)"
    if row["axis"] not in task.rubric.axes:
        return f"unknown axis {row['axis']!r} (axes: {', '.join(task.rubric.axes)})"
    if not row["rater"]:
        return "no rater"
    low, high = task.rubric.protocol.scale
    try:
        on_scale = low <= float(row["score"] or "") <= high
    except ValueError:
        on_scale = False
    return "" if on_scale else f"score {row['score']!r} is not on the scale {low:g} to {high:g}"
