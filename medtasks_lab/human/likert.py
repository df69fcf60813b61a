"""Answers of runs that clinicians rate on the axes and the scale of their task's jury."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.judge.cases import Case, JudgedTask, judged_tasks, response_hash
from medtasks_ext.registry import Registry
from medtasks_ext.runner.run import Run
from medtasks_lab.human.forms import (
    Export,
    FormItem,
    check_finished,
    clean,
    language_of,
    notices_of,
    opened_runs,
    record_of,
)
from medtasks_lab.human.kinds import Language, Option, page_words

#: MedHELM, Methods, "Clinician rating": each answer has at least two raters
RATERS = 2


@dataclass(frozen=True)
class _Answer:
    """One answer that is to be rated."""

    run: str  # its folder, as given
    task: JudgedTask
    case: Case


def likert_export(
    folders: Sequence[Path],
    names: Sequence[str],
    registry: Registry,
    *,
    documents: int,
    experts: int = RATERS,
    raters: int | None = None,
    seed: int,
) -> Export:
    """Answers of one or several runs as forms.

    An expert sees answers in an order of that expert alone, without a word about the run. Empty answers are
    left out: nobody needs to rate them.

    Args:
        folders: of the runs.
        names: tasks, groups or tags, finished in all of them; their juries have axes and a scale.
        documents: of each task, the same in all runs; all, where there are fewer.
        experts: forms.
        raters: experts who rate an answer; by default all.
        seed: of the draw, of who rates what, and of the orders.

    Raises:
        MedtasksError: a run or task is missing, or a task is not rated on axes.
    """
    if raters is not None and raters > experts:
        raise MedtasksError(
            f"{raters} of {experts} experts cannot rate an answer",
            where="--raters",
            remedy="name more --experts, or fewer --raters",
        )
    runs = opened_runs(dict.fromkeys(folders), registry)
    tasks = registry.leaves_of(names)
    answers: list[_Answer] = []
    counts: dict[str, Any] = {}
    gated = synthetic = False
    for name in tasks:
        judged = {str(run.folder): _judged(run, name, registry) for run in runs}
        scale = _scale(next(iter(judged.values())))
        there = [{case.document: case for case in task.cases if case.asked} for task in judged.values()]
        shared = sorted(set.intersection(*map(set, there)))
        drawn = sorted(Random(f"{seed} {name}").sample(shared, min(documents, len(shared))))
        answers += [
            _Answer(run, task, cases[document])
            for document in drawn
            for (run, task), cases in zip(judged.items(), there, strict=True)
        ]
        first = next(iter(judged.values()))
        counts[name] = {
            "documents": len(drawn),
            "of": len(first.cases),
            "axes": list(first.rubric.axes),
            "scale": scale,
        }
        gated |= not first.open_access
        synthetic |= any(case.synthetic for case in first.cases)
    if not answers:
        raise MedtasksError("no answers to rate", where="--tasks", remedy="every answer is empty")
    language = language_of(tasks, registry)
    return Export(
        kind="likert",
        language=language,
        forms=_assigned(answers, experts, raters or experts, seed, language),
        notices=notices_of(synthetic=synthetic, gated=gated),
        record=record_of(seed, runs, counts, raters=raters or experts, synthetic=synthetic),
    )


def _judged(run: Run, name: str, registry: Registry) -> JudgedTask:
    check_finished(run, name)
    judged = judged_tasks(run.folder, registry, [name])
    if not judged or judged[0].rubric.judging.points:
        how = "by scoring points" if judged else "by a metric"
        raise MedtasksError(
            f"{name} is scored {how}: it has no axes to rate",
            where="--tasks",
            remedy="disputed points come from a queue: --kind points QUEUE.jsonl"
            if judged
            else "name tasks that a jury rates (`medtasks ls --help` lists by metric)",
        )
    return judged[0]


def _scale(task: JudgedTask) -> list[int]:
    """The values of the task's jury, from worst to best."""
    protocol = task.rubric.protocol
    values = protocol.verdict[protocol.rating]
    if not all(type(value) is int for value in values):
        raise MedtasksError(
            f"the protocol {task.rubric.judging.protocol} has no scale of whole numbers",
            where=task.name,
            remedy="name tasks whose jury rates on a scale",
        )
    return [int(value) for value in values]


def _assigned(
    answers: Sequence[_Answer], experts: int, raters: int, seed: int, language: Language
) -> dict[str, list[FormItem]]:
    """Expert -> items. Each answer has `raters` experts, all experts as many answers, one more or less.

    Among those with the fewest answers so far chance decides, so that each expert meets several others.
    """
    chance = Random(f"{seed} raters")
    given: dict[int, list[_Answer]] = {number: [] for number in range(experts)}
    for answer in chance.sample(answers, len(answers)):
        drawn = sorted(given, key=lambda number: (len(given[number]), chance.random()))
        for number in drawn[:raters]:
            given[number].append(answer)
    forms = {}
    for number, mine in given.items():
        Random(f"{seed} expert {number + 1}").shuffle(mine)
        forms[f"expert_{number + 1}"] = [item for answer in mine for item in _items(answer, language)]
    return forms


def _items(answer: _Answer, language: Language) -> list[FormItem]:
    rubric, case, run = answer.task.rubric, answer.case, answer.run
    values = _scale(answer.task)
    ends = page_words()["scale"].of(language)
    scale = ends.format(low=values[0], high=values[-1], lowest=rubric.judging.lowest)
    return [
        FormItem(
            page=f"{run} {answer.task.name} {case.document}",
            about={
                "run": run,
                "task": answer.task.name,
                "document": case.document,
                "response": response_hash(case),
                "axis": axis,
            },
            texts={
                "question": clean(case.texts["question"].strip()),
                "answer": clean(case.texts["response"].strip()),
                "axis": axis.capitalize(),
                "asks": f"{' '.join(question.split())}\n{scale}",
            },
            options=[Option.named(str(value)) for value in values],
        )
        for axis, question in rubric.judging.axes.items()
    ]
