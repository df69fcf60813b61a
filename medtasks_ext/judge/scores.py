"""Disputed cases that wait for a physician: the queue, and the decisions that come back.

The queue is what `medtasks study forms --kind points` reads; the decisions are `decisions.jsonl` of
`medtasks study forms`. A decision is stored like a judgement, by the judge `human`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from medtasks_ext.atomic import remove
from medtasks_ext.engines import Answer
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import numbered_lines, read_json, write_json, write_lines
from medtasks_ext.judge.cases import (
    NOT_ASKED,
    Ask,
    Case,
    Done,
    JudgedTask,
    JudgementStore,
    RunToJudge,
    judged_tasks,
    requests_of,
)
from medtasks_ext.judge.jury import HUMAN, HUMAN_IDENTITY, Judge, Jury
from medtasks_ext.judge.protocol import N_ASSESSORS, Rubric, weighted_mean
from medtasks_ext.results.document_scores import document_scores as document_scores_of
from medtasks_ext.results.document_scores import save_document_scores, save_resampled
from medtasks_ext.results.reading import judged_samples
from medtasks_ext.runs import conditions
from medtasks_ext.runs.conditions import Conditions, conditions_of
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.stats.agreement import kappa
from medtasks_ext.stats.bootstrap import IntervalRecord, task_intervals
from medtasks_ext.stats.statistic import Statistic, clipped_mean_of_runs, mean, mean_of_runs
from medtasks_ext.strict import faults_of

if TYPE_CHECKING:
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.records import TaskRecord


def queue_file(folder: Path, task: str) -> Path:
    return RunFolder(folder).judgements / f"disputed_{task}.jsonl"


def _queued(task: JudgedTask, case: Case) -> dict[str, Any]:
    texts = {"question": case.texts["question"], "answer": case.texts["response"]}
    return {"id": _name(task, case), **texts, "points": list(case.points)}


def _name(task: JudgedTask, case: Case) -> str:
    """Names a case by its texts, too: a decision is about this answer and no other."""
    key = task.key(HUMAN_IDENTITY, case, None)
    return f"{task.name}/{case.document}/{key[:12]}"


class _Point(BaseModel):
    id: str
    met: bool | None = Field(strict=True)


class _Decision(BaseModel):
    id: str
    points: list[_Point] = Field(min_length=1)


def take_decisions(path: Path, runs: Sequence[RunToJudge], jury: Jury, *, keep: bool = True) -> Counter[str]:
    """Check all of a physician's decisions, JSON lines {id, points: [{id, met}]}; store those about
    disputed cases. All faults come in one message, and nothing is stored then.

    How many were `taken` and `replaced` (said something else before); are `open`, with a point that is not
    decided; are about an answer that is `changed`; are about cases on which assessors `agreed`.
    """
    places: dict[str, list[tuple[JudgedTask, Case, JudgementStore]]] = {}
    for tasks, store in runs:
        for task in tasks:
            for case in task.cases:
                if task.rubric.protocol.dispute_above is not None and case.asked:
                    places.setdefault(_name(task, case), []).append((task, case, store))
    documents = {name.rpartition("/")[0] for name in places}
    given, faults = dict[str, _Decision](), list[str]()
    for number, line in numbered_lines(path, remedy="name decisions.jsonl of `medtasks study forms`"):
        try:
            decision = _Decision.model_validate_json(line)
        except ValidationError as error:
            faults.append(f"line {number}: {faults_of(error, 'decision')[0]}")
            continue
        name, of = decision.id, places.get(decision.id)
        if name in given:
            faults.append(f"line {number}: {name} is decided twice")
        if not of and name.rpartition("/")[0] not in documents:
            faults.append(f"line {number}: no case {name!r} in this run")
        if of and sorted(point.id for point in decision.points) != sorted(axes := of[0][1].rubric.axes):
            wanted = ", ".join(axes)
            faults.append(f"line {number}: {name} has the points {wanted}, each to be decided once")
        given[name] = decision
    if not given and not faults:
        faults.append("no decisions in it")
    if faults:
        remedy = "give decisions.jsonl as `medtasks study forms` wrote it for this run's queue"
        raise MedtasksError(some(faults, 3, "; "), where=path, remedy=f"{remedy}; nothing of it was stored")
    decided = Counter(changed=len(given.keys() - places.keys()))
    for name, decision in given.items():
        for task, case, store in places.get(name, ()):
            done, _ = requests_of(task, case, jury, store)
            ask, known = Ask.of(task, case, (HUMAN, None), jury, store)
            met = {point.id: float(bool(point.met)) for point in decision.points}
            if not case.is_disputed(jury, done):
                decided["agreed"] += 1
            elif any(point.met is None for point in decision.points):
                decided["open"] += 1
            elif known != met:
                decided["replaced" if known else "taken"] += 1
                if keep:
                    ratings = {axis: met[axis] for axis in case.rubric.axes}
                    ask.keep(Answer(json.dumps(met)), {"ratings": ratings, "decisions": str(path)})
    return decided


#: The score with what the length of answers costs or brings, where the task states that.
LENGTH_ADJUSTED = "score_length_adjusted"
#: Why a physician's decision is missing.
WAITS = "waits for a physician"


@dataclass(frozen=True)
class DocumentScore:
    case: Case  # the answer
    judged: Done  # all ratings the lowest where the answer is empty
    rating: float | None  # their aggregate on the rating scale, or None where there is none
    missing: dict[str, list[str]]  # judge -> why judgements of it are missing, one reason for each
    #: whether two assessors differ too much; None where that is not known or not asked
    disputed: bool | None = None

    @property
    def complete(self) -> bool:
        return not self.missing

    @property
    def pending(self) -> bool:
        return bool(self.disputed) and self.rating is None

    def composites(self, ids: Collection[str] = ()) -> dict[str, float]:
        """Judge -> weighted mean of its ratings, of all axes or points or of some."""
        return {
            judge: float(weighted_mean({name: ratings[name] for name in ids or ratings}, self.case.weights))
            for judge, ratings in self.case.by_judge(self.judged).items()
        }

    def ratings(self) -> dict[str, dict[str, float]]:
        return {} if self.case.blank else self.case.by_judge(self.judged)


def document_scores(
    task: JudgedTask, jury: Jury, store: JudgementStore, stopped: Mapping[str, str]
) -> list[DocumentScore]:
    """In the order of the sample file; `stopped` says why a judge was given up in this call."""
    scores = []
    for case in task.cases:
        done, missing = dict[Any, Mapping[str, float]](), dict[str, list[str]]()
        asked = case.questions(jury, done)
        if case.blank:
            done = dict.fromkeys(asked, dict.fromkeys(case.weights, task.rubric.protocol.scale[0]))
        elif case.gap:
            missing = {judge: [case.gap] for judge, _ in asked}
        else:
            done, still_open = requests_of(task, case, jury, store)
            for ask in still_open:
                unasked = WAITS if ask.judge == HUMAN else NOT_ASKED
                if ask.judge in stopped:
                    unasked = f"judge given up: {stopped[ask.judge]}"
                missing.setdefault(ask.judge, []).append(store.why_not(ask.question, unasked))
        disputed = case.is_disputed(jury, done)
        scores.append(DocumentScore(case, done, case.rating(jury, done), missing, disputed))
    return scores


def document_values(scores: Sequence[DocumentScore], rubric: Rubric) -> list[dict[str, Any]]:
    """Metric -> (run, value) of each document, as records that can be resampled: means over its repeats."""
    protocol, tags = rubric.protocol, tuple(f"{tag}:" for tag in rubric.judging.tags)
    low, high = protocol.scale
    length = rubric.judging.length_adjustment
    records = dict[str, dict[str, Any]]()
    repeats: dict[str, dict[str, list[float]]] = {}  # document -> metric -> values
    for place, item in enumerate(scores):
        if item.rating is None:
            continue
        score = protocol.normalised(item.rating)
        parts: dict[str, list[float]] = {"score": [score]}
        if length:
            parts[LENGTH_ADJUSTED] = [length.adjusted(score, item.case.texts["response"])]
        if (low, high) != (0, 1):
            parts[f"jury_{low:g}_to_{high:g}"] = [item.rating]
        for axis in rubric.axes:
            parts[f"jury_{axis}"] = [ratings[axis] for ratings in item.judged.values()]
        for tag in filter(lambda tag: tag.startswith(tags), item.case.tags):
            parts[_of_tag(tag)] = [item.rating]
        for tag, ids in item.case.points_by_tag(tags).items():
            parts[_of_tag(tag)] = [*item.composites(ids).values()]
        for judge, composite in item.composites().items():
            parts[f"jury_{judge}"] = [composite]
        of = repeats.setdefault(item.case.of, {})
        for name, values in parts.items():
            of.setdefault(name, []).append(float(np.mean(values)))
        means = {name: (item.case.run or "", float(np.mean(values))) for name, values in of.items()}
        records[item.case.of] = {"doc_id": place, "doc": {"cluster": item.case.cluster}, **means}
    return [*records.values()]


def _of_tag(tag: str) -> str:
    return f"jury_{tag.replace(':', '_')}"


def figures(
    scores: Sequence[DocumentScore], rubric: Rubric, dataset: str
) -> tuple[dict[str, float], dict[str, IntervalRecord], np.ndarray | None]:
    """The metrics of a task, their bootstrap intervals, and the score on each resample.

    `score` and `score_length_adjusted` are on 0-1, `jury_…` on the rating scale; each is the mean over
    documents (over runs of the mean over their documents, where the benchmark has several). A document with
    no judgement takes part in none of them; `judged` is the share of documents that all judges judged.
    """
    records = document_values(scores, rubric)
    names = dict.fromkeys(name for record in records for name in record if name not in ("doc_id", "doc"))
    statistics = dict.fromkeys(names, statistic_of(rubric))
    if LENGTH_ADJUSTED in statistics:  # a long or a short answer may leave 0-1
        statistics[LENGTH_ADJUSTED] = clipped_mean_of_runs
    means = {name: of([item[name] for item in records if name in item]) for name, of in statistics.items()}
    intervals, resampled = task_intervals(records, statistics, dataset)
    counts = {
        "scored": len(records) / len({item.case.of for item in scores}),
        "judged": sum(item.complete for item in scores) / len(scores),
        "judgements_missing": float(sum(missing_reasons(scores).values())),
        "empty_answers": float(sum(item.case.blank for item in scores)),
    }
    if rubric.protocol.dispute_above is not None:
        more, their_intervals = _disputes(scores, rubric, dataset)
        counts, intervals = {**counts, **more}, {**intervals, **their_intervals}
    return {**means, **counts}, intervals, resampled


def statistic_of(rubric: Rubric) -> Statistic:
    """Penalties may cost a document all it has."""
    return clipped_mean_of_runs if rubric.judging.penalties else mean_of_runs


def _disputes(
    scores: Sequence[DocumentScore], rubric: Rubric, dataset: str
) -> tuple[dict[str, float], dict[str, IntervalRecord]]:
    known = [item for item in scores if item.disputed is not None]
    records = [
        {
            "doc_id": place,
            "doc": {"cluster": item.case.cluster, "item": item.case.of},
            "disputed": float(bool(item.disputed)),
            # an empty answer is not assessed, so it says nothing about the assessors
            **({} if item.case.blank else {"assessor_agreement": float(not item.disputed)}),
        }
        for place, item in enumerate(known)
    ]
    shares = ("disputed", "assessor_agreement")
    values = {name: [record[name] for record in records if name in record] for name in shares}
    means = {name: mean(items) for name, items in values.items() if items}
    intervals, _ = task_intervals(records, dict.fromkeys(means, mean), dataset)
    assessed = [[*item.judged.values()][:N_ASSESSORS] for item in known if not item.case.blank]
    pairs = [(one[axis], other[axis]) for one, other in assessed for axis in one]
    agreed = kappa([one for one, _ in pairs], [other for _, other in pairs], rubric.protocol.numbers)
    if agreed is not None:
        means["assessor_kappa"] = agreed
    return {**means, "pending": float(sum(item.pending for item in scores))}, intervals


def missing_reasons(scores: Sequence[DocumentScore]) -> Counter[tuple[str, str]]:
    return Counter(
        (judge, reason) for item in scores for judge, reasons in item.missing.items() for reason in reasons
    )


def keep_scores(
    run: Run, task: JudgedTask, jury: Jury, scores: Sequence[DocumentScore], store: JudgementStore
) -> dict[str, float]:
    """Write a task's metrics into its results, and the score of each document beside its judgements."""
    dataset, _ = run.registry.tasks[task.name]
    metrics, intervals, resampled = figures(scores, task.rubric, dataset.id)
    queue = [_queued(task, item.case) for item in scores if item.pending and not jury.adjudicator]
    path = queue_file(run.folder, task.name)
    write_lines(path, queue) if queue else remove(path)
    origin: dict[str, str | None] = {}
    if words := task.rubric.words:
        origin = {"artefact": words.origin.artefact, "artefact_revision": words.origin.revision}
        origin["words_hash"] = words.origin.sha256
    documents = [
        {
            "document": item.case.document,
            "run": item.case.run or "",
            "score": None if item.rating is None else task.rubric.protocol.normalised(item.rating),
            "complete": item.complete,
        }
        for item in scores
    ]
    judged: dict[str, Any] = {
        "wording": task.rubric.wording,
        **origin,
        "judges": [*map(_snapshot, jury.judges)],
    }
    judged["adjudicator"] = _snapshot(jury.adjudicator) if jury.adjudicator else HUMAN
    judged |= {"served": store.served_about(task.name), "cost": store.spent(task.name)}
    write_json(run.files.judged_file(task.name), {**judged, "documents": documents})
    stored = run.results()[task.name]
    for name in stored.get("judged_metrics", ()):
        stored["metrics"].pop(name, None)
        stored["intervals"].pop(name, None)
    stored["metrics"] |= metrics
    stored["intervals"] |= intervals
    stored["judged_metrics"] = list(metrics)
    stored["conditions"] = _judged_conditions(run, task, jury, store, stored).record()
    save_resampled(run.files.resampled_file(task.name), resampled)
    samples = judged_samples(run.files, task.name)
    save_document_scores(
        run.files.scores_file(task.name), document_scores_of(samples, statistic_of(task.rubric))
    )
    run.keep(task.name, stored)
    run.keep_results()
    return metrics


