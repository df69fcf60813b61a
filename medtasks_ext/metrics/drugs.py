"""F1 of recommended drugs under their generic and brand names (ClinicBench, Table 1: micro F1).

The paper does not say how names are compared. Here a gold entry `generic (Brand)` has three names:
the generic one, the brand, and the whole entry.

`micro_f1` (the score) pools drug lists. Case, dose, form, route and punctuation are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from medtasks_ext.answers.lists import pieces_of
from medtasks_ext.metrics.common import Document, Metrics, scorer

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
def process_results(document: Document, gold: Any, answer: Any) -> Metrics:
    """`micro_f1` (the score) takes equal names, `micro_f1_substring` names of which one is in the other.

    An answer that cannot be read recommends nothing.
    """
    drugs = [aliases(drug) for drug in gold]
    named = recommended(answer or [], gold)
    counts = matched(named, drugs, lambda name, names: name in names)
    return {
        **dict.fromkeys(("score", "micro_f1", "micro_precision", "micro_recall"), counts),
        "micro_f1_substring": matched(named, drugs, shares_words),
        "list_length": float(len(named)),
    }


def normalise(name: str) -> str:
    """Lower case without doses, forms, routes, punctuation and a leading `and`; single blanks.

    A name of such words alone keeps them.
    """
    return _bare(_words(name))


@lru_cache(maxsize=16_384)
def _words(name: str) -> tuple[str, ...]:
    words = _NO_WORD.sub(" ", _DOSE.sub(" ", " ".join(name.lower().split()))).split()
    return tuple(words[words[:1] in (["and"], ["or"]) :])


def _bare(words: Sequence[str]) -> str:
    return " ".join([word for word in words if word not in _LEFT_OUT] or words)


def aliases(drug: str) -> frozenset[str]:
    """The normalised names of a gold drug: of `generic (Brand)` both, and the whole."""
    return frozenset(filter(None, map(normalise, _names(drug))))


def recommended(items: Sequence[Sequence[str]], gold: Sequence[str]) -> list[str]:
    """The normalised names in an answer.

    Neighbouring pieces between commas that together are the name of a gold drug are one (`Insulin,
    Aspart, Human`). The same spelling twice counts once. Spellings that differ in form or route alone
    stay two, since the gold lists them as two (`Erythromycin`, `Erythromycin Ophthalmic`).
    """
    with_commas = [
        list(map(normalise, parts))
        for drug in gold
        for name in _names(drug)
        if len(parts := pieces_of(name)) > 1
    ]
    longest = max(map(len, with_commas), default=1)
    spellings: dict[str, str] = {}
    for pieces in items:
        place = 0
        while place < len(pieces):
            size = _run([normalise(piece) for piece in pieces[place : place + longest]], with_commas)
            words = _words(" ".join(pieces[place : place + size]))
            if words:
                spellings.setdefault(" ".join(words), _bare(words))
            place += size
    return list(spellings.values())


def _names(drug: str) -> list[str]:
    parts = _BRAND.fullmatch(drug)
    return [drug, *(parts.groups() if parts else ())]


def _run(pieces: Sequence[str], with_commas: Sequence[Sequence[str]]) -> int:
    """How many pieces from the first on are one name of the gold: the most that are, else 1."""
    return max((len(name) for name in with_commas if pieces[: len(name)] == name), default=1)


def shares_words(name: str, names: frozenset[str]) -> bool:
    """Whether the name holds one of them, or one of them the name, in whole words."""
    padded = f" {name} "
    return any(f" {other} " in padded or padded in f" {other} " for other in names)


def matched(
    named: Sequence[str], drugs: Sequence[frozenset[str]], same: Callable[[str, frozenset[str]], bool]
) -> tuple[int, int, int]:
    """(tp, fp, fn) of a recommendation: as many pairs of a name and a gold drug as can be formed.

    Each gold drug is matched once. A second name of a gold drug is neither right nor wrong; a name of
    none is a false positive.
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
