"""Accuracy and F1 of single-label classification (BRIDGE Methods, `metric/classification.py`)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import f1_from_counts, random_label, ratio, result

if TYPE_CHECKING:
    from collections.abc import Sequence

#: (gold label, predicted label)
Pair = tuple[str, str]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """BRIDGE: an invalid answer counts as a label drawn from the gold labels of the test file."""
    parsed = results[0]
    if document["gold"] is None:
        return result(document, parsed)
    predicted = parsed["answer"] if parsed["valid"] else random_label(document)
    pair, correct = (document["gold"], predicted), float(predicted == document["gold"])
    return result(document, parsed, score=correct, acc=correct, f1_macro=pair, f1_micro=pair)


def process_results_invalid_is_wrong(
    document: dict[str, Any], results: list[dict[str, Any]]
) -> dict[str, Any]:
    """ClinicBench: an answer that cannot be read counts as wrong."""
    parsed = results[0]
    predicted = parsed["answer"] if parsed["valid"] else ""
    pair, correct = (document["gold"], predicted), float(predicted == document["gold"])
    return result(document, parsed, score=correct, acc=correct, f1_macro=pair)


def _counts(pairs: Sequence[Pair]) -> list[tuple[int, int, int]]:
    """(tp, fp, fn) for each distinct gold label; other predicted labels cost recall alone."""
    gold, predicted = Counter(pair[0] for pair in pairs), Counter(pair[1] for pair in pairs)
    hits = Counter(pair[0] for pair in pairs if pair[0] == pair[1])
    return [
        (hits[label], predicted[label] - hits[label], gold[label] - hits[label]) for label in sorted(gold)
    ]


def f1_macro(pairs: Sequence[Pair]) -> float:
    """Mean F1 over the distinct gold labels of the pairs, zero where undefined."""
    scores = [f1_from_counts(*counts) for counts in _counts(pairs)]
    return ratio(sum(scores), len(scores))


def f1_micro(pairs: Sequence[Pair]) -> float:
    """F1 of the counts pooled over the distinct gold labels.

    Equals accuracy only if every prediction is one of the gold labels.
    """
    return f1_from_counts(*(sum(column) for column in zip(*_counts(pairs), strict=True)))
