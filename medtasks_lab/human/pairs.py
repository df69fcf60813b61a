"""Pairs of answers from two runs, in another order for each expert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.dialogue import shown
from medtasks_ext.prompts.documents import document_key
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
from medtasks_lab.human.kinds import Language, page_words

#: ClinicBench, Section 3.5: 100 samples of each task, three experts
DOCUMENTS, EXPERTS = 100, 3


@dataclass(frozen=True)
class RunDocument:
    """One document of a run with the model's answer."""

    question: str  # what was asked
    compared: Mapping[str, str]  # what must be the same in both runs, field -> value
    answer: str  # without its reasoning; empty where there is none
    synthetic: bool  # it comes from sample rows


@dataclass(frozen=True)
class AnswerPair:
    """A document with the answers of both runs, the first run's first."""

    task: str
    document: str
    question: str
    answers: tuple[str, str]


@dataclass(frozen=True)
class DrawnPairs:
    """The pairs that are compared."""

    pairs: list[AnswerPair]  # by task, the documents of a task sorted
    language: Language  # of the tasks, if forms come in it
    gated: list[str]  # tasks whose data is not open
    synthetic: bool  # some pairs come from sample rows
    record: dict[str, Any]  # seed, runs, and task -> dataset and numbers of documents


def draw_pairs(
    folders: tuple[Path, Path], names: Sequence[str], registry: Registry, *, documents: int, seed: int
) -> DrawnPairs:
    """Draw documents that two runs have answered.

    Args:
        folders: of the evaluated run and of the run that it is compared with.
        names: tasks, groups or tags, finished in both runs.
        documents: of each task; all, where there are fewer.
        seed: of the draw.

    Raises:
        MedtasksError: a run or task is missing, the two runs do not have the same documents, or the
            answers of a task are no texts.
    """
    if folders[0].resolve() == folders[1].resolve():
        raise MedtasksError(
            "both runs are the same folder", where=folders[1], remedy="name the runs of two models"
        )
    runs = opened_runs(folders, registry)
    tasks = registry.leaves_of(names)
    pairs: list[AnswerPair] = []
    counts: dict[str, Any] = {}
    synthetic = False
    for task in tasks:
        both = [_documents(run, task) for run in runs]
        _check_same(task, folders, both)
        synthetic |= any(document.synthetic for document in both[0].values())
        drawn = Random(f"{seed} {task}").sample(sorted(both[0]), min(documents, len(both[0])))
        pairs += [
            AnswerPair(task, name, both[0][name].question, (both[0][name].answer, both[1][name].answer))
            for name in sorted(drawn)
        ]
        dataset, _ = registry.tasks[task]
        counts[task] = {"dataset": dataset.id, "documents": len(drawn), "of": len(both[0])}
    return DrawnPairs(
        pairs=pairs,
        language=language_of(tasks, registry),
        gated=[task for task in tasks if registry.tasks[task][0].metadata.access != "open"],
        synthetic=synthetic,
        record=record_of(seed, runs, counts, synthetic=synthetic),
    )


def pairwise_export(drawn: DrawnPairs, *, experts: int = EXPERTS) -> Export:
    """Blinded pairs for a number of experts.

    All experts see the same documents, each in an order of their own and with an own assignment of
    the runs to A and B, in which either run is A half of the time. The seed of the draw decides them.
    """
    empty, seed = page_words()["no_answer"].of(drawn.language), drawn.record["seed"]
    return Export(
        kind="pairwise",
        language=drawn.language,
        forms={
            f"expert_{number}": _arranged(drawn.pairs, empty, Random(f"{seed} expert {number}"))
            for number in range(1, experts + 1)
        },
        notices=notices_of(synthetic=drawn.synthetic, gated=bool(drawn.gated)),
        record=drawn.record,
    )


def _arranged(pairs: Sequence[AnswerPair], empty: str, random: Random) -> list[FormItem]:
    order = list(pairs)
    random.shuffle(order)
    first_is_a = [number % 2 == 0 for number in range(len(order))]
    random.shuffle(first_is_a)
    items = []
    for pair, straight in zip(order, first_is_a, strict=True):
        answers = pair.answers if straight else pair.answers[::-1]
        items.append(
            FormItem(
                page=f"{pair.task} {pair.document}",
                about={
                    "task": pair.task,
                    "document": pair.document,
                    "first_run_is": "A" if straight else "B",
                },
                texts={
                    "question": pair.question,
                    "answer_a": answers[0] or empty,
                    "answer_b": answers[1] or empty,
                },
            )
        )
    return items


def _documents(run: Run, task: str) -> dict[str, RunDocument]:
    """Document -> what a run has of it."""
    check_finished(run, task)
    documents: dict[str, RunDocument] = {}
    for sample in run.files.read_samples(task):
        document, answer = sample["doc"], sample["filtered_resps"][0]["answer"]
        if not isinstance(answer, str | None):
            raise MedtasksError(
                f"the answers of {task} are not texts: experts would compare data structures",
                where="--tasks",
                remedy="choose tasks with free text as answer",
            )
        whole = "\n\n".join(filter(None, (document["system"], shown(document))))
        compared = {
            "input": document.get("question") or shown(document),
            "reference": document["target"],
            "origin of the data": document["data"],
        }
        documents[document_key(document)] = RunDocument(
            clean((document.get("question") or whole).strip()),
            compared,
            clean((answer or "").strip()),
            document["data"] == "sample",
        )
    return documents


def _check_same(task: str, folders: tuple[Path, Path], both: Sequence[Mapping[str, RunDocument]]) -> None:
    """The two runs must have answered the same documents."""
    first, second = both
    difference = ""
    for here, there, folder in ((first, second, folders[0]), (second, first, folders[1])):
        if only := sorted(set(here) - set(there)):
            difference = f"{len(only)} documents are in {folder} alone (first: {only[0]})"
            break
    else:
        for name, document in first.items():
            if unlike := _unlike(document.compared, second[name].compared):
                difference = f"document {name} has another {unlike} in {folders[1]}"
                break
    if difference:
        raise MedtasksError(
            f"the runs did not answer the same documents: {difference}",
            where=task,
            remedy="compare two runs of the same version of the data, made with the same --limit and --data",
        )


def _unlike(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """The first field that differs. In front of one model's input there may be the instruction."""
    for field, value in one.items():
        short, long = sorted((value.strip(), other[field].strip()), key=len)
        if not (long.endswith(short) and short if field == "input" else long == short):
            return field
    return ""
