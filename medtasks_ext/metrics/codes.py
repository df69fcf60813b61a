"""F1 of billing codes, which are read by HELM's pattern (HELM, `mimiciv_billing_code_metrics`)."""

from __future__ import annotations

from typing import Any

from medtasks_ext.metrics.common import (
    Document,
    Metrics,
    micro_f1,
    micro_precision,
    micro_recall,
    scorer,
    set_counts,
)


@scorer
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """F1 of the predicted and gold code sets, averaged over documents.

    The paper calls it micro-F1; HELM computes it per document and takes the mean. The F1 of the
    pooled counts stands beside it as `billing_code_f1_pooled`. Where neither side has a readable
    code the score is 0 (HELM's call fails there).
    """
    counts = set_counts(set(gold), set(answer or ()))
    return {
        **dict.fromkeys(("score", "mimiciv_billing_code_f1"), micro_f1([counts])),
        "mimiciv_billing_code_precision": micro_precision([counts]),
        "mimiciv_billing_code_recall": micro_recall([counts]),
        "billing_code_f1_pooled": counts,
    }
