"""F1 of answers that are sets: entities, labels, relations, codes, events, tuples, drugs."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from medtasks_ext.answers.choices import NEGATIVE
from medtasks_ext.answers.lists import pieces_of
from medtasks_ext.metrics.common import (
    Document,
    Metrics,
    micro_f1,
    micro_precision,
    micro_recall,
    scorer,
    set_counts,
)
from medtasks_ext.stats.statistic import Array, Statistic, as_they_are, by_label, f1_scores, macro_f1


@scorer
def process_entities(document: Document, gold: Any, answer: Any) -> Metrics:
    """Answers have no offsets: what occurs twice in a sentence counts once (ClinicBench, Section 4)."""
    counts = set_counts(set(gold), set(answer or ()))
    return dict.fromkeys(("score", "entity_f1", "entity_precision", "entity_recall"), counts)


@scorer
def process_labels(document: Document, gold: Any, answer: Any) -> Metrics:
    """An answer that cannot be read predicts no label, and is not right even where there is none."""
    predicted = answer or []
    counts = set_counts(set(gold), set(predicted))
    right = float(answer is not None and counts[1] == counts[2] == 0)
    return {
        **dict.fromkeys(("score", "micro_f1"), counts),
        "macro_f1": (gold, predicted),
        "example_f1": right or micro_f1([counts]),
        "acc": right,
    }


@scorer
def process_relation_label(document: Document, gold: Any, answer: Any) -> Metrics:
    """The class for no relation is left out of the score alone (ClinicBench, Section 4)."""
    predicted = answer or ""
    counts = set_counts({gold} - NEGATIVE, {predicted} - NEGATIVE - {""})
    return {
        **dict.fromkeys(("score", "micro_f1"), counts),
        "acc": float(predicted == gold),
        "macro_f1": (gold, predicted),
    }


@scorer
def process_codes(document: Document, gold: Any, answer: Any) -> Metrics:
    """HELM's `mimiciv_billing_code_metrics`: per document, 0 where neither side has a readable code."""
    counts = set_counts(set(gold), set(answer or ()))
    return {
        **dict.fromkeys(("score", "mimiciv_billing_code_f1"), micro_f1([counts])),
        "mimiciv_billing_code_precision": micro_precision([counts]),
        "mimiciv_billing_code_recall": micro_recall([counts]),
        "billing_code_f1_pooled": counts,
    }


@scorer
def process_relations(document: Document, gold: Any, answer: Any) -> Metrics:
    """The subject is the pair; as officially, `f1_event` compares the second entity in place of the label."""
    return _counted(*([(tuple(pair), other) for pair, other, *_ in side or ()] for side in (gold, answer)))


@scorer
def process_events(document: Document, gold: Any, answer: Any) -> Metrics:
    """F1 of whole events and of their first fields (BRIDGE Methods, `metric/extraction.py`)."""
    return _counted(gold, answer or ())


def _counted(gold: Iterable[Sequence[Any]], answer: Iterable[Sequence[Any]]) -> Metrics:
    sides = [set(map(tuple, side)) for side in (gold, answer)]
    events = set_counts(*sides)
    subjects = set_counts(*({event[0] for event in side} for side in sides))
    return {
        **dict.fromkeys(("score", "f1_event"), events),
        "f1_subject": subjects,
        "acc_event": float(events[1] == events[2] == 0),
        "acc_subject": float(subjects[1] == subjects[2] == 0),
    }


@scorer
def process_tuples(document: Document, gold: Any, answer: Any) -> Metrics:
    """MLB, Section 4.1. An unknown class is a false positive of the score and belongs to no class."""
    answer = answer or {}
    counts = _counts(gold, answer, "tuples")
    metrics: Metrics = dict.fromkeys(("score", "micro_f1", "micro_precision", "micro_recall"), counts)
    if "typed" in gold:
        metrics["micro_f1_with_types"] = _counts(gold, answer, "typed")
    if "attributes" in gold:
        given = answer.get("attributes", {})
        metrics["attribute_micro_f1"] = tuple(
            _counts(gold["attributes"], given, name) for name in gold["attributes"]
        )
    if "classes" in gold:
        given = answer.get("classes", {})
        names = sorted({*gold["classes"], *given})
        metrics["f1_macro"] = tuple((name, *_counts(gold["classes"], given, name)) for name in names)
    return metrics


def _counts(gold: dict[str, Any], answer: dict[str, Any], name: str) -> tuple[int, int, int]:
    return set_counts(_set(gold.get(name, ())), _set(answer.get(name, ())))


def _set(items: Iterable[Sequence[Any]]) -> set[Hashable]:
    return {tuple(tuple(value) if isinstance(value, list) else value for value in item) for item in items}


def _pooled_over_given(sums: Array) -> Array:
    """F1 of the counts pooled over the attributes that gold answers give: owners may leave some out."""
    counts = sums.reshape(*sums.shape[:-1], -1, 3)
    given = counts[..., 0] + counts[..., 2] > 0
    tp, fp, fn = np.moveaxis((counts * given[..., None]).sum(axis=-2), -1, 0)
    return f1_scores(tp, fp, fn)


