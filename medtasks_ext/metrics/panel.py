"""A choice scored against a distribution of experts (script concordance; SCT-Bench, `modeling.py`)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import Document, Metrics, scorer


@scorer
def process_results(document: Document, gold: dict[str, float], answer: Any) -> Metrics:
    """`panel_credit` is the score: the votes of the chosen value over the most votes that a value has.

    `in_panel`: at least one expert chose that value. `modal`: no value has more votes. An unreadable answer
    gets nothing.
    """
    credit = gold.get(answer, 0.0)
    return {
        "score": credit,
        "panel_credit": credit,
        "in_panel": float(credit > 0),
        "modal": float(credit == 1),
    }
