"""HELM's exact match on an option letter, and its relaxed kin (HELM, `evaluate_reference_metrics`)."""

from __future__ import annotations

import re
import string
from typing import Any

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
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """`exact_match` is the score: the answer is one option letter, and the right one.

    As in HELM the letter is mapped to its option text and texts are compared; an answer that is no
    letter maps to nothing and is wrong on all four HELM metrics. Where there are no options the
    answer itself is compared.
    """
    chosen = answer or ""
    if "options" in document:
        texts = dict(zip(string.ascii_uppercase, document["options"], strict=False))
        gold, chosen = texts[gold], texts.get(chosen, "")
    matches = exact_matches(chosen, gold)
    return in_run(document, {"score": matches["exact_match"], **matches})
