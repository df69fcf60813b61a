"""Accuracy and F1 of labels, of label lists and of code lists (BRIDGE Methods, `metric/classification.py`).

In BRIDGE an invalid answer is replaced by a label drawn uniformly from the gold labels of the test file, so
empty answers do not score exactly 0. The label space of lists is the distinct gold labels of the whole test
file. Predicted labels outside it vanish: they are no false positives and do not break an exact match. Labels
that no document of a part of the file shows (`--limit`) have no part in its F1. A code list is never invalid.
"""

from __future__ import annotations

from collections.abc import Sequence

from medtasks_ext.answers.formats import Parsed
from medtasks_ext.metrics.common import Document, Metrics, metrics_of, random_label, scorer, set_counts
from medtasks_ext.stats.statistic import Matrix, Statistic, by_label, label_counts, macro_f1, pooled_f1

#: (gold label, predicted label)
Pair = tuple[str, str]


def process_label(document: Document, results: list[Parsed]) -> Metrics:
    """BRIDGE: an invalid answer counts as a label drawn from the gold labels of the test file."""

    def counted(document: Document, parsed: Parsed) -> str:
        return parsed["answer"] if parsed["valid"] else random_label(document)

    return metrics_of(document, results[0], _with_micro, counted=counted)


@scorer
def process_label_invalid_is_wrong(document: Document, gold: str, answer: str | None) -> Metrics:
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


#: mean F1 over the distinct gold labels of the documents, zero where undefined
f1_macro = Statistic("f1_macro", _counts, lambda sums: macro_f1(sums, by_label(sums)[2] > 0), labels=_labels)

#: F1 of the counts pooled over the distinct gold labels; equals accuracy only if every prediction is
#: one of them
f1_micro = Statistic("f1_micro", _counts, lambda sums: pooled_f1(sums, by_label(sums)[2] > 0), labels=_labels)


#: (gold labels, predicted labels of the label space)
Lists = tuple[list[str], list[str]]


def process_labels(document: Document, results: list[Parsed]) -> Metrics:
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


def _list_counts(pairs: Sequence[Lists]) -> Matrix:
    return label_counts([gold for gold, _ in pairs], [found for _, found in pairs], _list_labels(pairs))


def _list_labels(pairs: Sequence[Lists]) -> list[str]:
    return sorted({label for pair in pairs for side in pair for label in side})


#: mean F1 over all labels that occur, zero where undefined. The official bootstrap keeps the columns
#: of the whole file: a label that a resample does not show counts as 0.
f1_macro_of_lists = Statistic(
    "f1_macro",
    _list_counts,
    lambda sums: macro_f1(sums, by_label(sums)[1] + by_label(sums)[2] > 0),
    published=macro_f1,
    labels=_list_labels,
)

#: F1 of the counts pooled over all labels
f1_micro_of_lists = Statistic("f1_micro", _list_counts, pooled_f1, labels=_list_labels)
