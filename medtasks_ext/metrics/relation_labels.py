"""Micro-F1 of relation labels without the class for no relation (ClinicBench, Section 4)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.answers.choices import NEGATIVE
from medtasks_ext.metrics.common import Document, Metrics, scorer, set_counts


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts over the classes that are a relation; a wrong one costs a false positive and a false negative.

    `acc` is micro-F1 over all classes, the one for no relation included; `macro_f1` is the mean F1 over all
    of them. An answer that cannot be read predicts nothing, and is wrong for these two.
    """
    predicted = answer or ""
    counts = set_counts({gold} - NEGATIVE, {predicted} - NEGATIVE - {""})
    return {
        "score": counts,
        "micro_f1": counts,
        "acc": float(predicted == gold),
        "macro_f1": (gold, predicted),
    }
