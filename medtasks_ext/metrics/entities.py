"""Entity-level F1 of named entity recognition (ClinicBench, Section 4)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import micro_f1, micro_precision, micro_recall, result, set_counts

__all__ = ["micro_f1", "micro_precision", "micro_recall", "process_results"]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of entities whose whole text matches, summed over all sentences.

    Answers carry no offsets, so a text that occurs twice in a sentence counts once. A sentence without
    entities can only cost false positives. An answer that cannot be read predicts nothing.
    """
    parsed = results[0]
    if document["gold"] is None:
        return result(document, parsed)
    counts = set_counts(set(document["gold"]), set(parsed["answer"] or ()))
    return result(
        document, parsed, score=counts, entity_f1=counts, entity_precision=counts, entity_recall=counts
    )