def _judged_conditions(
    run: Run, task: JudgedTask, jury: Jury, store: JudgementStore, stored: TaskRecord
) -> Conditions:
    documents, where = run.state(task.name).choice.words, run.files.results_file
    record = conditions_of(stored, documents, where)
    rubric, served = task.rubric, store.served_about(task.name)

    def said(judge: Judge) -> conditions.Judge:
        model = None if judge.model == judge.name else judge.model
        return conditions.Judge(judge.name, model, judge.request, tuple(served.get(judge.name, ())))

    decides = said(jury.adjudicator) if jury.adjudicator else conditions.Judge(HUMAN)
    judged_by = conditions.Jury(
        judges=tuple(map(said, jury.judges)),
        adjudicator=decides if rubric.protocol.dispute_above is not None else None,
        protocol=rubric.judging.protocol,
        wording="official" if rubric.words else "own",
        hash=rubric.version[:8],
    )
    return replace(record, jury=judged_by, judged=stored["metrics"]["judged"])


def _snapshot(judge: Judge) -> dict[str, Any]:
    """Who judged; with its price and the length of its replies, which bound what judging costs."""
    cost = {"base_url", "max_tokens", "price", "asks"}
    return {**judge.identity(), **judge.model_dump(include=cost, mode="json")}


def reattach(run: Run) -> dict[str, tuple[int, int]]:
    """Give judged tasks their scores again after they were scored anew, without asking anyone.

    Judgements of answers that have not changed count; an answer that is read differently now, or has other
    criteria, has none until `medtasks judge` is run again. Task -> how many these are, and all its answers.
    """
    snapshots = {path.stem: path for path in run.files.judgements.glob("*.json")}
    results = {name: item for name, item in run.results().items() if name in snapshots}
    if not results:
        return {}
    store = JudgementStore(run.folder, write=False)
    judged = {name: read_json(snapshots[name]) for name in results}
    words = {name: stored.get("wording", "own") for name, stored in judged.items()}
    changed = {}
    for task in judged_tasks(run.folder, run.registry, results, words):
        stored = judged[task.name]
        jury = Jury(judges=stored["judges"], adjudicator=stored.get("adjudicator"))
        scores = document_scores(task, jury, store, {})
        keep_scores(run, task, jury, scores, store)
        whole = {item["document"] for item in stored["documents"] if item["complete"]}
        if lost := sum(item.case.document in whole and not item.complete for item in scores):
            changed[task.name] = lost, len(scores)
    return changed
