"""A jury's scores on the scale of other raters, learned from an anchor set, beside the jury's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, ValidationError

from medtasks_ext.csvfile import read_sheet
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import JsonError, numbered_lines, parse_json, read_json
from medtasks_ext.judge.cases import Case, JudgedTask, judged_tasks, response_hash
from medtasks_ext.results.condition_words import jury_words
from medtasks_ext.results.older_conditions import jury_of
from medtasks_ext.stats.bootstrap import METHOD, interval_record
from medtasks_ext.stats.intervals import Estimated, Interval
from medtasks_ext.strict import Strict, faults_of
from medtasks_lab.judge.calibration import (
    FEWEST_ANCHORS,
    FEWEST_LEVELS,
    Anchors,
    Errors,
    calibrated_score,
    out_of_sample_errors,
)

if TYPE_CHECKING:
    from medtasks_ext.judge.protocol import Protocol
    from medtasks_ext.rows.row import Row
    from medtasks_ext.runner.run import Run


# ----------------------------------------------------------------------
# Anchor sets: answers that a jury has judged and somebody else has rated, too, on the same scale. A file
# holds ids and ratings, and no text: CSV or JSONL, a line for each answer.

COLUMNS = ("task", "document", "response", "rating", "lowest", "highest", "rater")
_REMEDY = "the columns are " + ", ".join(COLUMNS) + " (docs/judges.md)"


class Anchor(Strict):
    """One rated answer."""

    task: str = Field(min_length=1)  # name of the task
    document: str = Field(min_length=1)  # as in RUN/samples_TASK.jsonl
    #: which answer: `response_hash` in RUN/judgements/TASK.jsonl
    response: str = Field(pattern="^[0-9a-f]{16}$")
    rating: float = Field(allow_inf_nan=False)  # mean rating of the answer
    lowest: float = Field(allow_inf_nan=False)  # of the scale
    highest: float = Field(allow_inf_nan=False)  # of the scale
    rater: str = Field(min_length=1)  # whose scale it is, such as the published jury; one for all lines

    @property
    def score(self) -> float:
        """The rating on 0-1."""
        return (self.rating - self.lowest) / (self.highest - self.lowest)


@dataclass(frozen=True)
class AnchorSet:
    """A file of anchors."""

    rater: str  # on whose scale scores are placed
    anchors: Mapping[tuple[str, str, str], Anchor]  # (task, document, response) -> anchor


def read_anchors(path: Path, protocols: Mapping[str, Protocol]) -> AnchorSet:
    """Read an anchor set and check it against the tasks that were judged.

    Args:
        path: `.jsonl`, or CSV.
        protocols: task -> how it is judged.

    Raises:
        MedtasksError: a line is no anchor, is of another task or scale, is off its scale, or rates an answer
            again. All faults come in one message.
    """
    faults: list[str] = []
    anchors: dict[tuple[str, str, str], Anchor] = {}
    for number, row in _rows(path):
        if row.get("rating") == "":  # of a sheet that is filled in part
            continue
        try:
            anchor = Anchor(**row)
        except ValidationError as error:
            faults.append(f"line {number}: " + "; ".join(faults_of(error, "anchor")))
            continue
        if fault := _fault(anchor, protocols):
            faults.append(f"line {number}: {fault}")
        elif (key := (anchor.task, anchor.document, anchor.response)) in anchors:
            faults.append(f"line {number}: the answer is rated twice")
        else:
            anchors[key] = anchor
    raters = sorted({anchor.rater for anchor in anchors.values()})
    if len(raters) > 1:
        faults.append(f"several raters: {', '.join(raters)}; a set places scores on the scale of one")
    if faults or not anchors:
        what = some(faults, 3, "; ") or "no anchors in it"
        raise MedtasksError(what, where=path, remedy=_REMEDY)
    return AnchorSet(raters[0], anchors)


def _fault(anchor: Anchor, protocols: Mapping[str, Protocol]) -> str:
    protocol = protocols.get(anchor.task)
    if protocol is None:
        return f"task {anchor.task!r} is not judged in these runs"
    if (anchor.lowest, anchor.highest) != protocol.scale:
        low, high = protocol.scale
        own = f"{anchor.lowest:g} to {anchor.highest:g}"
        return f"a scale of {own}; {anchor.task} is judged on {low:g} to {high:g}"
    if not anchor.lowest <= anchor.rating <= anchor.highest:
        return f"rating {anchor.rating:g} is not on the scale {anchor.lowest:g} to {anchor.highest:g}"
    return ""


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Line numbers and lines."""
    if path.suffix != ".jsonl":
        for number, cells in read_sheet(path, COLUMNS, remedy=_REMEDY):
            yield number, {name: cells[name] for name in COLUMNS}
        return
    for number, line in numbered_lines(path, remedy=_REMEDY):
        try:
            row = parse_json(line)
        except JsonError as error:
            raise MedtasksError(f"line {number}: is no JSON ({error})", where=path, remedy=_REMEDY) from None
        yield number, row if isinstance(row, dict) else {}


