"""Event, relation and subject F1 of extraction tasks (BRIDGE Methods, `metric/extraction.py`).

BRIDGE (`metric/extraction.py`): a document's events are the set of its lines, each the tuple of its field
values; subjects are the first fields. `f1_event` (the score) and `f1_subject` sum true positives, false
positives and false negatives over documents. Values must match exactly. An answer without a readable line
predicts nothing.

`f1_event_repaired` finds fields by name, in any order. A field begins at the start of a line (after a
bullet, number or words) or after `,` `;` `、` `|`. Its value ends where the next field begins or the event
ends, so it may contain commas, colons and semicolons. An event ends with its line, where its subject is
named again, or where another field is named again after a semicolon. A line counts only with its subject and
one other field. A missing attribute of an n2c2 2018 line is `not mentioned`, a missing list of CHIP-CDEE is
empty; CHIP-CDEE's lists are sets, Ex4CDS has its four fields, a relation is its two entities and its label.
`f1_subject_repaired` (CAS-label) compares the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import Document, Metrics, both, micro_f1, set_counts

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed

__all__ = ["micro_f1", "process_relations", "process_results"]


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """Counts of exactly matching events and subjects; an invalid answer is an empty prediction.

    Duplicates collapse. `score` and `f1_event` are micro-averaged over all documents.
    `f1_subject_repaired` is reported where the official reading takes another field for the subject.
    """
    parsed, names = results[0], ["f1_event_repaired"]
    other = parsed["repaired"]
    if place := other.get("subject"):
        first = itemgetter(place)
        sides = (
            side and [(first(event), *event) for event in side] for side in (other["gold"], other["answer"])
        )
        names.append("f1_subject_repaired")
        parsed = {**parsed, "repaired": {**other, "gold": next(sides), "answer": next(sides)}}
    return both(document, parsed, _statistics, repaired=names)


def process_relations(document: Document, results: list[Parsed]) -> Metrics:
    """The same for relations, whose subject is the pair of their entities.

    The official parser stores the second entity where the relation's label belongs, so `f1_event`
    compares the pair and its second entity, never the label. `f1_event_repaired` compares the pair
    and the label, which the repaired reading looks up by their names.
    """
    return both(document, results[0], _relations, repaired=["f1_event_repaired"])


def _relations(document: Document, gold: Any, answer: Any) -> Metrics:
    return _statistics(document, *(list(map(_relation, side or ())) for side in (gold, answer)))


def _relation(item: Sequence[Any]) -> tuple[tuple[str, ...], str]:
    """The pair, and what is compared with it: officially the second entity, repaired the label."""
    pair, other = item[:2] if isinstance(item[0], list) else (item[:2], item[2])
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
