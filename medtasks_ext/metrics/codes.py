"""Billing-code F1 per document (HELM, `mimiciv_billing_code_metrics`).

Codes are read by HELM's pattern. `mimiciv_billing_code_f1` (the score) is averaged over documents;
`billing_code_f1_pooled` pools the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import (
    Document,
    Metrics,
    metrics_of,
    micro_f1,
    micro_precision,
    micro_recall,
    set_counts,
)

if TYPE_CHECKING:
    from medtasks_ext.answers.formats import Parsed

__all__ = ["micro_f1", "process_results"]


def process_results(document: Document, results: list[Parsed]) -> Metrics:
    """F1 of the predicted and gold code sets, averaged over documents.

    The paper calls it micro-F1; HELM computes it per document and takes the mean. The F1 of the
    pooled counts stands beside it as `billing_code_f1_pooled`. Where neither side has a readable
    code the score is 0 (HELM's call fails there).
    """
    return metrics_of(document, results[0], _statistics)


def _statistics(document: Document, gold: Any, answer: Any) -> Metrics:
    counts = set_counts(set(gold), set(answer or ()))
    return {
        **dict.fromkeys(("score", "mimiciv_billing_code_f1"), micro_f1([counts])),
        "mimiciv_billing_code_precision": micro_precision([counts]),
        "mimiciv_billing_code_recall": micro_recall([counts]),
        "billing_code_f1_pooled": counts,
    }
