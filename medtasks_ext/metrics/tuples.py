"""Micro-F1 of extracted tuples (MLB, Section 4.1: counts pooled over documents and classes).

`micro_f1` (the score) pools whole tuples over documents and classes: sets per document, compared after NFKC,
in lower case, without outer blanks. An unreadable answer predicts nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from medtasks_ext.metrics.common import Document, Metrics, scorer, set_counts
from medtasks_ext.stats.statistic import Array, Statistic, by_label, f1_scores, macro_f1

#: true positives, false positives, false negatives
Counts = tuple[int, int, int]


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts of exactly equal tuples.

    Beside the score, where the answer format has them: tuples with their types, attributes as
    (entity, value) statements, and tuples class by class. A class that the format does not know is a
    false positive of the score and belongs to no class.
    """
    answer = answer or {}
    counts = _counts(gold, answer, "tuples")
    metrics: Metrics = dict.fromkeys(("score", "micro_f1", "micro_precision", "micro_recall"), counts)
    if "typed" in gold:
        metrics["micro_f1_with_types"] = _counts(gold, answer, "typed")
    if "attributes" in gold:
        given = answer.get("attributes", {})
        metrics["attribute_micro_f1"] = tuple(
            _counts(gold["attributes"], given, name) for name in gold["attributes"]
        )
    if "classes" in gold:
        given = answer.get("classes", {})
        names = sorted({*gold["classes"], *given})
        metrics["f1_macro"] = tuple((name, *_counts(gold["classes"], given, name)) for name in names)
    return metrics


def _counts(gold: dict[str, Any], answer: dict[str, Any], name: str) -> Counts:
    return set_counts(_set(gold.get(name, ())), _set(answer.get(name, ())))


def _set(items: Iterable[Sequence[Any]]) -> set[Hashable]:
    return {tuple(tuple(value) if isinstance(value, list) else value for value in item) for item in items}


def _pooled_over_given(sums: Array) -> Array:
    """F1 of the counts pooled over the attributes that the gold answers give at all."""
    counts = sums.reshape(*sums.shape[:-1], -1, 3)
    given = counts[..., 0] + counts[..., 2] > 0
    tp, fp, fn = np.moveaxis((counts * given[..., None]).sum(axis=-2), -1, 0)
    return f1_scores(tp, fp, fn)


def _by_class(items: Sequence[Sequence[tuple[str, int, int, int]]]) -> Array:
    """(n, 3 x classes): hits, predicted and gold, of all classes that occur."""
    place = {name: index for index, name in enumerate(_classes(items))}
    counts = np.zeros((len(items), 3, len(place)))
    for row, of_document in zip(counts, items, strict=True):
        for name, tp, fp, fn in of_document:
            row[:, place[name]] = tp, tp + fp, tp + fn
    return counts.reshape(len(items), -1)


def _classes(items: Sequence[Sequence[tuple[str, int, int, int]]]) -> list[str]:
    return sorted({item[0] for of_document in items for item in of_document})


#: items: per attribute (tp, fp, fn). The owner of the data may leave attributes out: one that no gold
#: answer gives has no part.
attribute_micro_f1 = Statistic(
    "attribute_micro_f1",
    lambda items: np.asarray(items, dtype=float).reshape(len(items), -1),
    _pooled_over_given,
)

#: items: (class, tp, fp, fn) of the classes of a document; mean F1 over the classes that the gold shows
f1_macro = Statistic(
    "f1_macro_of_classes", _by_class, lambda sums: macro_f1(sums, by_label(sums)[2] > 0), labels=_classes
)
