"""MEDEC: is there an error, in which sentence, and how well is it corrected (HELM, `medec_metrics`)."""

from __future__ import annotations

import os
from typing import Any

from medtasks_ext.metrics.common import Document, Metrics, scorer
from medtasks_ext.metrics.generation import rouge_scores

#: what a reply that says nothing else counts as: the report of an error somewhere
_UNREADABLE = {"flag": 1, "sentence": None, "correction": ""}


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """`medec_error_flag_accuracy` is the score: whether the reply is right that there is an error, or none.

    `medec_error_sentence_accuracy` is HELM's. It reads the sentence's number from the whole gold
    text, where there is none, so notes with an error never score. `correction_…` compares the corrected
    sentences over the notes with an error; a reply without correction scores 0.
    """
    answer = answer or _UNREADABLE
    flag = answer["flag"] == gold["flag"]
    official = answer["sentence"] is not None and answer["sentence"] == gold["official_sentence"]
    metrics: Metrics = {
        "score": float(flag),
        "medec_error_flag_accuracy": float(flag),
        "medec_error_sentence_accuracy": float(flag and (official or not gold["flag"])),
    }
    language, references = document.loaded.record["language"], [gold["correction"]]  # type: ignore[attr-defined]
    rouge = rouge_scores(answer["correction"], references, language) or {}
    for name, value in rouge.items():
        metrics[f"correction_{name}"] = (value, 1) if gold["flag"] else (0, 0)
    if gold["flag"] and os.environ.get("MEDTASKS_BERTSCORE"):
        metrics["correction_bertscore_f1"] = (answer["correction"], references, language)
    return metrics
