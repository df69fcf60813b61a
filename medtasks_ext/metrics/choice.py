"""HELM's exact match on an option letter, and its relaxed kin (HELM, `evaluate_reference_metrics`)."""

from __future__ import annotations

import re
import string
from typing import Any

from medtasks_ext.metrics.common import result

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TOKEN = re.compile(r"\w+")


def normalise(text: str) -> str:
    """Lower case, no punctuation, no English articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """`exact_match` is the score: the stripped reply is one option letter, and the right one.

    As in HELM the letter is mapped to its option text and texts are compared; a reply that is no
    letter maps to nothing and is wrong on all four HELM metrics. `exact_match_first_token`
    reads the reply as HELM's one-token budget would have cut it, so that `A. yes` counts as `A`.
    """
    parsed, letter = results[0], document["gold"]
    if letter is None:
        return result(document, parsed)
    texts = dict(zip(string.ascii_uppercase, document["options"], strict=False))
    gold, chosen, first = texts[letter], texts.get(parsed["answer"], ""), _TOKEN.match(parsed["answer"])
    exact = float(bool(chosen) and chosen.strip() == gold.strip())
    return result(
        document,
        parsed,
        score=exact,
        exact_match=exact,
        exact_match_first_token=float(first is not None and texts.get(first[0], "").strip() == gold.strip()),
        quasi_exact_match=float(bool(chosen) and normalise(chosen) == normalise(gold)),
        prefix_exact_match=float(bool(chosen) and chosen.strip().startswith(gold.strip())),
        quasi_prefix_exact_match=float(bool(chosen) and normalise(chosen).startswith(normalise(gold))),
    )
