"""What every metric shares: the common fields of a document's result, and counting."""

from __future__ import annotations

import random
from typing import Any

from medtasks_ext.seed import SEED
from medtasks_ext.stats.statistic import Statistic, as_they_are, f1_scores, ratios


def result(document: dict[str, Any], parsed: dict[str, Any], **metrics: Any) -> dict[str, Any]:
    """The metrics of one document, with what every task reports.

    `scored` is 1 where the document has a gold answer; without one, no metric but `valid` is
    reported, so that a score is absent rather than 0. `SAMPLE_DATA` marks synthetic rows in
    every table.
    """
    scored = document["gold"] is not None
    return {
        **(metrics if scored else {}),
        "valid": float(parsed["valid"]),
        "unclosed_reasoning": float(parsed["unclosed_reasoning"]),
        "scored": float(scored),
        **({"SAMPLE_DATA": 1.0} if document["data"] == "sample" else {}),
    }


def random_label(document: dict[str, Any]) -> str:
    """A label drawn uniformly from the distinct gold labels of the test file, for an invalid answer.

    The official draw comes from one global generator in an order that depends on string hashing;
    this one depends on the document alone (seed 42), so a score is reproducible whatever else ran.
    """
    labels: list[str] = document.loaded.labels  # type: ignore[attr-defined]
    return random.Random(f"{SEED} {document['id']}").choice(labels)


def f1_from_counts(tp: float, fp: float, fn: float) -> float:
    """Harmonic mean of precision and recall; 0 where it is undefined.

    Computed from both parts, as the official scorers do, rather than as 2tp / (2tp + fp + fn).
    """
    precision, recall = ratio(tp, tp + fp), ratio(tp, tp + fn)
    return ratio(2 * precision * recall, precision + recall)


def ratio(part: float, whole: float) -> float:
    """part / whole, 0 where there is no whole."""
    return part / whole if whole else 0.0


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
