"""A choice scored against a distribution of experts (script concordance; SCT-Bench, `modeling.py`).

A value of a scale scores by how many experts chose it (script concordance, SCT-Bench). `panel_credit` (the
score) is the votes of the chosen value over the most votes that any value has. An unreadable answer gets
nothing. Rows without votes are a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import Document, Metrics, metrics_of

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """`panel_credit` is the score: the votes of the chosen value over the most votes that a value has.

    `in_panel`: at least one expert chose that value. `modal`: no value has more votes. An unreadable answer
    gets nothing.
    """
    return metrics_of(document, results[0], _credits)


def _credits(document: Document, gold: dict[str, float], answer: Any) -> Metrics:
    credit = gold.get(answer, 0.0)
    return {
        "score": credit,
        "panel_credit": credit,
        "in_panel": float(credit > 0),
        "modal": float(credit == 1),
    }
