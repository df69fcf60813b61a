"""Accuracy and F1 of labels, of label lists and of code lists (BRIDGE Methods, `metric/classification.py`).

An answer of None counts as a label drawn from the gold labels of the test file, so it may score.
"""

from __future__ import annotations

from collections.abc import Sequence

from medtasks_ext.metrics.common import Document, Metrics, random_label, scorer
from medtasks_ext.stats.statistic import Matrix, Statistic, by_label, label_counts, macro_f1, pooled_f1

#: (gold label, predicted label)
Pair = tuple[str, str]


@scorer
def process_label(document: Document, gold: str, answer: str | None) -> Metrics:
    counted = random_label(document) if answer is None else answer
    right, pair = float(counted == gold), (gold, counted)
    return {"score": right, "acc": right, "f1_macro": pair, "f1_micro": pair}


@scorer
def process_label_invalid_is_wrong(document: Document, gold: str, answer: str | None) -> Metrics:
    right = float(answer == gold)
    return {"score": right, "acc": right, "f1_macro": (gold, answer or "")}


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


@scorer
def process_labels(document: Document, gold: list[str], answer: list[str] | None) -> Metrics:
    """What is predicted outside the label space, the gold labels of the whole test file, vanishes."""
    predicted = {random_label(document)} if answer is None else set(answer)
    counted = sorted(predicted & document.loaded.label_space)  # type: ignore[attr-defined]
    return {
        **dict.fromkeys(("score", "acc"), float(set(gold) == set(counted))),
        **dict.fromkeys(("f1_macro", "f1_micro"), (gold, counted)),
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
