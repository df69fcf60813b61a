"""Entity-level F1 of named entity recognition; case and white space do not count (ClinicBench, Section 4)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import Document, Metrics, scorer, set_counts


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts of entities whose whole text matches, summed over all sentences.

    Answers carry no offsets, so a text that occurs twice in a sentence counts once. A sentence without
    entities can only cost false positives. An answer that cannot be read predicts nothing.
    """
    counts = set_counts(set(gold), set(answer or ()))
    return dict.fromkeys(("score", "entity_f1", "entity_precision", "entity_recall"), counts)
