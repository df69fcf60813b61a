"""MedCalc-Bench: accuracy by category and limits (HELM, `medcalc_bench_metrics`), and a repaired one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.answers.medcalc import CATEGORIES, HELM_CATEGORIES, loose_value, value
from medtasks_ext.metrics.choice import exact_matches
from medtasks_ext.metrics.common import result

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPARED_AS_TEXT = ("risk", "severity", "diagnosis")


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """`medcalc_bench_accuracy` is the score; `…_repaired` reads the repaired reading by the repaired
    rule, and `accuracy_CATEGORY` is that within a category."""
    parsed, gold = results[0], document["gold"]
    if gold is None:
        return result(document, parsed)
    reply = parsed["answer"] or ""
    official = float(official_hit(reply, gold))
    repaired = float(repaired_hit(parsed["repaired"]["answer"] or reply, gold))
    return result(
        document,
        parsed,
        score=official,
        score_repaired=repaired,
        medcalc_bench_accuracy=official,
        medcalc_bench_accuracy_repaired=repaired,
        **{
            f"accuracy_{name}": (repaired, 1) if name == CATEGORIES[gold["category"]] else (0, 0)
            for name in dict.fromkeys(CATEGORIES.values())
        },
        **exact_matches(reply, gold["answer"]),
    )


def official_hit(reply: str, gold: Mapping[str, Any]) -> bool:
    """Whether HELM counts the stripped reply.

    Risk, severity and diagnosis: it is the gold's text. Physical, dosage conversion and date: its
    value lies between the limits. No other category is known, `lab test` and `dosage` among them.
    """
    if gold["category"] not in HELM_CATEGORIES:
        return False
    if gold["category"] in _COMPARED_AS_TEXT:
        return bool(reply == gold["answer"])
    return _within(value(reply, gold["form"]), gold)


def repaired_hit(reply: str, gold: Mapping[str, Any]) -> bool:
    """Whether the reply is the gold's text or its value lies between the limits, in every category.

    As strict as HELM about anything beside the value: units, a full stop, words.
    """
    return reply == gold["answer"] or _within(loose_value(reply, gold["form"]), gold)


def _within(found: float | None, gold: Mapping[str, Any]) -> bool:
    return found is not None and gold["lower"] <= found <= gold["upper"]
