"""One option letter in a reply that may hold reasoning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.answers import GoldError, answer_format

FORM = answer_format({"kind": "option_letter", "letters": ["A", "B", "C", "D"]})
OPTIONS = ["Heparin", "C. difficile colitis", "A beta blocker", "AB"]


def read(text: str, *, cot: bool = False, options: list[str] = OPTIONS) -> str | None:
    reading = FORM.read(text, {"options": options}, cot=cot)
    assert reading.valid == (reading.answer is not None)
    return reading.answer


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: B", "B"),
        ("answer：b", "B"),
        ("Answer:\n\nD", "D"),
        ("**Answer:** B", "B"),
        ("Answer: **B. Something**", "B"),
        ("Final Answer: (C) a beta blocker", "C"),
        (r"Answer: $\boxed{D}$", "D"),
        (r"Answer: \boxed{\text{D}}", "D"),
        ("Answer: Option C", "C"),
        ("Answer: <D>", "D"),
        ("Answer: A is right since it is fast.", "A"),
        ("Answer: B\nNot A: it is too slow.", "B"),
        ("A would be fast. Answer: A\nWait.\nAnswer: D", "D"),
        ("Heparin", "A"),
        ("Answer: Heparin", "A"),
        ("Answer: AB", "D"),  # the text of D
        ("Answer: A beta blocker", "C"),  # the article
        ("The answer is a beta blocker", "C"),
        ("Answer: C. difficile colitis", "B"),
        ("C. difficile colitis.", "B"),
        ("The correct answer is (C) a beta blocker.", "C"),
        ("The answer is B. Which answer is best is often asked.", "B"),
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("A. Heparin", "A"),
        ("A) Heparin\n\nB is wrong.", "A"),
        ("B\nB. difficile", "B"),
        ("<think>A. no\nAnswer: A</think>C", "C"),
    ],
)
def test_a_letter_is_found(text, letter):
    assert read(text) == letter


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Answer: none of them",
        "B. Heparin",  # the text of A
        "The other options are not the correct answer:\nA. too slow\nB. too weak",
        "Answer: A\n\nAnswer: D",
        "The answer is not B.",
        "Answer: E",  # there are four options
        "Answer: B or C",
        "Answer: A, C",
        "Answer: D/A",
        "Answer: **A** and **B**",
        "Answer: B-cell lymphoma",
        "Answer: b because",
        "A. no\nB. yes",  # the options repeated
        "A is wrong, B is right",
        "<think>Answer: A",
    ],
)
def test_no_letter_is_found(text):
    assert read(text) is None


def test_the_strategy_changes_nothing():
    for text in ("The dose is 2.\nResult: B", "Only reasoning. Answer: D", "A would be fast."):
        assert read(text, cot=True) == read(text)


def test_a_row_may_have_fewer_or_more_options():
    assert read("Answer: C", options=["yes", "no"]) is None
    assert read("Answer: E", options=[*OPTIONS, "none"]) == "E"


def test_an_option_of_one_letter_is_no_reason_to_refuse_it():
    assert read("Answer: A", options=["B", "A", "O", "AB"]) == "A"


@given(
    st.sampled_from("ABCD"),
    st.sampled_from(["{}", "({})", "**{}**", "[{}]", "{}.", "{})", "Option {}", "{}: as said", " {} "]),
    st.sampled_from(["Answer: {}", "The answer is {}", "**Answer:** {}", "Reasons.\n\nAnswer: {}\n", "{}"]),
)
def test_any_usual_spelling_of_a_letter_is_read(letter, spelling, sentence):
    assert read(sentence.format(spelling.format(letter))) == letter


PIECES = [
    "Answer",
    ":",
    " is ",
    "A",
    "b",
    "C",
    "D",
    "E",
    " or ",
    "\n",
    "**",
    "(",
    ")",
    ".",
    "Result:",
    " word ",
    "\\boxed{",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join), st.booleans())
def test_whatever_the_reply_is_an_option_is_read_or_nothing(text, cot):
    assert read(text, cot=cot) in {"A", "B", "C", "D", None}


@pytest.mark.parametrize(
    "unit", ["answer: ", "answer is ", "answer ", "*", "A or ", "A. ", "\n", " ", "(", "option "]
)
def test_a_reply_that_repeats_itself_is_read(unit):
    assert read((unit * 20_000)[:20_000]) in {"A", None}


def test_gold_is_a_letter_of_the_row():
    row = {"options": OPTIONS}
    assert FORM.read_gold("Answer: B", row) == FORM.read_gold(" B ", row) == "B"
    for text in ("E", "", "AB", "none", "Answer:"):
        with pytest.raises(GoldError, match="is not the letter of one of the 4 options"):
            FORM.read_gold(text, row)


def test_sample_rows_must_show_every_letter():
    assert FORM.not_covered(["A", "D", "A"]) == ["B", "C"]


# Lists of drugs: what is an item, and where commas divide it.


DRUGS = answer_format({"kind": "drug_list"})


def drugs_of(text: str, *, cot: bool = False) -> list[list[str]] | None:
    reading = DRUGS.read(text, {}, cot=cot)
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
    found = drugs_of(text)
    assert [[piece.strip("* ") for piece in pieces] for pieces in found or []] == items


@pytest.mark.parametrize(
    "text", ["", "\n ", "Final Answer:", "Aspirin\nFinal Answer:\n---", "◇◇◇", "<think>Aspirin"]
)
def test_no_list(text):
    assert drugs_of(text) is None


def test_under_chain_of_thought_the_result_is_read_where_no_final_answer_is_marked():
    assert drugs_of("Not Codeine.\nResult: Aspirin", cot=True) == [["Aspirin"]]
    assert drugs_of("Result:\nFinal Answer:\nAspirin", cot=True) == [["Aspirin"]]
    assert drugs_of("Final Answer:\nAspirin\nResult: Heparin", cot=True) == [["Heparin"]]  # the last one


def test_gold_is_one_drug_a_line_commas_and_all():
    text = "Final Answer:\nInsulin, Aspart, Human (Novolog)\n Aspirin \n"
    assert DRUGS.read_gold(text, {}) == ["Insulin, Aspart, Human (Novolog)", "Aspirin"]
    for empty in ("", "Final Answer:\n \n", "\n-"):
        with pytest.raises(GoldError, match="no drug is listed"):
            DRUGS.read_gold(empty, {})


@given(st.text(max_size=80), st.booleans())
def test_no_reply_is_refused(text, cot):
    found = drugs_of(text, cot=cot)
    assert found is None or (found and all(piece.strip() for pieces in found for piece in pieces))
