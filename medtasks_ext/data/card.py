"""The data card of a dataset's rows: counts, labels, lengths, repeats, ids, an oracle's score. No text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.registry.functions import function_named

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.prompts.documents import Documents
    from medtasks_ext.registry import Dataset

#: A word for a record number and the number, or a number as long as one.
_RECORD_NUMBER = re.compile(r"(mrn|patient|pat_?id|ssn)[ _.:#-]*\d|\d{7}", re.IGNORECASE)
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Lengths:
    """Characters of texts."""

    shortest: int
    median: int
    longest: int


@dataclass(frozen=True)
class Card:
    """What the rows of a dataset are like."""

    n_test: int  # questions that can be scored; one that is asked in several trials counts once
    n_paper: int  # as many has the suite's own test part
    labels: dict[str, int]  # gold label -> documents, where the answer format lists its labels
    prompt: Lengths  # lengths of the prompts
    answer: Lengths  # lengths of the gold answers
    n_repeated: int  # documents whose prompt an earlier one has
    n_personal_ids: int  # rows whose id looks like a name or a record number, where they are not open
    oracle: float | None  # what the gold answers themselves score; None where judges give the score
    highest: float | None  # what they should score, by the task file; None: they may score anything

    @property
    def reaches_highest(self) -> bool:
        """Whether an oracle scores what it should."""
        if self.oracle is None or self.highest is None:
            return True
        return math.isclose(self.oracle, self.highest, abs_tol=_TOLERANCE)

    def notes(self) -> list[str]:
        """What is worth knowing before a run."""
        found = []
        if self.n_test != self.n_paper:
            found.append(f"{self.n_test:,} test rows; the suite's own test part has {self.n_paper:,}")
        if len(self.labels) == 1 and self.n_test > 1:
            found.append(f"all gold answers are {next(iter(self.labels))}: any model that says so is right")
        if self.n_repeated:
            found.append(f"{self.n_repeated:,} prompts are asked more than once")
        if self.n_personal_ids:
            found.append(
                f"{self.n_personal_ids:,} ids look like names or record numbers; ids stay with the answers"
            )
        return found

    def record(self) -> Json:
        """As JSON."""
        return asdict(self)


def card_of(dataset: Dataset, documents: Documents) -> Card:
    """The card of documents as zero-shot prompts.

    Args:
        documents: at least one.
    """
    ids = {str(item.get("item", item["id"])) for item in documents}
    prompts = Counter(hash((item["system"], item["prompt"])) for item in documents)
    golds = [item for item in documents if item["gold"] is not None]
    oracle, highest = _oracle(dataset, golds)
    return Card(
        n_test=len(ids),
        n_paper=dataset.metadata.n_test,
        labels=_labels(dataset, golds),
        prompt=_lengths(len(item["prompt"]) for item in documents),
        answer=_lengths(len(item["target"]) for item in documents),
        n_repeated=len(documents) - len(prompts),
        n_personal_ids=0 if dataset.metadata.access == "open" else sum(map(_looks_personal, ids)),
        oracle=oracle,
        highest=highest,
    )


def _lengths(sizes: Iterable[int]) -> Lengths:
    found = sorted(sizes)
    return Lengths(found[0], int(median(found)), found[-1])


def _looks_personal(name: str) -> bool:
    words = re.split(r"[ _,.-]+", name)
    names = [word for word in words if len(word) > 1 and word.isalpha() and word[0].isupper()]
    return len(names) > 1 or _RECORD_NUMBER.search(name) is not None


def _labels(dataset: Dataset, golds: list[Any]) -> dict[str, int]:
    """Labels that the task file lists; others may be a row's text."""
    answer = dataset.blocks["answer"]
    listed = [*answer.get("letters", ()), *answer.get("labels", ())]
    counts = Counter(
        str(label)
        for item in golds
        for label in (item["gold"] if isinstance(item["gold"], list) else [item["gold"]])
        if isinstance(label, str)
    )
    return {str(label): counts[str(label)] for label in listed if counts[str(label)]}


def _oracle(dataset: Dataset, golds: list[Any]) -> tuple[float | None, float | None]:
    """What the gold answers score when they are read as a model's replies, and what they should."""
    metric = next((item for item in dataset.metric_list if item["metric"] == "score"), None)
    if metric is None or not golds or "judge" in dataset.blocks:
        return None, None
    answers, process = (
        answer_format(dataset.blocks["answer"], where=dataset.file),
        _function(dataset.process_results),
    )
    read = ParseAnswer(dataset.blocks["answer"]).apply(([item["target"]] for item in golds), golds)
    scores = [process(item, [answer]).get("score") for item, answer in zip(golds, read, strict=True)]
    if any(score is None for score in scores):
        return None, None
    aggregation = metric["aggregation"]
    mean = sum(scores) / len(scores) if aggregation == "mean" else float(_function(aggregation)(scores))
    declared = dataset.metadata.oracle_max
    if declared == "unbounded":
        return mean, None
    if declared == "per_document":
        declared = sum(answers.ceiling(item["gold"]) for item in golds) / len(golds)
    return mean, float(declared)


def _function(value: Any) -> Any:
    return function_named(value) if isinstance(value, str) else value
