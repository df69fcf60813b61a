"""What every metric shares: the common fields of a document's result, and counting."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from medtasks_ext.answers.formats import Parsed
from medtasks_ext.process import SEED
from medtasks_ext.stats.statistic import Statistic, as_they_are, f1_scores, ratios

#: a document as its task loads it; `loaded` is a reference to what all documents of the task share
Document: TypeAlias = dict[str, Any]
#: metric -> the statistics of one document, which its aggregation pools
Metrics: TypeAlias = "dict[str, float | tuple[Any, ...] | list[Any]]"
#: (document, gold, answer) -> its metrics; None stands for an answer that cannot be read
Score: TypeAlias = Callable[[Document, Any, Any], Metrics]


def scorer(score: Score) -> Callable[[Document, list[Parsed]], Metrics]:
    """`process_results` of a task, by what it gives to a gold and an answer, with what every task reports.

    `valid` says whether an answer could be read. `scored` is 1 where the document has a gold answer and its
    score needs no judge; without gold, no metric of quality is reported, so that a score is absent rather
    than 0. `SAMPLE_DATA` marks synthetic rows in every table.
    """

    @wraps(score)
    def process_results(document: Document, results: list[Parsed]) -> Metrics:
        gold, parsed = document["gold"], results[0]
        metrics = {} if gold is None else score(document, gold, parsed["answer"])
        scored = metrics.pop("scored", float(gold is not None))
        return {
            **metrics,
            "valid": float(parsed["valid"]),
            "unclosed_reasoning": float(parsed["unclosed_reasoning"]),
            "scored": scored,
            **({"SAMPLE_DATA": 1.0} if document["data"] == "sample" else {}),
        }

    return process_results


def random_label(document: Document) -> str:
    """A label drawn uniformly from the gold labels of the test file, by seed 42 and the document alone."""
    labels: list[str] = document.loaded.labels  # type: ignore[attr-defined]
    return random.Random(f"{SEED} {document['id']}").choice(labels)


def language_of(document: Document) -> str:
    return str(document.loaded.record["language"])  # type: ignore[attr-defined]


#: F1, precision and recall of pooled (tp, fp, fn)
micro_f1 = Statistic(
    "micro_f1", as_they_are, lambda sums: f1_scores(sums[..., 0], sums[..., 1], sums[..., 2])
)
micro_precision = Statistic(
    "micro_precision", as_they_are, lambda sums: ratios(sums[..., 0], sums[..., 0] + sums[..., 1])
)
micro_recall = Statistic(
    "micro_recall", as_they_are, lambda sums: ratios(sums[..., 0], sums[..., 0] + sums[..., 2])
)


def set_counts(gold: set[Any], predicted: set[Any]) -> tuple[int, int, int]:
    """(tp, fp, fn) of two sets."""
    return len(gold & predicted), len(predicted - gold), len(gold - predicted)
