"""F1 of answers that are sets: entities, labels, relations, codes, events, tuples.

An answer that cannot be read predicts nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from medtasks_ext.answers.choices import NEGATIVE
from medtasks_ext.metrics.common import (
    Document,
    Metrics,
    micro_f1,
    micro_precision,
    micro_recall,
    scorer,
    set_counts,
)
from medtasks_ext.stats.statistic import Array, Statistic, by_label, f1_scores, macro_f1


@scorer
def process_entities(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts of entities whose whole text matches, summed over all sentences (ClinicBench, Section 4).

    Answers carry no offsets, so a text that occurs twice in a sentence counts once. A sentence without
    entities can only cost false positives. Case and white space do not count.
    """
    counts = set_counts(set(gold), set(answer or ()))
    return dict.fromkeys(("score", "entity_f1", "entity_precision", "entity_recall"), counts)


@scorer
def process_labels(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts of (document, label) pairs, pooled over documents and labels of a closed list (ClinicBench).

    `example_f1` is the F1 of each document's two sets, 1 where both are empty, averaged over documents;
    `acc` the share of documents whose set is exactly right. An answer that cannot be read predicts no
    label, and is not right even where there is none.
    """
    predicted = answer or []
    counts = set_counts(set(gold), set(predicted))
    right = float(answer is not None and counts[1] == counts[2] == 0)
    return {
        "score": counts,
        "micro_f1": counts,
        "macro_f1": (gold, predicted),
        "example_f1": right or micro_f1([counts]),
        "acc": right,
    }


@scorer
def process_relation_label(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts over the classes that are a relation; a wrong one costs a false positive and a false negative.

    The class for no relation is left out (ClinicBench, Section 4). `acc` is micro-F1 over all classes, that
    one included; `macro_f1` is the mean F1 over all of them; an answer that cannot be read is wrong for both.
    """
    predicted = answer or ""
    counts = set_counts({gold} - NEGATIVE, {predicted} - NEGATIVE - {""})
    return {
        "score": counts,
        "micro_f1": counts,
        "acc": float(predicted == gold),
        "macro_f1": (gold, predicted),
    }


@scorer
def process_codes(document: Document, gold: Any, answer: Any) -> Metrics:
    """F1 of the predicted and gold code sets, averaged over documents (`mimiciv_billing_code_metrics`).

    Billing codes are read by HELM's pattern. The paper calls it micro-F1; HELM computes it per document and
    takes the mean. The F1 of the pooled counts stands beside it as `billing_code_f1_pooled`. Where neither
    side has a readable code the score is 0 (HELM's call fails there).
    """
    counts = set_counts(set(gold), set(answer or ()))
    return {
        **dict.fromkeys(("score", "mimiciv_billing_code_f1"), micro_f1([counts])),
        "mimiciv_billing_code_precision": micro_precision([counts]),
        "mimiciv_billing_code_recall": micro_recall([counts]),
        "billing_code_f1_pooled": counts,
    }


@scorer
def process_relations(document: Document, gold: Any, answer: Any) -> Metrics:
    """For relations, whose subject is the pair of their entities.

    The official parser stores the second entity where the relation's label belongs, so `f1_event`
    compares the pair and its second entity, never the label.
    """
    return _counted(*([_relation(item) for item in side or ()] for side in (gold, answer)))


def _relation(item: Sequence[Any]) -> tuple[tuple[str, ...], str]:
    """The pair, and what is compared with it: the second entity."""
    pair, other = item[:2]
    return tuple(pair), other


@scorer
def process_events(document: Document, gold: Any, answer: Any) -> Metrics:
    """Event and subject F1 of extraction tasks (BRIDGE Methods, `metric/extraction.py`).

    A document's events are the set of its lines, each the tuple of its field values; subjects are the first
    fields. `f1_event` (the score) and `f1_subject` sum true positives, false positives and false negatives
    over documents. Values must match exactly.
    """
    return _counted(gold, answer or ())


def _counted(gold: Iterable[Sequence[Any]], answer: Iterable[Sequence[Any]]) -> Metrics:
    sides = [set(map(tuple, side)) for side in (gold, answer)]
    events = set_counts(*sides)
    subjects = set_counts(*({event[0] for event in side} for side in sides))
    return {
        **dict.fromkeys(("score", "f1_event"), events),
        "f1_subject": subjects,
        "acc_event": float(events[1] == events[2] == 0),
        "acc_subject": float(subjects[1] == subjects[2] == 0),
    }


#: true positives, false positives, false negatives
Counts = tuple[int, int, int]


@scorer
def process_tuples(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts of exactly equal tuples, pooled over documents and classes (MLB, Section 4.1).

    `micro_f1` (the score) takes sets per document, compared after NFKC, in lower case, without outer blanks.
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
f1_macro_of_classes = Statistic(
    "f1_macro_of_classes", _by_class, lambda sums: macro_f1(sums, by_label(sums)[2] > 0), labels=_classes
)
