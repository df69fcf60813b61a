"""Scores of the kinds of answers that belong to no paper: one option, several, a number, a level, a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from medtasks_ext.metrics.common import Document, Metrics, language_of, micro_f1, scorer, set_counts
from medtasks_ext.metrics.generation import ROUGE_NAMES, rouge_scores
from medtasks_ext.stats.statistic import Statistic, ratios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.stats.statistic import Array


@scorer
def process_one(document: Document, gold: Any, answer: Any) -> Metrics:
    return dict.fromkeys(("score", "acc"), float(answer == gold))


@scorer
def process_choices(document: Document, gold: list[str], answer: list[str] | None) -> Metrics:
    """`jaccard` is FrenchMedMCQA's Hamming score; `hamming_loss` is over the options of a question."""
    right, chosen = set(gold), set(answer or [])
    tp, fp, fn = counts = set_counts(right, chosen)
    exact = float(answer is not None and right == chosen)
    size = len(document.get("options") or right | chosen)
    return {
        **dict.fromkeys(("score", "exact_match"), exact),
        "micro_f1": counts,
        "example_f1": micro_f1([counts]),
        "jaccard": tp / (tp + fp + fn),
        "hamming_loss": (fp + fn) / size,
    }


#: of what is compared after arithmetic in binary fractions
_ROUNDED = 1e-9


@scorer
def process_number(document: Document, gold: Mapping[str, float], answer: float | None) -> Metrics:
    """`exact_match` allows no tolerance; `mae` is over the answers that can be read."""
    error = None if answer is None else abs(answer - gold["value"])
    slack = _ROUNDED * max(1.0, abs(gold["value"]))
    within = float(error is not None and error <= gold["within"] + slack)
    return {
        **dict.fromkeys(("score", "acc"), within),
        "exact_match": float(error is not None and error <= slack),
        "mae": (0.0, 0.0) if error is None else (error, 1.0),
    }


@scorer
def process_ordinal(document: Document, gold: Mapping[str, int], answer: int | None) -> Metrics:
    """An answer that cannot be read counts as the level farthest from the right one."""
    level, size = gold["level"], gold["of"]
    given = answer if answer is not None else (0 if level >= size - 1 - level else size - 1)
    return {
        **dict.fromkeys(("score", "kappa_quadratic", "kappa_linear"), (level, given, size)),
        "acc": float(answer == level),
        "mae": float(abs(given - level)),
    }


@scorer
def process_prose(document: Document, reference: str, answer: str | None) -> Metrics:
    """`rouge_l`, the score: ROUGE-L (F), 0-1, on the tokens of the dataset's language, without stemming."""
    scores = rouge_scores(answer or "", [reference], language_of(document), plain=True)
    names = {"score": "rougeL", **ROUGE_NAMES}
    # without a tokeniser there is none, which a warning says
    return {name: scores[kind] for name, kind in names.items()} if scores else {}


def _confusion(items: Sequence[tuple[int, int, int]]) -> Array:
    """(documents, levels x levels): one document in the cell of its gold level and its answer."""
    size = items[0][2] if items else 1
    counts = np.zeros((len(items), size * size))
    counts[np.arange(len(items)), [gold * size + given for gold, given, _ in items]] = 1
    return counts


def _kappa(sums: Array, power: int) -> Array:
    size = round(sums.shape[-1] ** 0.5)
    table = sums.reshape(*sums.shape[:-1], size, size)
    levels = np.arange(size)
    weights = np.abs(levels[:, None] - levels[None, :]) ** power
    total = table.sum(axis=(-2, -1))
    by_chance = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    seen = (table * weights).sum(axis=(-2, -1))
    expected = ratios((by_chance * weights).sum(axis=(-2, -1)), total)
    # where gold and answers are one and the same level, chance agrees wholly, and so do they
    return np.where(expected > 0, 1 - ratios(seen, expected), np.where((seen == 0) & (total > 0), 1.0, 0.0))


#: Cohen's kappa with weights that grow with the distance, or with its square (Cohen, Psychol. Bull. 1968)
kappa_linear = Statistic("kappa_linear", _confusion, lambda sums: _kappa(sums, 1))
kappa_quadratic = Statistic("kappa_quadratic", _confusion, lambda sums: _kappa(sums, 2))
#: the score, which lies on 0-1: agreement below chance is none
clipped_kappa = Statistic("clipped_kappa", _confusion, lambda sums: np.maximum(_kappa(sums, 2), 0.0))
