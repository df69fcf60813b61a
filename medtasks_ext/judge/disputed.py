"""Disputed cases that wait for a physician: the queue, and the decisions that come back.

The queue is what `medtasks study forms --kind points` reads; the decisions are `decisions.jsonl` of
`medtasks study forms`. A decision is stored like a judgement, by the judge `human`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from medtasks_ext.atomic import remove
from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import numbered_lines, write_lines
from medtasks_ext.judge.asks import Ask, RunToJudge, requests_of
from medtasks_ext.judge.cases import Case, JudgedTask
from medtasks_ext.judge.jury import HUMAN, HUMAN_IDENTITY, Jury
from medtasks_ext.judge.procedures import JudgeRequest, is_disputed
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.strict import faults_of

if TYPE_CHECKING:
    from medtasks_ext.judge.store import JudgementStore


def queue_file(folder: Path, task: str) -> Path:
    return RunFolder(folder).judgements / f"disputed_{task}.jsonl"


def write_queue(folder: Path, task: JudgedTask, cases: Iterable[Case]) -> None:
    """No file where there is none."""
    rows = []
    for case in cases:
        texts = {"question": case.texts["question"], "answer": case.texts["response"]}
        rows.append({"id": _name(task, case), **texts, "points": list(case.points)})
    path = queue_file(folder, task.name)
    write_lines(path, rows) if rows else remove(path)


def _key(task: JudgedTask, case: Case) -> str:
    return task.key(HUMAN_IDENTITY, case, JudgeRequest(HUMAN, case.texts))


def _name(task: JudgedTask, case: Case) -> str:
    """Names a case by its texts, too: a decision is about this answer and no other."""
    return f"{task.name}/{case.document}/{_key(task, case)[:12]}"


class _Point(BaseModel):
    id: str
    met: bool | None = Field(strict=True)


class _Decision(BaseModel):
    id: str
    points: list[_Point] = Field(min_length=1)


class _Place(NamedTuple):
    task: JudgedTask
    case: Case
    store: JudgementStore


@dataclass
class Decided:
    taken: int = 0  # decisions that are new
    replaced: int = 0  # decisions that were there already and say something else now
    open: int = 0  # cases with a point on which nothing was decided; they stay in the queue
    changed: int = 0  # decisions about an answer that is another one now
    agreed: int = 0  # decisions about cases that are not disputed


def take_decisions(path: Path, runs: Sequence[RunToJudge], jury: Jury, *, keep: bool = True) -> Decided:
    """Check all of a physician's decisions, JSON lines {id, points: [{id, met}]}; store those about
    disputed cases.

    All faults come in one message, and nothing is stored then.
    """
    places: dict[str, list[_Place]] = {}
    for run in runs:
        for task in run.tasks:
            for case in task.cases:
                if task.rubric.protocol.dispute_above is not None and case.asked:
                    places.setdefault(_name(task, case), []).append(_Place(task, case, run.store))
    documents = {name.rpartition("/")[0] for name in places}
    given, faults = _read(path)
    for number, decision in given.items():
        here = places.get(decision.id)
        if here is None:
            if decision.id.rpartition("/")[0] not in documents:
                faults.append(f"line {number}: no case {decision.id!r} in this run")
        elif sorted(point.id for point in decision.points) != sorted(here[0].case.rubric.axes):
            wanted = ", ".join(here[0].case.rubric.axes)
            faults.append(f"line {number}: {decision.id} has the points {wanted}, each to be decided once")
    if faults:
        remedy = "give decisions.jsonl as `medtasks study forms` wrote it for this run's queue"
        raise MedtasksError(some(faults, 3, "; "), where=path, remedy=f"{remedy}; nothing of it was stored")
    decided = Decided()
    for decision in given.values():
        decided.changed += decision.id not in places
        for place in places.get(decision.id, ()):
            _take(decided, decision, place, jury, path, keep=keep)
    return decided


def _read(path: Path) -> tuple[dict[int, _Decision], list[str]]:
    given: dict[int, _Decision] = {}
    faults = []
    for number, line in numbered_lines(path, remedy="name decisions.jsonl of `medtasks study forms`"):
        try:
            decision = _Decision.model_validate_json(line)
        except ValidationError as error:
            faults.append(f"line {number}: {faults_of(error, 'decision')[0]}")
            continue
        if any(other.id == decision.id for other in given.values()):
            faults.append(f"line {number}: {decision.id} is decided twice")
        given[number] = decision
    if not given and not faults:
        faults.append("no decisions in it")
    return given, faults


def _take(
    decided: Decided, decision: _Decision, place: _Place, jury: Jury, path: Path, *, keep: bool
) -> None:
    task, case, store = place
    done, _ = requests_of(task, case, jury, store)
    if not is_disputed(case.subject, task.rubric.protocol.panel(jury), done):
        decided.agreed += 1
        return
    if any(point.met is None for point in decision.points):
        decided.open += 1
        return
    met = {point.id: float(bool(point.met)) for point in decision.points}
    ask, known = Ask.of(task, case, JudgeRequest(HUMAN, case.texts), jury, store)
    if known and known.ratings == met:
        return
    decided.taken += known is None
    decided.replaced += known is not None
    if keep:
        ratings = {name: met[name] for name in case.rubric.axes}
        ask.keep(Answer(json.dumps(met)), {"ratings": ratings, "decisions": str(path)})
