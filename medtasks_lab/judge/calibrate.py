"""A jury's scores on the scale of other raters, learned from an anchor set, beside the jury's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json
from medtasks_ext.judge.cases import Case, JudgedTask, judged_tasks, response_hash
from medtasks_ext.results.condition_words import jury_words
from medtasks_ext.results.older_conditions import jury_of
from medtasks_ext.stats.bootstrap import METHOD, interval_record
from medtasks_ext.stats.calibration import (
    FEWEST_ANCHORS,
    FEWEST_LEVELS,
    Anchors,
    Errors,
    calibrated_score,
    out_of_sample_errors,
)
from medtasks_ext.stats.intervals import Estimated, Interval
from medtasks_lab.judge.anchors import read_anchors

if TYPE_CHECKING:
    from medtasks_ext.runner.run import Run

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
    found = []
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
        found.append(
            Calibration(
                protocol, juries[0], anchors.rater, len(both), len(of_protocol) - len(both), errors, lines
            )
        )
    digest = sha256(path.read_bytes()).hexdigest()[:16]
    for run in runs:
        _keep(run, found, digest)
    return found


def _answered(run: Run) -> list[_Answered]:
    found = []
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
        found.append(_Answered(run, task, jury_words(jury) if jury else "", scored))
    if not found:
        raise MedtasksError(
            "no task of it was judged",
            where=run.folder,
            remedy=f"medtasks judge run {run.folder} --jury NAME",
        )
    return found


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


def _keep(run: Run, found: Sequence[Calibration], digest: str) -> None:
    """Write the metric beside the jury's own; a new judgement takes it out again."""
    for calibration in found:
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
