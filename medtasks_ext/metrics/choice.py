"""Answers that are one option or one value: HELM's exact match, votes of a panel, MedCalc-Bench."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from medtasks_ext.answers.helm import CATEGORIES, HELM_CATEGORIES, loose_value, value
from medtasks_ext.metrics.common import Document, Metrics, scorer
from medtasks_ext.stats.statistic import in_run

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case, no punctuation, no English articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_matches(reply: str, gold: str) -> dict[str, float]:
    """HELM's four comparisons of a reply with a gold text; an empty reply is wrong on all of them."""
    return {
        "exact_match": float(bool(reply) and reply.strip() == gold.strip()),
        "quasi_exact_match": float(bool(reply) and normalise(reply) == normalise(gold)),
        "prefix_exact_match": float(bool(reply) and reply.strip().startswith(gold.strip())),
        "quasi_prefix_exact_match": float(bool(reply) and normalise(reply).startswith(normalise(gold))),
    }


@scorer
def process_choice(document: Document, gold: Any, answer: Any) -> Metrics:
    """HELM's `evaluate_reference_metrics`: the letter is mapped to its option's text, and texts are compared.

    Where there are no options the answer itself is compared.
    """
    chosen = answer or ""
    if "options" in document:
        texts = dict(zip(string.ascii_uppercase, document["options"], strict=False))
        gold, chosen = texts[gold], texts.get(chosen, "")
    matches = exact_matches(chosen, gold)
    return in_run(document, {"score": matches["exact_match"], **matches})


@scorer
def process_panel(document: Document, gold: dict[str, float], answer: Any) -> Metrics:
    """A choice against a distribution of experts (script concordance; SCT-Bench, `modeling.py`)."""
    credit = gold.get(answer, 0.0)
    return {
        **dict.fromkeys(("score", "panel_credit"), credit),
        "in_panel": float(credit > 0),
        "modal": float(credit == 1),
    }


_COMPARED_AS_TEXT = ("risk", "severity", "diagnosis")
_BY_CATEGORY = tuple(f"accuracy_{name}" for name in dict.fromkeys(CATEGORIES.values()))


@scorer
def process_medcalc(document: Document, gold: Mapping[str, Any], answer: str | None) -> Metrics:
    """MedCalc-Bench: accuracy by category and limits (HELM, `medcalc_bench_metrics`).

    `accuracy_CATEGORY` compares with the limits in every category and reads gestational ages as the questions
    write them, too, `(4 weeks, 3 days)`.
    """
    reply, same, category = answer or "", (answer or "") == gold["answer"], gold["category"]
    strict, loose = (
        number is not None and gold["lower"] <= number <= gold["upper"]
        for number in (value(reply, gold["form"]), loose_value(reply, gold["form"]))
    )
    # HELM does not know `lab test` and `dosage`, among others
    official = category in HELM_CATEGORIES and (same if category in _COMPARED_AS_TEXT else strict)
    own = f"accuracy_{CATEGORIES[category]}"
    return {
        **dict.fromkeys(("score", "medcalc_bench_accuracy"), float(official)),
        # as strict as HELM about anything beside the value: units, a full stop, words
        **{name: (float(same or loose), 1) if name == own else (0, 0) for name in _BY_CATEGORY},
        **exact_matches(reply, gold["answer"]),
    }
