"""Accuracy and F1 of single-label classification (BRIDGE Methods, `metric/classification.py`).

In BRIDGE an invalid answer is replaced by a label drawn uniformly from the gold labels of the test file, so
empty answers do not score exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from medtasks_ext.answers.formats import Parsed
from medtasks_ext.metrics.common import Document, Metrics, metrics_of, random_label, scorer
from medtasks_ext.stats.statistic import Array, Matrix, Statistic, by_label, label_counts, macro_f1, pooled_f1

#: (gold label, predicted label)
Pair = tuple[str, str]


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """BRIDGE: an invalid answer counts as a label drawn from the gold labels of the test file."""

    def counted(document: Document, parsed: Parsed) -> str:
        return parsed["answer"] if parsed["valid"] else random_label(document)

    return metrics_of(document, results[0], _with_micro, counted=counted)


@scorer
def process_results_invalid_is_wrong(document: Document, gold: str, answer: str | None) -> Metrics:
    right = float(answer == gold)
    return {"score": right, "acc": right, "f1_macro": (gold, answer or "")}


def _with_micro(document: Document, gold: str, answer: str) -> Metrics:
    right, pair = float(answer == gold), (gold, answer or "")
    return {"score": right, "acc": right, "f1_macro": pair, "f1_micro": pair}


def _counts(pairs: Sequence[Pair]) -> Matrix:
    """Columns for the distinct gold labels; other predicted labels cost recall alone."""
    gold, predicted = [pair[:1] for pair in pairs], [pair[1:] for pair in pairs]
    return label_counts(gold, predicted, _labels(pairs))


def _labels(pairs: Sequence[Pair]) -> list[str]:
    return sorted({pair[0] for pair in pairs})


def _have_gold(sums: Array) -> Array:
    return by_label(sums)[2] > 0


#: mean F1 over the distinct gold labels of the documents, zero where undefined
f1_macro = Statistic("f1_macro", _counts, lambda sums: macro_f1(sums, _have_gold(sums)), labels=_labels)

#: F1 of the counts pooled over the distinct gold labels; equals accuracy only if every prediction is
#: one of them
f1_micro = Statistic("f1_micro", _counts, lambda sums: pooled_f1(sums, _have_gold(sums)), labels=_labels)
