"""What likelihoods of the possible answers say: which is likeliest, and how sure the model is of it.

Probabilities are the softmax over the possible answers of the question. `calibration_error` is the expected
one in 15 equal bins (Guo et al., ICML 2017), `brier_score` the sum of squares over the answers (0 to 2),
`risk_coverage` the area under the risk-coverage curve (Geifman and El-Yaniv, NeurIPS 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from medtasks_ext.metrics.common import Document, Metrics
from medtasks_ext.stats.statistic import Array, Statistic

#: probabilities of the possible answers, and the place of the right one
Prediction: TypeAlias = tuple[Sequence[float], int]

#: Equal bins of confidence in the calibration error.
BINS = 15


def process_results(
    document: Document, results: Sequence[tuple[float, bool]], options: Sequence[str], gold: int | None
) -> Metrics:
    """`results`: (log-likelihood, greedy or not) of each option; `gold`: place of the one that is right."""
    from scipy.special import softmax  # takes longer to load than most commands to run

    sample = {"SAMPLE_DATA": 1.0} if document["data"] == "sample" else {}
    if gold is None:
        return {"scored": 0.0, **sample}
    likelihoods = np.array([value for value, *_ in results], dtype=float)
    right = float(np.argmax(likelihoods) == gold)
    per_character = likelihoods / np.array([float(len(option)) for option in options])
    probabilities = softmax(likelihoods)
    said = (probabilities.tolist(), gold)
    return {
        **dict.fromkeys(("score", "acc"), right),
        "acc_norm": float(np.argmax(per_character) == gold),
        "brier_score": float(np.square(probabilities - np.eye(len(options))[gold]).sum()),
        **dict.fromkeys(("calibration_error", "risk_coverage"), said),
        "scored": 1.0,
        **sample,
    }


def confidences(items: Sequence[Prediction]) -> tuple[Array, Array]:
    """The probability of the likeliest answer of each document, and whether it is the right one."""
    sure = np.array([max(probabilities) for probabilities, _ in items])
    right = np.array([np.argmax(probabilities) == gold for probabilities, gold in items], dtype=float)
    return sure, right


def risks(sure: Array, right: Array) -> Array:
    """(n,) share of errors among the k surest documents, over all k; those of one confidence count alike."""
    _, places, counts = np.unique(-sure, return_inverse=True, return_counts=True)
    errors = np.bincount(places, weights=1 - right)
    shares = np.repeat(errors / counts, counts)  # of one confidence: the mean
    return np.asarray(np.cumsum(shares) / np.arange(1, len(sure) + 1))


def _binned(items: Sequence[Prediction]) -> Array:
    """(documents, 2 bins): confidence less rightness in the document's bin, and one document of it."""
    sure, right = confidences(items)
    places = np.clip(np.ceil(sure * BINS).astype(int) - 1, 0, BINS - 1)
    counts = np.zeros((len(items), 2 * BINS))
    rows = np.arange(len(items))
    counts[rows, places] = sure - right
    counts[rows, BINS + places] = 1
    return counts


#: on 0-1
calibration_error = Statistic(
    "calibration_error",
    _binned,
    lambda sums: np.abs(sums[..., :BINS]).sum(axis=-1) / np.maximum(sums[..., BINS:].sum(axis=-1), 1),
)


def risk_coverage(items: Sequence[Prediction]) -> float:
    """The mean error of the k surest documents, over all k: 0 is best."""
    return float(np.mean(risks(*confidences(items)))) if items else 0.0


_OWN = {"calibration_error": calibration_error, "risk_coverage": risk_coverage}
_UPWARDS = ("score", "acc", "acc_norm", "scored")
#: As lm-eval takes them.
METRICS: tuple[dict[str, Any], ...] = tuple(
    {"metric": name, "aggregation": _OWN.get(name, "mean"), "higher_is_better": name in _UPWARDS}
    for name in ("score", "acc", "acc_norm", "brier_score", *_OWN, "scored", "SAMPLE_DATA")
)
