"""What a dataset folder must satisfy before it is accepted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.data.check import causes_of
from medtasks_ext.data.content import ContentCheck
from medtasks_ext.data.declared import MIN_FEWSHOT, MIN_TEST, DeclaredFolder, Step
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.metrics.common import random_label
from medtasks_ext.metrics.generation import tokeniser
from medtasks_ext.models import Baseline, Oracle, Says
from medtasks_ext.prompts.documents import shown
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import STRATEGIES, Registry
from medtasks_ext.registry.tasks import TASK_FILE
from medtasks_ext.results.document_scores import document_scores, score_statistic
from medtasks_ext.runner.evaluate import Settings, TaskResult, build_task, evaluate_task

if TYPE_CHECKING:
    from medtasks_ext.harness import Instance

GARBAGE = "◇◇◇"
#: Share of rows in which another's gold answer may score as the row's own: some suites score a part of it.
_ALIKE = 0.25
_SETTINGS = Settings(data="sample", prompts="own")


class _Others(Baseline):
    """Answers each document with the gold answer of the next one that has another, if one has."""

    def answer(self, request: Instance, requests: list[Instance]) -> str:
        place = requests.index(request)
        others = (*requests[place + 1 :], *requests[:place])
        return next((str(one.doc["target"]) for one in others if one.doc["gold"] != request.doc["gold"]), "")


class RunFolder(DeclaredFolder):
    """One dataset folder, its tasks built and run.

    Through lm-eval, in every strategy, prompts render, an oracle gets `oracle_max`, and garbage what the
    suite's rule says. A task for judges has no score of its own: an oracle must get ROUGE-L 1 there.
    """

    def steps(self) -> list[Step]:
        try:
            strategies = self.dataset.strategies
        except MedtasksError:  # the first step says what is wrong with the file
            strategies = STRATEGIES
        what = "prompts, a perfect answer, a meaningless one"
        return [
            *self.static_steps(),
            (f"sample rows: at least {MIN_FEWSHOT} few-shot and {MIN_TEST} test", self.samples, True),
            ("a wrong answer gets less than the right one", self.wrong_answers, False),
            *((f"{strategy}: {what}", partial(self.runs, strategy), False) for strategy in strategies),
        ]

    def samples(self) -> Iterator[str]:
        if not self.dataset.sample_file.is_file():
            yield f"sample.jsonl: missing → write at least {MIN_FEWSHOT} few-shot and {MIN_TEST} test rows"
            return
        content = ContentCheck(self.dataset)
        found = check_rows(self.dataset, "sample", examine=content.look)
        for cause in [*causes_of(found.faults), *causes_of(content.faults())]:
            named = f" ({some(cause['rows'])})" if len(cause["rows"]) > 1 else ""
            yield f"{Path(cause['file']).name}: {cause['cause']}{named} → {cause['remedy']}"
        test, fewshot = found.test, found.fewshot
        if not test:
            return
        rows = len({document.get("item", document["id"]) for document in test})
        if rows < MIN_TEST or len(fewshot) < MIN_FEWSHOT:
            yield (
                f"sample.jsonl: {len(fewshot)} few-shot and {rows} test rows"
                f" → write at least {MIN_FEWSHOT} and {MIN_TEST} (`_split` says which a row is)"
            )
        source, judge = self._spec.rows, self._spec.judge
        if not source.skip_blank and not any(form.where for form in source.schemas):
            left = (f"{n} rows {what}" for what, n in found.notes.items() if what.startswith("left out"))
            yield from (f"sample.jsonl: {what} → write rows that count" for what in left)
        if without := [document.row for document in test if document["gold"] is None]:
            yield f"sample.jsonl: {some(without)}: no gold answer → write one"
        for name, text in ({"role": judge.role, **judge.axes} if judge else {}).items():
            if not text.strip():
                yield f"{TASK_FILE}: judge: {name} says nothing → say it in a sentence (docs/judges.md)"
        for document in test if judge else ():
            if "{{" in document["question"] or not document["question"].strip():
                yield (
                    f"{TASK_FILE}: judge.question is not rendered for row {document['id']}:"
                    f" {document['question'][:60]!r} → name fields of the row in it"
                )

    def wrong_answers(self) -> Iterator[str]:
        """Each row answered with another row's gold answer: none may get what its own gets."""
        if self._spec.judge:
            return
        name, statistic = self.dataset.task("zero_shot"), score_statistic(self.dataset)
        each = (self._evaluated(name, model).samples for model in (Oracle(), _Others()))
        right, wrong = (document_scores(samples, statistic) for samples in each)
        # a gold answer that the suite's own reading loses gets 0, as any other does
        pairs = zip(right.documents, right.scores, wrong.scores, strict=True)
        alike = [row for row, one, other in pairs if other >= one > 0]
        if len(alike) > _ALIKE * len(right.documents):
            yield (
                f"{name}: another row's gold answer scores as much as the row's own in {len(alike)} rows"
                f" ({some(alike)}) → mend `answer:`, so that answers are told apart"
            )

    def runs(self, strategy: str) -> Iterator[str]:
        name = self.dataset.task(strategy)
        documents = build_task(self._own_registry, name, _SETTINGS).eval_docs
        texts = {str(one["id"]): (one["prompt"], shown(one) + one["system"]) for one in documents}
        if odd := [row for row, (prompt, text) in texts.items() if "{{" in text or not prompt.strip()]:
            yield f"{name}: prompts of {some(odd)} are not rendered → name columns or fields of the row"
        perfect = self._evaluated(name, Oracle())
        samples = perfect.samples
        if unread := [str(one["doc"]["id"]) for one in samples if not one["filtered_resps"][0]["valid"]]:
            yield (
                f"{name}: the gold answers of {len(unread)} rows ({some(unread)}) cannot be read as answers"
                f" → `medtasks preview {name} --data sample` shows how they are read"
            )
        has_score = "score" in perfect.metrics
        if self._spec.judge and has_score:
            yield (
                f"{name}: has a score before judges have read the answers"
                " → leave `metric_list:` to the answer kind, or leave `judge:` out"
            )
        elif self._spec.judge or has_score or tokeniser(self.dataset.metadata.language) is not None:
            yield from self._scored(name, perfect.metrics, documents)
        # else the score needs NLTK data that is not installed; a warning says which

    @cached_property
    def _own_registry(self) -> Registry:
        """The registry with this dataset in it, also where the folder lies outside of it."""
        if self.registry.datasets.get(self.dataset.id) == self.dataset:
            return self.registry
        return Registry(self.dataset.folder.parents[1])

    def _evaluated(self, name: str, model: Baseline) -> TaskResult:
        task = build_task(self._own_registry, name, _SETTINGS)
        task.set_config("repeats", 1)
        return evaluate_task(model, task, _SETTINGS)

    def _scored(self, name: str, perfect: dict[str, float], documents: list[Any]) -> Iterator[str]:
        """What an oracle and garbage score, or get as ROUGE-L where judges give the score."""
        n, form, expected = len(documents), self._form, self.dataset.metadata.oracle_max
        allowed = (
            form.labels_of(document["gold"]) == [random_label(document)]
            if form.draws_invalid
            else form.invalid_score(document["gold"])
            for document in documents
        )
        metric, least = "score", 0.0 if self._spec.judge else sum(allowed) / n
        if self._spec.judge:
            metric = "rouge_l"
            # where the target is not what answers are compared with, an oracle does not reach 1
            compared = all(document["target"].strip() == document["gold"] for document in documents)
            expected = 1.0 if compared else perfect[metric]
        elif expected == "per_document":
            expected = sum(form.ceiling(document["gold"]) for document in documents) / n
        reached = perfect.get(metric, math.nan)
        if not (reached >= 1 if expected == "unbounded" else math.isclose(reached, expected, abs_tol=1e-9)):
            yield (
                f"{name}: an oracle, which answers with the gold, has {metric} {reached}, not {expected}"
                " → mend prompt.target or `answer:`, or set oracle_max"
            )
        nothing = self._evaluated(name, Says(GARBAGE)).metrics[metric]
        if not math.isclose(nothing, least, abs_tol=1e-9):
            yield (
                f"{name}: garbage has {metric} {nothing}, the rule for invalid answers gives {least}"
                " → mend `answer:` (docs/keys.md)"
            )
