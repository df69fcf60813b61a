"""Exact-match accuracy and F1 of label lists and code lists (BRIDGE, `metric/classification.py`).

The label space is the distinct gold labels of the whole test file. Predicted labels outside it
vanish: they are no false positives and do not break an exact match. Labels that no document of a
part of the file shows (`--limit`) have no part in its F1. A code list is never invalid.
"""

from __future__ import annotations

from collections.abc import Sequence

from medtasks_ext.answers.formats import Parsed
from medtasks_ext.metrics.common import Document, Metrics, metrics_of, random_label, set_counts
from medtasks_ext.stats.statistic import Array, Matrix, Statistic, by_label, label_counts, macro_f1, pooled_f1

#: (gold labels, predicted labels of the label space)
Pair = tuple[list[str], list[str]]


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """An invalid answer counts as one label drawn from the label space."""
    return metrics_of(document, results[0], _statistics, counted=_in_label_space)


def _in_label_space(document: Document, parsed: Parsed) -> list[str]:
    answer = parsed["answer"] if parsed["valid"] else [random_label(document)]
    return sorted(set(answer) & document.loaded.label_space)  # type: ignore[attr-defined]


def _statistics(document: Document, gold: list[str], answer: list[str] | None) -> Metrics:
    counts = set_counts(set(gold), set(answer or ()))
    return {
        **dict.fromkeys(("score", "acc"), float(counts[1] == counts[2] == 0)),
        **dict.fromkeys(("f1_macro", "f1_micro"), (gold, answer or [])),
    }


def _counts(pairs: Sequence[Pair]) -> Matrix:
    return label_counts([gold for gold, _ in pairs], [found for _, found in pairs], _labels(pairs))


def _labels(pairs: Sequence[Pair]) -> list[str]:
    return sorted({label for pair in pairs for side in pair for label in side})


def _occur(sums: Array) -> Array:
    _, predicted, gold = by_label(sums)
    occurs: Array = predicted + gold > 0
    return occurs


#: mean F1 over all labels that occur, zero where undefined. The official bootstrap keeps the columns
#: of the whole file: a label that a resample does not show counts as 0.
f1_macro = Statistic(
    "f1_macro", _counts, lambda sums: macro_f1(sums, _occur(sums)), published=macro_f1, labels=_labels
)

#: F1 of the counts pooled over all labels
f1_micro = Statistic("f1_micro", _counts, pooled_f1, labels=_labels)
