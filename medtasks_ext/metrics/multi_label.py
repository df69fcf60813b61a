"""Exact-match accuracy and F1 of label lists and code lists (BRIDGE, `metric/classification.py`).

The label space is the distinct gold labels of the whole test file. Predicted labels outside it
vanish: they are no false positives and do not break an exact match. Labels that no document of a
part of the file shows (`--limit`) have no part in its F1. The repaired metrics have no label space:
each predicted label that is not gold is a false positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from medtasks_ext.metrics.common import micro_f1, random_label, result, set_counts
from medtasks_ext.stats.statistic import Statistic, by_label, label_counts, macro_f1, pooled_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.stats.statistic import Array, Matrix

__all__ = ["f1_macro", "f1_micro", "micro_f1", "process_results"]

#: (gold labels, predicted labels of the label space)
Pair = tuple[list[str], list[str]]


def process_results(document: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """An invalid answer counts as one label drawn from the label space; repaired, it predicts nothing."""
    parsed = results[0]
    if document["gold"] is None:
        return result(document, parsed)
    space = document.loaded.label_space  # type: ignore[attr-defined]
    answer = parsed["answer"] if parsed["valid"] else [random_label(document)]
    predicted = sorted(set(answer) & space)
    correct = float(predicted == document["gold"])
    pair = (document["gold"], predicted)
    repaired = parsed["repaired"]
    counts = set_counts(set(repaired["gold"]), set(repaired["answer"] or ()))
    return result(
        document,
        parsed,
        score=correct,
        acc=correct,
        f1_macro=pair,
        f1_micro=pair,
        score_repaired=float(counts[1] == counts[2] == 0),
        acc_repaired=float(counts[1] == counts[2] == 0),
        f1_micro_repaired=counts,
    )


def _counts(pairs: Sequence[Pair]) -> Matrix:
    """Columns for all labels that occur."""
    gold, predicted = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return label_counts(gold, predicted, sorted(set().union(*gold, *predicted)))


def _occur(sums: Array) -> Array:
    _, predicted, gold = by_label(sums)
    occurs: Array = predicted + gold > 0
    return occurs


#: mean F1 over all labels that occur, zero where undefined. The official bootstrap keeps the columns
#: of the whole file: a label that a resample does not show counts as 0.
f1_macro = Statistic("f1_macro", _counts, lambda sums: macro_f1(sums, _occur(sums)), published=macro_f1)

#: F1 of the counts pooled over all labels
f1_micro = Statistic("f1_micro", _counts, pooled_f1)
