"""F1 of sets of labels of a closed list (ClinicBench, Section 4: document classification)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import Document, Metrics, micro_f1, scorer, set_counts


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """Counts of (document, label) pairs, pooled over documents and labels.

    `example_f1` is the F1 of each document's two sets, 1 where both are empty, averaged over documents;
    `acc` the share of documents whose set is exactly right. An answer that cannot be read predicts no
    label, and is not right even where there is none.
    """
    predicted = answer or []
    counts = set_counts(set(gold), set(predicted))
    right = float(answer is not None and counts[1] == counts[2] == 0)
    return {
        "score": counts,
        "micro_f1": counts,
        "macro_f1": (gold, predicted),
        "example_f1": right or micro_f1([counts]),
        "acc": right,
    }
