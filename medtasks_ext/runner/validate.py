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

MIN_TEST, MIN_FEWSHOT = 6, 5
GARBAGE = "◇◇◇"


class _Garbage(Baseline):
    """Answers nothing that any format could read."""

    def answer(self, request: Instance, requests: list[Instance]) -> str:
        """The same meaningless text for every document."""
        return GARBAGE


def validate_dataset(registry: Registry, dataset: Dataset) -> list[str]:
    """What is wrong with a dataset folder, in words; empty when nothing is.

    Checks the schema, the sample rows, the derived files, and, through lm-eval itself in every
    strategy, that prompts render, that an oracle gets `oracle_max`, and that garbage gets what the
    suite's rule says.
    """
    problems: list[str] = []
    try:
        spec = dataset_spec(dataset.config["dataset_kwargs"]["medtasks_dataset"], where=dataset.file)
        form = answer_format(spec.answer, where=dataset.file)
        problems += _facts(dataset, spec.source.download is not None)
        problems += [
            f"{change.path}: not up to date → run `medtasks sync`" for change in _stale(registry, dataset)
        ]
        problems += _samples(dataset, form)
        for strategy in STRATEGIES:
            problems += _run(registry, dataset, strategy, form)
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


def _run(registry: Registry, dataset: Dataset, strategy: str, form: AnswerFormat) -> list[str]:
    name, settings = dataset.task(strategy), Settings(data="sample")
    problems = []
    documents = build_task(registry, name, settings).eval_docs
    for document in documents:
        if "{{" in document["prompt"] + document["system"] or not document["prompt"].strip():
            problems.append(
                f"{name}: the prompt of row {document['id']} is not rendered: {document['prompt'][:60]!r}"
            )
    perfect = _metrics(registry, name, Oracle())
    if "score" not in perfect and tokeniser(dataset.metadata.language) is None:
        return problems  # the score needs NLTK data that is not installed; a warning says which
    expected = dataset.metadata.oracle_max
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
    nothing = _metrics(registry, name, _Garbage())
    allowed = _garbage_score(documents, form)
    if not math.isclose(nothing["score"], allowed, abs_tol=1e-9):
        problems.append(
            f"{name}: garbage scores {nothing['score']}, the rule for invalid answers gives {allowed}"
        )
    return problems


def _metrics(registry: Registry, name: str, model: Baseline) -> dict[str, float]:
    settings = Settings(data="sample")
    outcome = evaluate_task(model, build_task(registry, name, settings), settings)
    assert outcome is not None
    return outcome.metrics


def _garbage_score(documents: list[Any], form: AnswerFormat) -> float:
    if not form.draws_invalid:
        return 0.0
    hits = [form.labels_of(document["gold"]) == [random_label(document)] for document in documents]
    return sum(hits) / len(hits)
