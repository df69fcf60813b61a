"""Event, relation and subject F1 of extraction tasks (BRIDGE Methods, `metric/extraction.py`).

BRIDGE (`metric/extraction.py`): a document's events are the set of its lines, each the tuple of its field
values; subjects are the first fields. `f1_event` (the score) and `f1_subject` sum true positives, false
positives and false negatives over documents. Values must match exactly. An answer without a readable line
predicts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import Document, Metrics, metrics_of, micro_f1, set_counts

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed

__all__ = ["micro_f1", "process_relations", "process_results"]


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """Counts of exactly matching events and subjects; an invalid answer is an empty prediction.

    Duplicates collapse. `score` and `f1_event` are micro-averaged over all documents.
    """
    return metrics_of(document, results[0], _statistics)


def process_relations(document: Document, results: list[Parsed]) -> Metrics:
    """The same for relations, whose subject is the pair of their entities.

    The official parser stores the second entity where the relation's label belongs, so `f1_event`
    compares the pair and its second entity, never the label.
    """
    return metrics_of(document, results[0], _relations)


def _relations(document: Document, gold: Any, answer: Any) -> Metrics:
    return _statistics(document, *(list(map(_relation, side or ())) for side in (gold, answer)))


def _relation(item: Sequence[Any]) -> tuple[tuple[str, ...], str]:
    """The pair, and what is compared with it: the second entity."""
    pair, other = item[:2]
    return tuple(pair), other


def _statistics(
    document: Document, gold: Iterable[Sequence[Any]], answer: Iterable[Sequence[Any]] | None
) -> Metrics:
    sides = [set(map(tuple, side or ())) for side in (gold, answer)]
    events = set_counts(*sides)
    subjects = set_counts(*({event[0] for event in side} for side in sides))
    return {
        **dict.fromkeys(("score", "f1_event"), events),
        "f1_subject": subjects,
        "acc_event": float(events[1] == events[2] == 0),
        "acc_subject": float(subjects[1] == subjects[2] == 0),
    }
