"""Lists of drugs: what is an item, and where commas divide it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import GoldError, answer_format

FORM = answer_format({"kind": "drug_list"})


def read(text: str, *, cot: bool = False) -> list[list[str]] | None:
    reading = FORM.read(text, {}, cot=cot)
    assert reading.valid == (reading.answer is not None)
    return reading.answer


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Final Answer:\nAspirin\nHeparin", [["Aspirin"], ["Heparin"]]),
        ("Analysis: no Codeine.\nFinal Answer: Aspirin; Heparin", [["Aspirin"], ["Heparin"]]),
        ("final answer：Aspirin, Heparin", [["Aspirin", "Heparin"]]),
        ("Final Answer: Codeine\nFinal Answer: Aspirin", [["Aspirin"]]),
        (
            "**Final Answer:**\n- Aspirin\n* Heparin\n• Codeine",
            [["Aspirin"], ["Heparin"], ["Codeine"]],
        ),
        ("1. Aspirin\n2) Heparin\n(3) Codeine", [["Aspirin"], ["Heparin"], ["Codeine"]]),
        ("1. Aspirin 2. Heparin 3. Codeine", [["Aspirin"], ["Heparin"], ["Codeine"]]),
        ("Pneumococcal Vaccine (Prevnar 13)\nAspirin", [["Pneumococcal Vaccine (Prevnar 13)"], ["Aspirin"]]),
        ("6-Aminocaproic Acid\nOmega-3 Fatty Acids", [["6-Aminocaproic Acid"], ["Omega-3 Fatty Acids"]]),
        ("Vitamin D 1,000 IU, Aspirin", [["Vitamin D 1,000 IU", "Aspirin"]]),
        ("Aspirin,, ,Heparin.\n\n---\n", [["Aspirin", "Heparin."]]),
        ("<think>Codeine</think>Aspirin", [["Aspirin"]]),
    ],
)
def test_items_of_a_list(text, items):
    found = read(text)
    assert [[piece.strip("* ") for piece in pieces] for pieces in found or []] == items


@pytest.mark.parametrize(
    "text", ["", "\n ", "Final Answer:", "Aspirin\nFinal Answer:\n---", "◇◇◇", "<think>Aspirin"]
)
def test_no_list(text):
    assert read(text) is None


def test_under_chain_of_thought_the_result_is_read_where_no_final_answer_is_marked():
    assert read("Not Codeine.\nResult: Aspirin", cot=True) == [["Aspirin"]]
    assert read("Result:\nFinal Answer:\nAspirin", cot=True) == [["Aspirin"]]
    assert read("Final Answer:\nAspirin\nResult: Heparin", cot=True) == [["Heparin"]]  # the last one


def test_gold_is_one_drug_a_line_commas_and_all():
    text = "Final Answer:\nInsulin, Aspart, Human (Novolog)\n Aspirin \n"
    assert FORM.read_gold(text, {}) == ["Insulin, Aspart, Human (Novolog)", "Aspirin"]
    for empty in ("", "Final Answer:\n \n", "\n-"):
        with pytest.raises(GoldError, match="no drug is listed"):
            FORM.read_gold(empty, {})


@given(st.text(max_size=80), st.booleans())
def test_no_reply_is_refused(text, cot):
    found = read(text, cot=cot)
    assert found is None or (found and all(piece.strip() for pieces in found for piece in pieces))
