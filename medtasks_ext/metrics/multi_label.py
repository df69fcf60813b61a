"""Exact-match accuracy and F1 of label lists and code lists (BRIDGE, `metric/classification.py`).

The label space is the distinct gold labels of the whole test file. Predicted labels outside it
vanish: they are no false positives and do not break an exact match. Labels that no document of a
part of the file shows (`--limit`) have no part in its F1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import f1_from_counts, random_label, ratio, result

if TYPE_CHECKING:
    from collections.abc import Sequence

#: (gold labels, predicted labels of the label space)
Pair = tuple[list[str], list[str]]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """An invalid answer counts as one label drawn from the label space."""
    parsed = results[0]
    if document["gold"] is None:
        return result(document, parsed)
    space = document.loaded.label_space  # type: ignore[attr-defined]
    answer = parsed["answer"] if parsed["valid"] else [random_label(document)]
    predicted = sorted(set(answer) & space)
    correct = float(predicted == document["gold"])
    pair = (document["gold"], predicted)
    return result(document, parsed, score=correct, acc=correct, f1_macro=pair, f1_micro=pair)


def _counts(pairs: Sequence[Pair]) -> list[tuple[int, int, int]]:
    gold = Counter(label for pair in pairs for label in pair[0])
    predicted = Counter(label for pair in pairs for label in pair[1])
    hits = Counter(label for pair in pairs for label in set(pair[0]) & set(pair[1]))
    labels = sorted(gold.keys() | predicted.keys())
    return [(hits[label], predicted[label] - hits[label], gold[label] - hits[label]) for label in labels]


def f1_macro(pairs: Sequence[Pair]) -> float:
    """Mean F1 over all labels that occur, zero where undefined."""
    scores = [f1_from_counts(*counts) for counts in _counts(pairs)]
    return ratio(sum(scores), len(scores))


def f1_micro(pairs: Sequence[Pair]) -> float:
    """F1 of the counts pooled over all labels."""
    return f1_from_counts(*(sum(column) for column in zip(*_counts(pairs), strict=True)))
