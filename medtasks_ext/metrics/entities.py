"""Entity-level F1 of named entity recognition (ClinicBench, Section 4).

ClinicBench (Section 4): `entity_f1` (the score) takes whole mentions as a set per sentence, counts summed;
case and white space do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import (
    Document,
    Metrics,
    metrics_of,
    micro_f1,
    micro_precision,
    micro_recall,
    set_counts,
)

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed

__all__ = ["micro_f1", "micro_precision", "micro_recall", "process_results"]


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """Counts of entities whose whole text matches, summed over all sentences.

    Answers carry no offsets, so a text that occurs twice in a sentence counts once. A sentence without
    entities can only cost false positives. An answer that cannot be read predicts nothing.
    """
    return metrics_of(document, results[0], _statistics)


def _statistics(document: Document, gold: Any, answer: Any) -> Metrics:
    counts = set_counts(set(gold), set(answer or ()))
    return dict.fromkeys(("score", "entity_f1", "entity_precision", "entity_recall"), counts)
