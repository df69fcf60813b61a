"""Event and subject F1 of extraction tasks (BRIDGE Methods, `metric/extraction.py`)."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from medtasks_ext.metrics.common import micro_f1, result, set_counts

__all__ = ["micro_f1", "process_results"]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of exactly matching events and subjects; an invalid answer is an empty prediction.

    Duplicates collapse. `score` and `f1_event` are micro-averaged over all documents. The repaired
    metrics compare what the repaired reading gives, `f1_subject_repaired` where it names a subject.
    """
    parsed = results[0]
    if document["gold"] is None:
        return result(document, parsed)
    gold, predicted = document["gold"], parsed["answer"] or []
    events = set_counts({tuple(event) for event in gold}, {tuple(event) for event in predicted})
    subjects = set_counts({event[0] for event in gold}, {event[0] for event in predicted})
    repaired = parsed["repaired"]
    sides = repaired["gold"], repaired["answer"] or ()
    counts = set_counts(*(set(map(tuple, side)) for side in sides))
    more = {"score_repaired": counts, "f1_event_repaired": counts}
    if "subject" in repaired:
        subject = itemgetter(repaired["subject"])
        more["f1_subject_repaired"] = set_counts(*(set(map(subject, side)) for side in sides))
    return result(
        document,
        parsed,
        score=events,
        f1_event=events,
        f1_subject=subjects,
        **more,
        acc_event=float(events[1] == events[2] == 0),
        acc_subject=float(subjects[1] == subjects[2] == 0),
    )