def _by_class(items: Sequence[Sequence[tuple[str, int, int, int]]]) -> Array:
    """(n, 3 x classes): hits, predicted and gold, of all classes that occur."""
    place = {name: index for index, name in enumerate(_classes(items))}
    counts = np.zeros((len(items), 3, len(place)))
    for row, of_document in zip(counts, items, strict=True):
        for name, tp, fp, fn in of_document:
            row[:, place[name]] = tp, tp + fp, tp + fn
    return counts.reshape(len(items), -1)


def _classes(items: Sequence[Sequence[tuple[str, int, int, int]]]) -> list[str]:
    return sorted({item[0] for of_document in items for item in of_document})


attribute_micro_f1 = Statistic("attribute_micro_f1", as_they_are, _pooled_over_given)

#: items: (class, tp, fp, fn) of the classes of a document; mean F1 over the classes that the gold shows
f1_macro_of_classes = Statistic(
    "f1_macro_of_classes", _by_class, lambda sums: macro_f1(sums, by_label(sums)[2] > 0), labels=_classes
)


_DOSE = re.compile(
    r"(?<![\w.,])\d[\d.,]*(?:\s?[-–]\s?\d[\d.,]*)?\s?(?:(?:mg|mcg|µg|μg|ug|g|kg|ml|l|iu|units?|meq|mmol)\b|%)"
    r"(?:\s?/\s?\d*\s?(?:mg|g|kg|ml|l|h|hr|hour|day|dose|actuation)\b)?"
)
_FORMS = """tablet tab capsule cap caplet lozenge cream ointment gel lotion solution suspension syrup elixir
drop spray powder patch foam shampoo inhaler suppository enema injection infusion product"""
_ROUTES = """oral orally po topical topically ophthalmic otic nasal intranasal inhaled inhalation injectable
intravenous iv intramuscular im subcutaneous sc sublingual buccal rectal vaginal transdermal"""
# usp: the mark of the pharmacopoeia
_LEFT_OUT = frozenset(
    ["usp", *_ROUTES.split(), *(form + end for form in _FORMS.split() for end in ("", "s"))]
)
_BRAND = re.compile(r"(.*\S)\s*\(([^()]*)\)\s*")
_NO_WORD = re.compile(r"[\W_]+")


@scorer
def process_drugs(document: Document, gold: Any, answer: Any) -> Metrics:
    """Recommended drugs (ClinicBench, Table 1: micro F1), whose names the paper does not say how to compare.

    Here a gold entry `generic (Brand)` has three names: the generic one, the brand, and the whole entry.
    """
    drugs = [frozenset(filter(None, map(_bare_name, _names(drug)))) for drug in gold]
    named = recommended(answer or [], gold)
    counts = matched(named, drugs, lambda name, names: name in names)
    return {
        **dict.fromkeys(("score", "micro_f1", "micro_precision", "micro_recall"), counts),
        "micro_f1_substring": matched(named, drugs, shares_words),
        "list_length": float(len(named)),
    }


def _bare_name(name: str) -> str:
    return _bare(_words(name))


@lru_cache(maxsize=16_384)
def _words(name: str) -> tuple[str, ...]:
    words = _NO_WORD.sub(" ", _DOSE.sub(" ", " ".join(name.lower().split()))).split()
    return tuple(words[words[:1] in (["and"], ["or"]) :])


def _bare(words: Sequence[str]) -> str:
    """Without forms and routes, unless the name is of such words alone."""
    return " ".join([word for word in words if word not in _LEFT_OUT] or words)


def recommended(items: Sequence[Sequence[str]], gold: Sequence[str]) -> list[str]:
    """The normalised names in an answer, each spelling once.

    Neighbouring pieces between commas that together are the name of a gold drug are one (`Insulin, Aspart,
    Human`). Spellings that differ in form or route stay two, as in the gold lists.
    """
    with_commas = [
        list(map(_bare_name, parts))
        for drug in gold
        for name in _names(drug)
        if len(parts := pieces_of(name)) > 1
    ]
    longest = max(map(len, with_commas), default=1)
    spellings: dict[str, str] = {}
    for pieces in items:
        place = 0
        while place < len(pieces):
            ahead = [_bare_name(piece) for piece in pieces[place : place + longest]]
            size = max((len(name) for name in with_commas if ahead[: len(name)] == name), default=1)
            words = _words(" ".join(pieces[place : place + size]))
            if words:
                spellings.setdefault(" ".join(words), _bare(words))
            place += size
    return list(spellings.values())


def _names(drug: str) -> list[str]:
    parts = _BRAND.fullmatch(drug)
    return [drug, *(parts.groups() if parts else ())]


def shares_words(name: str, names: frozenset[str]) -> bool:
    """Whether the name holds one of them, or one of them the name, in whole words."""
    padded = f" {name} "
    return any(f" {other} " in padded or padded in f" {other} " for other in names)


def matched(
    named: Sequence[str], drugs: Sequence[frozenset[str]], same: Callable[[str, frozenset[str]], bool]
) -> tuple[int, int, int]:
    """(tp, fp, fn) of as many pairs of a name and a gold drug as can be formed, each drug once.

    A second name of a gold drug is neither right nor wrong.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    fits = np.array([[same(name, names) for names in drugs] for name in named], dtype=bool)
    fits = fits.reshape(len(named), len(drugs))
    fits = fits[fits.any(axis=1)]
    tp = 0
    if fits.size:
        pairs = maximum_bipartite_matching(csr_array(fits), perm_type="column")
        tp = int((pairs >= 0).sum())
    return tp, len(named) - len(fits), len(drugs) - tp
