"""Relation F1 as published, and repaired (BRIDGE Methods, `metric/extraction.py`)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import micro_f1, result, set_counts

__all__ = ["micro_f1", "process_results"]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of matching relations; an invalid answer is an empty prediction.

    The official parser stores the second entity where the relation's label belongs, so `f1_event`
    compares the pair and its second entity, never the label. `f1_event_repaired` compares the pair
    and the label, which the repaired reading looks up by their names.
    """
    parsed, gold = results[0], document["gold"]
    if gold is None:
        return result(document, parsed)
    predicted = parsed["answer"] or []
    official = set_counts(*({(*pair, second) for pair, second, _ in side} for side in (gold, predicted)))
    subjects = set_counts(*({tuple(pair) for pair, _, _ in side} for side in (gold, predicted)))
    sides = parsed["repaired"]["gold"], parsed["repaired"]["answer"] or ()
    repaired = set_counts(*(set(map(tuple, side)) for side in sides))
    return result(
        document,
        parsed,
        score=official,
        f1_event=official,
        f1_subject=subjects,
        score_repaired=repaired,
        f1_event_repaired=repaired,
        acc_event=float(official[1] == official[2] == 0),
        acc_subject=float(subjects[1] == subjects[2] == 0),
    )
