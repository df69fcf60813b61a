"""HELM's exact match on an option letter, and its relaxed kin (HELM, `evaluate_reference_metrics`)."""

from __future__ import annotations

import re
import string
from typing import Any

from medtasks_ext.metrics.common import result
from medtasks_ext.stats.runs import in_run

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TOKEN = re.compile(r"\w+")


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


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """`exact_match` is the score: the stripped reply is one option letter, and the right one.

    As in HELM the letter is mapped to its option text and texts are compared; a reply that is no
    letter maps to nothing and is wrong on all four HELM metrics. Where there are no options the
    reply itself is compared. `exact_match_first_token` reads the reply as HELM's one-token budget
    would have cut it, so that `A. yes` counts as `A`.
    """
    parsed, gold = results[0], document["gold"]
    if gold is None:
        return result(document, parsed)
    chosen, token = parsed["answer"], _TOKEN.match(parsed["answer"])
    first = token[0] if token else ""
    if "options" in document:
        texts = dict(zip(string.ascii_uppercase, document["options"], strict=False))
        gold, chosen, first = texts[gold], texts.get(chosen, ""), texts.get(first, "")
    matches = exact_matches(chosen, gold)
    metrics = {
        "score": matches["exact_match"],
        **matches,
        "exact_match_first_token": exact_matches(first, gold)["exact_match"],
    }
    return result(document, parsed, **in_run(document, metrics))
