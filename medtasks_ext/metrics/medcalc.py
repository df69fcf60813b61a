"""MedCalc-Bench: accuracy by category and limits (HELM, `medcalc_bench_metrics`).

`medcalc_bench_accuracy` (the score): risk, severity and diagnosis must be the gold's text; physical, dosage
conversion and date must lie between the limits, read by Python's `float`, as month/day/year, or as `('14
weeks', '2 days')`; no other category scores. `accuracy_CATEGORY` compares with the limits in every category
and reads gestational ages as the questions write them, `(4 weeks, 3 days)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtasks_ext.answers.medcalc import CATEGORIES, HELM_CATEGORIES, loose_value, value
from medtasks_ext.metrics.choice import exact_matches
from medtasks_ext.metrics.common import Document, Metrics, scorer

_COMPARED_AS_TEXT = ("risk", "severity", "diagnosis")
_BY_CATEGORY = tuple(f"accuracy_{name}" for name in dict.fromkeys(CATEGORIES.values()))


@scorer
def process_results(document: Document, gold: Mapping[str, Any], answer: str | None) -> Metrics:
    reply = answer or ""
    within, category = float(limits_hit(reply, gold)), f"accuracy_{CATEGORIES[gold['category']]}"
    return {
        **dict.fromkeys(("score", "medcalc_bench_accuracy"), float(official_hit(reply, gold))),
        **{name: (within, 1) if name == category else (0, 0) for name in _BY_CATEGORY},
        **exact_matches(reply, gold["answer"]),
    }


def official_hit(reply: str, gold: Mapping[str, Any]) -> bool:
    """Whether HELM counts the stripped reply. It does not know `lab test` and `dosage`, among others."""
    if gold["category"] not in HELM_CATEGORIES:
        return False
    if gold["category"] in _COMPARED_AS_TEXT:
        return bool(reply == gold["answer"])
    return _within(value(reply, gold["form"]), gold)


def limits_hit(reply: str, gold: Mapping[str, Any]) -> bool:
    """Whether the reply is the gold's text or its value lies between the limits, in every category.

    As strict as HELM about anything beside the value: units, a full stop, words.
    """
    return reply == gold["answer"] or _within(loose_value(reply, gold["form"]), gold)


def _within(value: float | None, gold: Mapping[str, Any]) -> bool:
    return value is not None and gold["lower"] <= value <= gold["upper"]
