"""Accuracy and F1 of single-label classification (BRIDGE Methods, `metric/classification.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import both, random_label, result
from medtasks_ext.stats.statistic import Statistic, by_label, label_counts, macro_f1, pooled_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.stats.statistic import Array, Matrix

#: (gold label, predicted label)
Pair = tuple[str, str]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """BRIDGE: an invalid answer counts as a label drawn from the gold labels of the test file.

    For the repaired metrics it is wrong: no label (the empty text).
    """
    parsed = results[0]
    if document["gold"] is None:
        return result(document, parsed)
    predicted = parsed["answer"] if parsed["valid"] else random_label(document)
    pair, correct = (document["gold"], predicted), float(predicted == document["gold"])
    repaired = parsed["repaired"]
    return result(
        document,
        parsed,
        score=correct,
        acc=correct,
        f1_macro=pair,
        f1_micro=pair,
        score_repaired=float(repaired["answer"] == repaired["gold"]),
        acc_repaired=float(repaired["answer"] == repaired["gold"]),
        f1_macro_repaired=(repaired["gold"], repaired["answer"] or ""),
    )


def process_results_invalid_is_wrong(
    document: dict[str, Any], results: list[dict[str, Any]]
) -> dict[str, Any]:
    """An answer that cannot be read counts as wrong."""
    return both(document, results[0], _invalid_is_wrong)


def _invalid_is_wrong(document: dict[str, Any], gold: Any, answer: Any) -> dict[str, Any]:
    correct = float(answer == gold)
    return {"score": correct, "acc": correct, "f1_macro": (gold, answer or "")}


def _counts(pairs: Sequence[Pair]) -> Matrix:
    """Columns for the distinct gold labels; other predicted labels cost recall alone."""
    gold, predicted = [pair[:1] for pair in pairs], [pair[1:] for pair in pairs]
    return label_counts(gold, predicted, sorted({pair[0] for pair in pairs}))


def _have_gold(sums: Array) -> Array:
    return by_label(sums)[2] > 0


#: mean F1 over the distinct gold labels of the documents, zero where undefined
f1_macro = Statistic("f1_macro", _counts, lambda sums: macro_f1(sums, _have_gold(sums)))

#: F1 of the counts pooled over the distinct gold labels; equals accuracy only if every prediction is
#: one of them
f1_micro = Statistic("f1_micro", _counts, lambda sums: pooled_f1(sums, _have_gold(sums)))
