"""Recommended drugs under generic and brand names, compared with a search over all assignments."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import answer_format
from medtasks_ext.metrics import sets
from medtasks_ext.metrics.common import micro_f1, micro_precision, micro_recall
from tests.metrics.build import INVALID, columns, documents

FORM = answer_format({"kind": "drug_list"})


def counts(reply: str, gold: list[str], metric: str = "micro_f1") -> tuple[int, int, int]:
    reading = FORM.read(reply, {}, cot=False)
    answer = reading.answer if reading.valid else INVALID
    got = columns(sets.process_drugs, documents([gold]), [answer])
    assert got["score"] == got["micro_f1"] == got["micro_precision"] == got["micro_recall"]
    return got[metric][0]


GOLD = ["Sildenafil (Viagra)", "Testosterone", "Malathion Topical"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Sildenafil", (1, 0, 2)), ("Viagra", (1, 0, 2)), ("SILDENAFIL (VIAGRA)", (1, 0, 2)),
        ("Sildenafil 50 mg tablets", (1, 0, 2)),
        ("Sildenafil, Viagra", (1, 0, 2)),  # two names of one drug: the second is dropped
        ("Sildenafil\nSildenafil", (1, 0, 2)),
        ("Sildenafil (Revatio)", (0, 1, 3)),  # the brand is another
        ("Tadalafil, Tadalafil 5 mg, tadalafil.", (0, 1, 3)),  # one wrong drug, said three times
        ("Malathion", (1, 0, 2)), ("Malathion lotion 0.5%, testosterone gel, and Viagra.", (3, 0, 0)),
        ("1. Viagra 2. Testosterone 3. Malathion", (3, 0, 0)), ("Sildenafil - relaxes vessels", (0, 1, 3)),
        ("no drug", (0, 1, 3)), ("", (0, 0, 3)),
    ],
)  # fmt: skip
def test_names_count_once_for_each_gold_drug(reply, expected):
    assert counts(reply, GOLD) == expected


@pytest.mark.parametrize(
    ("reply", "gold", "exact", "substring"),
    [
        ("Sildenafil (Revatio)", GOLD, (0, 1, 3), (1, 0, 2)),
        ("Hydrocortisone", ["Hydrocortisone-Pramoxine Topical"], (0, 1, 1), (1, 0, 0)),
        ("Fairy dust", ["Air"], (0, 1, 1), (0, 1, 1)),  # whole words
    ],
)
def test_the_substring_variant_takes_names_that_hold_each_other(reply, gold, exact, substring):
    assert counts(reply, gold) == exact
    assert counts(reply, gold, "micro_f1_substring") == substring


def test_two_entries_that_differ_in_form_need_two_names():
    gold = ["Erythromycin", "Erythromycin Ophthalmic", "Timolol"]
    assert counts("Erythromycin", gold) == (1, 0, 2)
    assert counts("Erythromycin Ophthalmic; Erythromycin", gold) == (2, 0, 1)
    assert counts("Erythromycin, Erythromycin Ophthalmic, Erythromycin Topical", gold) == (2, 0, 1)


@pytest.mark.parametrize(
    ("name", "normalised"),
    [
        ("  Amoxicillin 500 mg  Oral Capsules ", "amoxicillin"),
        ("Insulin glargine 100 units/mL", "insulin glargine"), ("Ibuprofen 200-400 mg PO", "ibuprofen"),
        ("Polyethylene Glycol 3350", "polyethylene glycol 3350"),
        ("Pneumococcal 13-Valent (Prevnar 13)", "pneumococcal 13 valent prevnar 13"),
        ("0.9% Sodium Chloride IV", "sodium chloride"), ("Camphor-Phenol Topical", "camphor phenol"),
        ("Factor Ix Complex", "factor ix complex"), ("Sennosides, Usp", "sennosides"),
        ("and Warfarin", "warfarin"), ("Topical", "topical"), ("(!)", ""),
    ],
)  # fmt: skip
def test_normalised_names(name, normalised):
    assert sets.normalise_drug(name) == normalised


def test_f1_pools_documents_and_an_unreadable_answer_recommends_nothing():
    golds = [["Aspirin", "Heparin"], ["Codeine"]]
    got = columns(sets.process_drugs, documents(golds), [[["Aspirin", "Warfarin"]], INVALID])
    # 1 right, 1 wrong, 2 missed
    assert micro_precision(got["score"]) == pytest.approx(1 / 2)
    assert micro_recall(got["score"]) == pytest.approx(1 / 3)
    assert micro_f1(got["score"]) == pytest.approx(2 / 5)
    assert got["list_length"] == [2.0, 0.0]
    assert got["valid"] == [1.0, 0.0]


LETTERS = st.sampled_from("abcdef")
DRUGS = st.lists(
    st.one_of(LETTERS, st.tuples(LETTERS, LETTERS).map(lambda names: f"{names[0]} ({names[1]})")),
    min_size=1,
    max_size=5,
)


def by_search(named: list[str], gold: list[str]) -> tuple[int, int, int]:
    """All ways to give names to gold drugs; letters are names, so nothing is normalised."""
    names = [{drug[0], drug[3]} if "(" in drug else {drug} for drug in gold]
    distinct = sorted(set(named))
    slots = [*distinct, *[""] * len(gold)]
    best = max(
        sum(name in allowed for name, allowed in zip(order, names, strict=True))
        for order in set(permutations(slots, len(gold)))
    )
    wrong = sum(not any(name in allowed for allowed in names) for name in distinct)
    return best, wrong, len(gold) - best


@given(st.lists(LETTERS, max_size=4), DRUGS)
def test_as_many_gold_drugs_are_matched_as_any_assignment_can(named, gold):
    assert counts(", ".join(named), gold) == by_search(named, gold)


NAMES = [
    "Aspirin", "Insulin, Aspart, Human (Novolog)", "Vitamin B 12", "Zosyn", "Sennosides, Usp (Perdiem)",
    "Air", "Neomycin, Polymyxin",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    st.sampled_from(["\n", "; ", ", ", "\n- ", "\n* ", " • "]),
)
def test_the_gold_list_itself_is_right_in_every_spelling_of_a_list(gold, separator):
    reply = "Final Answer:" + separator.strip(" ;,") + " " + separator.join(gold) + "."
    assert counts(reply, gold) == (len(gold), 0, 0)
