"""What a dataset folder must satisfy before it is accepted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import answer_format
from medtasks_ext.data import load_documents
from medtasks_ext.data.spec import dataset_spec
from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.common import random_label
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.models.baselines import Baseline, Oracle
from medtasks_ext.registry import STRATEGIES, Dataset, Registry
from medtasks_ext.registry.sync import changes
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

    from medtasks_ext.answers import AnswerFormat
    from medtasks_ext.data.spec import Judging

MIN_TEST, MIN_FEWSHOT = 6, 5
GARBAGE = "◇◇◇"


class _Same(Baseline):
    """Answers every document with one text, which no format could read."""

    def __init__(self, text: str = GARBAGE) -> None:
        super().__init__()
        self.text = text

    def answer(self, request: Instance, requests: list[Instance]) -> str:
        """The same meaningless text for every document."""
        return self.text


def validate_dataset(registry: Registry, dataset: Dataset) -> list[str]:
    """What is wrong with a dataset folder, in words; empty when nothing is.

    Checks the schema, the sample rows, the derived files, and, through lm-eval itself in every
    strategy, that prompts render, that an oracle gets `oracle_max`, and that garbage gets what the
    suite's rule says. A task for judges has no score of its own: an oracle must get ROUGE-L 1 there.
    """
    problems: list[str] = []
    try:
        spec = dataset_spec(dataset.config["dataset_kwargs"]["medtasks_dataset"], where=dataset.file)
        form = answer_format(spec.answer, where=dataset.file)
        problems += _facts(dataset, spec.source.download is not None)
        problems += [
            f"{change.path}: not up to date → run `medtasks sync`" for change in _stale(registry, dataset)
        ]
        problems += _samples(dataset, form) + _judging(dataset, spec.judge)
        for strategy in STRATEGIES:
            problems += _run(registry, dataset, strategy, form, spec.judge)
    except MedtasksError as error:
        problems.append(str(error))
    except KeyError as error:
        problems.append(f"{dataset.file}: key {error} is missing → see CONTRIBUTING.md")
    return problems


def _facts(dataset: Dataset, has_download: bool) -> list[str]:
    problems = []
    access = dataset.metadata.access
    if access.scoreable and not has_download:
        problems.append(f"{dataset.file}: access.scoreable is true, but source.download is missing")
    if has_download and access.value != "open":
        problems.append(f"{dataset.file}: source.download is there, but access is {access.value}")
    if not dataset.version.partition("-")[0].isdigit():
        problems.append(
            f"{dataset.file}: metadata.version is {dataset.version!r} → write N-X, for example 1-A"
        )
    return problems


def _stale(registry: Registry, dataset: Dataset) -> list[Any]:
    return [change for change in changes(registry) if change.path.parent == dataset.folder]


def _samples(dataset: Dataset, form: AnswerFormat) -> list[str]:
    if not dataset.sample_file.is_file():
        return [
            f"{dataset.sample_file}: missing → write at least {MIN_FEWSHOT} few-shot and {MIN_TEST} test rows"
        ]
    splits = load_documents(dataset.folder, cot=False, origin="sample")
    test, fewshot = splits["test"], splits["fewshot"]
    rows = len({document.get("item", document["id"]) for document in test})
    problems = []
    if rows < MIN_TEST or len(fewshot) < MIN_FEWSHOT:
        problems.append(
            f"{dataset.sample_file}: {len(fewshot)} few-shot and {rows} test rows"
            f" → at least {MIN_FEWSHOT} and {MIN_TEST}"
        )
    if absent := form.not_covered([document["gold"] for document in (*test, *fewshot)]):
        problems.append(f"{dataset.sample_file}: no row shows: {', '.join(absent)}")
    return problems


def _judging(dataset: Dataset, judge: Judging | None) -> list[str]:
    if judge is None:
        return []
    blank = [name for name, text in {"role": judge.role, **judge.axes}.items() if not text.strip()]
    problems = [f"{dataset.file}: judge: {name} says nothing" for name in blank]
    if dataset.sample_file.is_file():
        for document in load_documents(dataset.folder, cot=False, origin="sample")["test"]:
            if "{{" in document["question"] or not document["question"].strip():
                problems.append(
                    f"{dataset.file}: judge.question is not rendered for row {document['id']}:"
                    f" {document['question'][:60]!r}"
                )
    return problems


def _run(
    registry: Registry, dataset: Dataset, strategy: str, form: AnswerFormat, judge: Judging | None
) -> list[str]:
    name, settings = dataset.task(strategy), Settings(data="sample")
    problems = []
    documents = build_task(registry, name, settings).eval_docs
    for document in documents:
        if "{{" in document["prompt"] + document["system"] or not document["prompt"].strip():
            problems.append(
                f"{name}: the prompt of row {document['id']} is not rendered: {document['prompt'][:60]!r}"
            )
    perfect = _metrics(registry, name, Oracle())
    if judge:
        return problems + _unjudged(registry, name, perfect, documents)
    if "score" not in perfect and tokeniser(dataset.metadata.language) is None:
        return problems  # the score needs NLTK data that is not installed; a warning says which
    expected = dataset.metadata.oracle_max
    if expected == "per_document":
        expected = sum(form.ceiling(document["gold"]) for document in documents) / len(documents)
    if "score" not in perfect or not (
        math.isclose(perfect["score"], expected, abs_tol=1e-9)
        if expected != "unbounded"
        else perfect["score"] >= 1
    ):
        problems.append(f"{name}: an oracle scores {perfect.get('score')}, oracle_max says {expected}")
    if perfect["valid"] != 1:
        problems.append(
            f"{name}: only {perfect['valid']:.0%} of the gold answers can be read back as answers"
        )
    nothing = _metrics(registry, name, _Same())
    allowed = _garbage_score(documents, form)
    if not math.isclose(nothing["score"], allowed, abs_tol=1e-9):
        problems.append(
            f"{name}: garbage scores {nothing['score']}, the rule for invalid answers gives {allowed}"
        )
    return problems


def _unjudged(registry: Registry, name: str, perfect: dict[str, float], documents: list[Any]) -> list[str]:
    """A task whose score comes from judges: what it reports before they have read the answers."""
    if "score" in perfect:
        return [f"{name}: has a score before judges have read the answers"]
    problems = []
    # where the target is not what answers are compared with, an oracle does not reach 1
    compared = all(document["target"].strip() == document["gold"] for document in documents)
    if compared and not math.isclose(perfect["rouge_l"], 1, abs_tol=1e-9):
        problems.append(f"{name}: an oracle gets rouge_l {perfect['rouge_l']} instead of 1")
    if perfect["valid"] != 1:
        problems.append(
            f"{name}: only {perfect['valid']:.0%} of the gold answers can be read back as answers"
        )
    for text in (GARBAGE, ""):
        if (got := _metrics(registry, name, _Same(text))["rouge_l"]) != 0:
            problems.append(f"{name}: the answer {text!r} gets rouge_l {got} instead of 0")
    return problems


def _metrics(registry: Registry, name: str, model: Baseline) -> dict[str, float]:
    settings = Settings(data="sample")
    outcome = evaluate_task(model, build_task(registry, name, settings), settings)
    assert outcome is not None
    return outcome.metrics


def _garbage_score(documents: list[Any], form: AnswerFormat) -> float:
    if not form.draws_invalid:
        return sum(form.invalid_score(document["gold"]) for document in documents) / len(documents)
    hits = [form.labels_of(document["gold"]) == [random_label(document)] for document in documents]
    return sum(hits) / len(hits)
