"""What a dataset folder must satisfy before it is accepted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from medtasks_ext.answers import AnswerFormat, answer_format
from medtasks_ext.answers.formats import any_format
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import numbered_lines
from medtasks_ext.metrics.common import random_label
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.models.baselines import Baseline, Oracle
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import STRATEGIES, Dataset, Metadata, Registry
from medtasks_ext.registry.citations import BESIDE, entries_of
from medtasks_ext.registry.functions import TASK_CLASS
from medtasks_ext.registry.new import PLACEHOLDER
from medtasks_ext.registry.suites import NO_SUITE, near
from medtasks_ext.registry.tasks import BLOCKS, TASK_FILE, describe
from medtasks_ext.rows.json_schema import TASK_KEYS, VERSION, known_keys, task_schema
from medtasks_ext.rows.spec import DatasetSpec
from medtasks_ext.runner.evaluate import Settings, TaskResult, build_task, evaluate_task

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance


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


@dataclass(frozen=True)
class Check:
    """One thing that a dataset folder must satisfy."""

    what: str  # what holds if there is no problem
    problems: list[str] = field(default_factory=list)  # what is wrong and how it is mended, one each
    done: bool = True  # False where an earlier problem has to be mended first


def validate_dataset(registry: Registry, dataset: Dataset) -> list[str]:
    """What is wrong with a dataset folder, in words; empty when nothing is."""
    return [problem for check in checks_of(registry, dataset) for problem in check.problems]


def checks_of(registry: Registry, dataset: Dataset) -> list[Check]:
    """What a dataset folder must satisfy, point by point, and what is wrong.

    The task file, placeholders, the sample rows, and, through lm-eval itself in every
    strategy, that prompts render, that an oracle gets `oracle_max`, and that garbage gets what the
    suite's rule says. A task for judges has no score of its own: an oracle must get ROUGE-L 1 there.
    """
    folder = _Folder(registry, dataset)
    checks: list[Check] = []
    blocked = False
    for what, find, is_needed in folder.steps():
        if blocked:
            checks.append(Check(what, done=False))
            continue
        try:
            problems = list(find())
            blocked = is_needed and bool(problems)
        except MedtasksError as error:
            problems, blocked = [str(error)], True
        checks.append(Check(what, [folder.shortened(problem) for problem in problems]))
    return checks


class _Folder:
    """One dataset folder under examination. The methods below give problems, in words."""

    def __init__(self, registry: Registry, dataset: Dataset) -> None:
        self.registry, self.dataset = registry, dataset

    def steps(self) -> list[tuple[str, Callable[[], Iterator[str]], bool]]:
        """(what holds, what finds problems, whether later steps need it)."""
        return [
            (f"{TASK_FILE} can be read, and says all that it must", self.task_file, True),
            ("nothing is left to fill in", self.placeholders, False),
            ("access, download and version agree", self.facts, False),
            (f"sample rows: at least {MIN_FEWSHOT} few-shot and {MIN_TEST} test", self.samples, True),
            *(
                (f"{strategy}: prompts, a perfect answer, a meaningless one", self._runs(strategy), False)
                for strategy in STRATEGIES
            ),
        ]

    def shortened(self, problem: str) -> str:
        """A message with paths as seen from the folder, on lines of its own depth."""
        problem = problem.replace(f"{self.dataset.folder}/", "").replace(f"{self.registry.root}/", "")
        return problem.replace("\n  →", " →")

    # ------------------------------------------------------------------ files

    @cached_property
    def _spec(self) -> DatasetSpec:
        return DatasetSpec(**self.dataset.blocks)

    @cached_property
    def _form(self) -> AnswerFormat:
        return answer_format(self._spec.answer, where=self.dataset.file)

    def task_file(self) -> Iterator[str]:
        config = self.dataset.config
        for key in config.keys() - TASK_KEYS.keys():
            yield f"{TASK_FILE}: {key}: unknown key{near(key, TASK_KEYS)}"
        for key, remedy in _NEEDED.items():
            if key not in (*BLOCKS, *config):
                yield f"{TASK_FILE}: {key}: missing key → {remedy}"
        if config.get("class") not in (None, f"!function {TASK_CLASS}"):
            yield f"{TASK_FILE}: class: not the class of all tasks → write `!function {TASK_CLASS}`"
        if config.get("strategy") not in (None, "zero_shot"):
            yield (
                f"{TASK_FILE}: strategy: this file is asked zero-shot"
                " → leave the key out; `medtasks build` writes the files of the others"
            )
        folder = self.dataset.key
        if config.get("dataset") not in (None, folder):
            yield f"{TASK_FILE}: dataset: {config['dataset']!r} is not this folder → write {folder}"
        about, answer, metadata = config.get("about"), config.get("answer"), config.get("metadata")
        if isinstance(metadata, dict):
            for key in metadata.keys() - {"version"}:
                yield f"{TASK_FILE}: metadata.{key}: unknown key{near(str(key), ['version'])}"
        if isinstance(about, dict):
            facts = self.dataset.facts

            def read(written: Any) -> Metadata:
                return Metadata.read(written, facts)

            yield from _faults(read, about, "about", _meanings())
            suite, task = self.dataset.suite.id, config.get("task")
            if suite != NO_SUITE and isinstance(task, str) and not task.startswith(f"{suite}_"):
                yield f"{TASK_FILE}: task: {task!r} does not begin with {suite}_ → rename it"
        yield from _faults(DatasetSpec.model_validate, self.dataset.blocks, "", _NEEDED)
        if isinstance(answer, dict):
            faults = list(_answer_faults(answer))
            yield from faults or _scoring_faults(self.dataset)

    def placeholders(self) -> Iterator[str]:
        files = [file for file in sorted(self.dataset.folder.iterdir()) if file.suffix in (".yaml", ".sql")]
        for file in files:
            for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
                if PLACEHOLDER in line:
                    text = line[line.index(PLACEHOLDER) :].strip(" '\"}")
                    yield f"{file.name}, line {number}: {text}"
        if self.dataset.sample_file.is_file():
            lines = list(numbered_lines(self.dataset.sample_file, remedy="write sample rows"))
            if left := [number for number, line in lines if PLACEHOLDER in line]:
                yield (
                    f"sample.jsonl: {len(left)} of {len(lines)} rows are placeholders (lines {some(left)})"
                    " → write invented rows; never real or altered patient data"
                )

    def facts(self) -> Iterator[str]:
        access, download = self.dataset.metadata.access, self._spec.rows.download
        if download and download.terms is None and access != "open":
            yield (
                f"{TASK_FILE}: rows.download is there, but access is {access}"
                " → only open data may be downloaded without terms: name them under rows.download.terms"
            )
        if not re.fullmatch(VERSION, self.dataset.version):
            yield (f"{TASK_FILE}: metadata.version is {self.dataset.version!r} → write N-X, for example 1-A")
        known = entries_of([self.dataset])
        for key in self.dataset.metadata.axis("citation"):
            if key not in known and not key.startswith(PLACEHOLDER):
                yield f"{TASK_FILE}: about.citation: {key} has no entry → write it into {BESIDE} here"

    # ------------------------------------------------------------------ rows

    def samples(self) -> Iterator[str]:
        if not self.dataset.sample_file.is_file():
            yield f"sample.jsonl: missing → write at least {MIN_FEWSHOT} few-shot and {MIN_TEST} test rows"
            return
        found = check_rows(self.dataset, "sample")
        yield from map(str, found.faults)
        if not found.test:
            return
        test, fewshot = found.test, found.fewshot
        rows = len({document.get("item", document["id"]) for document in test})
        if rows < MIN_TEST or len(fewshot) < MIN_FEWSHOT:
            yield (
                f"sample.jsonl: {len(fewshot)} few-shot and {rows} test rows"
                f" → write at least {MIN_FEWSHOT} and {MIN_TEST} (`_split` says which a row is)"
            )
        if absent := self._form.not_covered([document["gold"] for document in (*test, *fewshot)]):
            yield f"sample.jsonl: no row shows: {', '.join(absent)} → add a row for each"
        yield from self._judging(test)

    def _judging(self, documents: list[Any]) -> Iterator[str]:
        judge = self._spec.judge
        if judge is None:
            return
        for name, text in {"role": judge.role, **judge.axes}.items():
            if not text.strip():
                yield f"{TASK_FILE}: judge: {name} says nothing → say it in a sentence (docs/judging.md)"
        for document in documents:
            if "{{" in document["question"] or not document["question"].strip():
                yield (
                    f"{TASK_FILE}: judge.question is not rendered for row {document['id']}:"
                    f" {document['question'][:60]!r} → name fields of the row in it"
                )

    # ------------------------------------------------------------------ runs

    def _runs(self, strategy: str) -> Callable[[], Iterator[str]]:
        return lambda: self.runs(strategy)

    def runs(self, strategy: str) -> Iterator[str]:
        name, registry = self.dataset.task(strategy), self._own_registry
        documents = build_task(registry, name, Settings(data="sample", prompts="own")).eval_docs
        for document in documents:
            if "{{" in document["prompt"] + document["system"] or not document["prompt"].strip():
                yield (
                    f"{name}: the prompt of row {document['id']} is not rendered: {document['prompt'][:60]!r}"
                    " → name columns or fields of the row in it"
                )
        perfect = _evaluated(registry, name, Oracle())
        if unread := [
            str(sample["doc"]["id"]) for sample in perfect.samples if not sample["filtered_resps"][0]["valid"]
        ]:
            yield (
                f"{name}: the gold answers of {len(unread)} rows ({some(unread)}) cannot be read as answers"
                f" → `medtasks preview {name} --data sample` shows how they are read"
            )
        if self._spec.judge:
            yield from self._unjudged(name, perfect, documents)
        elif "score" in perfect.metrics or tokeniser(self.dataset.metadata.language) is not None:
            yield from self._scored(name, perfect.metrics, documents)
        # else the score needs NLTK data that is not installed; a warning says which

    @cached_property
    def _own_registry(self) -> Registry:
        """The registry with this dataset in it, also where the folder lies outside of it."""
        if self.registry.datasets.get(self.dataset.id) == self.dataset:
            return self.registry
        return Registry(self.dataset.folder.parents[1])

    def _scored(self, name: str, perfect: dict[str, float], documents: list[Any]) -> Iterator[str]:
        expected = self.dataset.metadata.oracle_max
        if expected == "per_document":
            expected = sum(self._form.ceiling(document["gold"]) for document in documents) / len(documents)
        if "score" not in perfect or not (
            math.isclose(perfect["score"], expected, abs_tol=1e-9)
            if expected != "unbounded"
            else perfect["score"] >= 1
        ):
            yield (
                f"{name}: an oracle, which answers with the gold, scores {perfect.get('score')};"
                f" oracle_max says {expected} → mend prompt.target or `answer:`, or set oracle_max"
            )
        nothing = _evaluated(self._own_registry, name, _Same()).metrics
        allowed = _garbage_score(documents, self._form)
        if not math.isclose(nothing["score"], allowed, abs_tol=1e-9):
            yield (
                f"{name}: garbage scores {nothing['score']}, the rule for invalid answers gives {allowed}"
                " → mend `answer:` (docs/answers.md)"
            )

    def _unjudged(self, name: str, perfect: TaskResult, documents: list[Any]) -> Iterator[str]:
        """A task whose score comes from judges: what it reports before they have read the answers."""
        if "score" in perfect.metrics:
            yield (
                f"{name}: has a score before judges have read the answers"
                " → leave `metric_list:` to the answer kind, or leave `judge:` out"
            )
            return
        # where the target is not what answers are compared with, an oracle does not reach 1
        compared = all(document["target"].strip() == document["gold"] for document in documents)
        reached = perfect.metrics["rouge_l"]
        if compared and not math.isclose(reached, 1, abs_tol=1e-9):
            yield f"{name}: an oracle gets rouge_l {reached} instead of 1 → mend prompt.target"
        for text in (GARBAGE, ""):
            got = _evaluated(self._own_registry, name, _Same(text)).metrics["rouge_l"]
            if got != 0:
                yield f"{name}: the answer {text!r} gets rouge_l {got} instead of 0 → mend `answer:`"


#: Keys that every task file has, and what belongs there.
_NEEDED = {
    "class": f"write `!function {TASK_CLASS}`",
    "task": "name the task: SUITE_DATASET",
    "dataset": "name the folder: SUITE/DATASET",
    **dict.fromkeys(("rows", "prompt", "answer", "about"), "see the example in CONTRIBUTING.md"),
    "metadata": "write `version: 1-A` below it",
}


def _faults(
    read: Callable[[Any], Any],
    block: Any,
    root: str,
    meanings: Mapping[str, str] | None = None,
    skip: int = 0,
) -> Iterator[str]:
    """What a model finds wrong with a block.

    Args:
        read: validates it.
        root: where it is.
        meanings: key -> what belongs there, said of keys that are missing.
        skip: leading parts of an error's place that are no keys.
    """
    try:
        read(block)
    except ValidationError as error:
        for item in error.errors():
            place = item["loc"][skip:]
            meaning = (meanings or {}).get(str(place[0])) if item["type"] == "missing" and place else None
            fault = describe({**item, "loc": place}, root, known_keys()).lstrip(".")
            yield f"{TASK_FILE}: {fault}" + (f" → {meaning}" if meaning else "")


def _meanings() -> dict[str, str]:
    record = task_schema()["$defs"]["Metadata"]["properties"]
    return {key: part["description"] for key, part in record.items() if "description" in part}


def _answer_faults(answer: dict[str, Any]) -> Iterator[str]:
    known = list(any_format().json_schema()["discriminator"]["mapping"])
    if (kind := answer.get("kind")) not in known:
        yield (
            f"{TASK_FILE}: answer.kind: unknown kind {kind!r}{near(str(kind), known)}"
            f" → one of: {', '.join(known)}"
        )
        return
    yield from _faults(any_format().validate_python, answer, "answer", skip=1)


def _scoring_faults(dataset: Dataset) -> Iterator[str]:
    try:
        _ = dataset.process_results, dataset.metric_list
    except MedtasksError as error:
        yield f"{TASK_FILE}: {error.what} → {error.remedy}"


def _evaluated(registry: Registry, name: str, model: Baseline) -> TaskResult:
    settings = Settings(data="sample", prompts="own")
    outcome = evaluate_task(model, build_task(registry, name, settings), settings)
    assert outcome is not None
    return outcome


def _garbage_score(documents: list[Any], form: AnswerFormat) -> float:
    if not form.draws_invalid:
        return sum(form.invalid_score(document["gold"]) for document in documents) / len(documents)
    hits = [form.labels_of(document["gold"]) == [random_label(document)] for document in documents]
    return sum(hits) / len(hits)