#: The metric of a calibrated score: beside `score`, and in no rank, test or mean.
METRIC = "score_calibrated"


@dataclass(frozen=True)
class Calibrated:
    """One task of one run on the scale of the anchors."""

    folder: Path  # of the run
    task: str  # its name
    score: float  # by the jury
    calibrated: float  # the same on the other scale
    interval: Interval | None  # 95 %, anchors and documents drawn anew


@dataclass(frozen=True)
class Calibration:
    """How the scores of one protocol's tasks were placed."""

    protocol: str  # under which the jury judged
    jury: str  # who judged, in words
    rater: str  # on whose scale the scores are
    anchors: int  # answers that the map was learned on
    absent: int  # anchors about answers that no run has
    errors: Errors  # out of sample
    tasks: list[Calibrated]  # those of the anchors, in all runs


@dataclass(frozen=True)
class _Answered:
    """A task of a run with the scores that a jury gave its answers, on 0-1."""

    run: Run
    task: JudgedTask
    jury: str
    scored: list[tuple[Case, float]]


def calibrate(runs: Sequence[Run], path: Path) -> list[Calibration]:
    """Learn the map on the anchors among the runs' answers, and write calibrated scores into all runs.

    Scores of tasks without anchors stay as they are: another task is another map.

    Args:
        runs: judged by one jury; open.

    Raises:
        MedtasksError: the anchors are wrong or too few, or the runs were judged by several juries.
    """
    answered = [item for run in runs for item in _answered(run)]
    protocols = {item.task.name: item.task.rubric.protocol for item in answered}
    anchors = read_anchors(path, protocols)
    tasks = {task for task, _, _ in anchors.anchors}
    calibrations = []
    for protocol in dict.fromkeys(
        item.task.rubric.judging.protocol for item in answered if item.task.name in tasks
    ):
        same = [
            item
            for item in answered
            if item.task.name in tasks and item.task.rubric.judging.protocol == protocol
        ]
        if len(juries := sorted({item.jury for item in same})) > 1:
            raise MedtasksError(
                f"several juries judged these runs: {' | '.join(juries)}",
                where=", ".join(str(run.folder) for run in runs),
                remedy="calibrate the runs of one jury at a time",
            )
        pairs = {
            (item.task.name, case.document, response_hash(case)): score
            for item in same
            for case, score in item.scored
        }
        of_protocol = {
            key: anchor for key, anchor in anchors.anchors.items() if key[0] in {x.task.name for x in same}
        }
        both = [key for key in of_protocol if key in pairs]
        learned = Anchors(
            np.array([pairs[key] for key in both]),
            np.array([of_protocol[key].score for key in both]),
            [key[:2] for key in both],
        )
        _check_enough(learned, path)
        errors = out_of_sample_errors(learned)
        lines = [line for item in same if (line := _calibrated(item, learned)) is not None]
        calibrations.append(
            Calibration(
                protocol, juries[0], anchors.rater, len(both), len(of_protocol) - len(both), errors, lines
            )
        )
    digest = sha256(path.read_bytes()).hexdigest()[:16]
    for run in runs:
        _keep(run, calibrations, digest)
    return calibrations


