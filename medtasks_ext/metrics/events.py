"""Event, relation and subject F1 of extraction tasks (BRIDGE Methods, `metric/extraction.py`).

A document's events are the set of its lines, each the tuple of its field values; subjects are the first
fields. `f1_event` (the score) and `f1_subject` sum true positives, false positives and false negatives over
documents. Values must match exactly. An answer without a readable line predicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from medtasks_ext.metrics.common import Document, Metrics, scorer, set_counts


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
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
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
