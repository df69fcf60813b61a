"""Scores of one option or several, a number, a level, a prose text: HELM's, a panel's, and of no paper."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medtasks_ext.answers.helm import CATEGORIES, HELM_CATEGORIES, loose_value, value
from medtasks_ext.metrics.common import Document, Metrics, language_of, micro_f1, scorer, set_counts
from medtasks_ext.metrics.generation import ROUGE_NAMES, rouge_scores
from medtasks_ext.stats.statistic import Array, Statistic, in_run, ratios

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


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


@scorer
def process_choice(document: Document, gold: Any, answer: Any) -> Metrics:
    """HELM's `evaluate_reference_metrics` compares the texts of options; without any the answer itself."""
    chosen = answer or ""
    if "options" in document:
        texts = dict(zip(string.ascii_uppercase, document["options"], strict=False))
        gold, chosen = texts[gold], texts.get(chosen, "")
    matches = exact_matches(chosen, gold)
    return in_run(document, {"score": matches["exact_match"], **matches})


@scorer
def process_panel(document: Document, gold: dict[str, float], answer: Any) -> Metrics:
    """A choice against a distribution of experts (script concordance; SCT-Bench, `modeling.py`)."""
    credit = gold.get(answer, 0.0)
    return {
        **dict.fromkeys(("score", "panel_credit"), credit),
        "in_panel": float(credit > 0),
        "modal": float(credit == 1),
    }


_COMPARED_AS_TEXT = ("risk", "severity", "diagnosis")
_BY_CATEGORY = tuple(f"accuracy_{name}" for name in dict.fromkeys(CATEGORIES.values()))


@scorer
def process_medcalc(document: Document, gold: Mapping[str, Any], answer: str | None) -> Metrics:
    """MedCalc-Bench (HELM, `medcalc_bench_metrics`); `accuracy_CATEGORY` reads `(4 weeks, 3 days)`, too."""
    reply, same, category = answer or "", (answer or "") == gold["answer"], gold["category"]
    strict, loose = (
        number is not None and gold["lower"] <= number <= gold["upper"]
        for number in (value(reply, gold["form"]), loose_value(reply, gold["form"]))
    )
    # HELM does not know `lab test` and `dosage`, among others
    official = category in HELM_CATEGORIES and (same if category in _COMPARED_AS_TEXT else strict)
    own = f"accuracy_{CATEGORIES[category]}"
    return {
        **dict.fromkeys(("score", "medcalc_bench_accuracy"), float(official)),
        # as strict as HELM about anything beside the value: units, a full stop, words
        **{name: (float(same or loose), 1) if name == own else (0, 0) for name in _BY_CATEGORY},
        **exact_matches(reply, gold["answer"]),
    }


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