def _answered(run: Run) -> list[_Answered]:
    answered = []
    results = run.results()
    judged = {name for name in results if run.files.judged_file(name).is_file()}
    for task in judged_tasks(run.folder, run.registry, sorted(judged)):
        documents = {
            (item["document"], item.get("run")): item["score"]
            for item in read_json(run.files.judged_file(task.name))["documents"]
        }
        scored = [
            (case, float(score))
            for case in task.cases
            if (score := documents.get((case.document, case.run))) is not None
        ]
        jury = jury_of(results[task.name])
        answered.append(_Answered(run, task, jury_words(jury) if jury else "", scored))
    if not answered:
        raise MedtasksError(
            "no task of it was judged",
            where=run.folder,
            remedy=f"medtasks judge run {run.folder} --jury NAME",
        )
    return answered


def _check_enough(anchors: Anchors, path: Path) -> None:
    n, levels = len(anchors.own), len(np.unique(anchors.own))
    if n < FEWEST_ANCHORS:
        raise MedtasksError(
            f"{n} of its anchors are about answers of these runs; {FEWEST_ANCHORS} are needed",
            where=path,
            remedy="give the runs whose answers were rated, or rate more answers (--sheet FILE lists them)",
        )
    if levels < FEWEST_LEVELS:
        raise MedtasksError(
            f"the jury gave the anchors {levels} different scores; {FEWEST_LEVELS} are needed",
            where=path,
            remedy="add answers that the jury rates otherwise",
        )


def _calibrated(item: _Answered, anchors: Anchors) -> Calibrated | None:
    if not item.scored:
        return None
    scores = np.array([score for _, score in item.scored])
    runs = np.array([case.run or "" for case, _ in item.scored])
    units = np.array([case.cluster or f"document {case.document}" for case, _ in item.scored])
    dataset, _ = item.run.registry.tasks[item.task.name]
    value, interval = calibrated_score(anchors, scores, runs, units, dataset.id)
    own = float(item.run.files.read_task(item.task.name)["metrics"]["score"])
    return Calibrated(item.run.folder, item.task.name, own, value, interval)


def _keep(run: Run, calibrations: Sequence[Calibration], digest: str) -> None:
    """Write the metric beside the jury's own; a new judgement takes it out again."""
    for calibration in calibrations:
        for line in calibration.tasks:
            if line.folder != run.folder:
                continue
            record = run.files.read_task(line.task)
            record["metrics"][METRIC] = line.calibrated
            record["intervals"][METRIC] = interval_record(
                Estimated(line.interval, f"{METHOD} of anchors and documents") if line.interval else None
            )
            record["judged_metrics"] = list(dict.fromkeys([*record["judged_metrics"], METRIC]))
            record["calibrated"] = {
                "rater": calibration.rater,
                "anchors": calibration.anchors,
                "anchors_hash": digest,
                "error": calibration.errors.calibrated,
                "error_as_they_are": calibration.errors.as_they_are,
            }
            run.files.write_task(line.task, record)
    run.write_results()


def anchor_sheet(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """A line for each judged answer, with an empty rating: what raters fill in."""
    lines: dict[tuple[str, str, str], dict[str, Any]] = {}
    for run in runs:
        for item in _answered(run):
            low, high = item.task.rubric.protocol.scale
            for case, _ in item.scored:
                key = (item.task.name, case.document, response_hash(case))
                lines[key] = dict(zip(("task", "document", "response"), key, strict=True)) | {
                    "rating": "", "lowest": f"{low:g}", "highest": f"{high:g}", "rater": "",
                }  # fmt: skip
    return list(lines.values())
