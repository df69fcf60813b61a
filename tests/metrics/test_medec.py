"""MEDEC: error flag, faulty sentence (as HELM reads it), and the correction."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from medtasks_ext.answers import GoldError, answer_format
from medtasks_ext.metrics import generation
from tests.metrics.build import columns, documents

FORMAT = answer_format({"kind": "medec"})
FAULTY = "12 Oral azithromycin is given."
ACCURACIES = ("medec_error_flag_accuracy", "medec_error_sentence_accuracy")


def results(gold: str, reply: str, *, cot: bool = False) -> dict:
    document = documents([FORMAT.read_gold(gold, {})], language="en")
    answer = FORMAT.read(reply, document[0], cot=cot).answer
    return {name: values[0] for name, values in columns(generation.process_medec, document, [answer]).items()}


def accuracies(gold: str, reply: str) -> tuple[float, ...]:
    got = results(gold, reply)
    assert got["score"] == got["medec_error_flag_accuracy"]
    return tuple(got[name] for name in ACCURACIES)


def plain_official(gold: str, reply: str) -> tuple[int, int]:
    """HELM's two accuracies, written down from their description alone."""
    gold, reply = gold.replace(".", "").strip(), reply.strip()
    gold_flag = int(gold != "CORRECT")
    try:
        gold_sentence = int(gold)
    except ValueError:
        gold_sentence = -1
    flag, digits = int(reply != "CORRECT"), re.match(r"\d+", reply)
    sentence = int(digits.group()) if digits else -2
    if gold_flag != flag:
        return 0, 0
    return 1, int(not gold_flag or sentence == gold_sentence)


@pytest.mark.parametrize(
    ("gold", "reply", "expected"),
    [
        ("CORRECT", " CORRECT\n", (1, 1)), ("CORRECT", "CORRECT.", (0, 0)), ("CORRECT", "", (0, 0)),
        (FAULTY, FAULTY, (1, 0)), (FAULTY, "12", (1, 0)),  # HELM cannot read the number in its own gold
        (FAULTY, "CORRECT", (0, 0)), (FAULTY, "", (1, 0)),  # saying nothing counts as reporting an error
        ("12", "12 Oral azithromycin is given.", (1, 1)), ("12", "١٢ x", (1, 1)), ("12", "-12 x", (1, 0)),
    ],
)  # fmt: skip
def test_worked_cases(gold, reply, expected):
    assert accuracies(gold, reply) == expected
    assert plain_official(gold, reply) == expected


REPLIES = st.one_of(
    st.sampled_from(["CORRECT", "CORRECT.", FAULTY, "12", ""]),
    st.tuples(st.integers(0, 30), st.text(max_size=12)).map(lambda reply: f"{reply[0]} {reply[1]}"),
    st.text(max_size=20),
)


@given(st.sampled_from(["CORRECT", FAULTY, "12", "0 It is."]), REPLIES)
def test_accuracies_are_helms(gold, reply):
    assert accuracies(gold, reply) == plain_official(gold, reply)


@pytest.mark.parametrize(
    ("reply", "correction"),
    [
        (FAULTY, "Oral azithromycin is given."),
        ("3 Oral azithromycin is recommended.", "Oral azithromycin is recommended."), ("12", ""),
        ("CORRECT", ""), ("Oral azithromycin is given.", ""),
    ],
)  # fmt: skip
def test_the_correction_is_compared_by_rouge_over_the_notes_with_an_error(reply, correction):
    types = ["rouge1", "rouge2", "rougeL"]
    wanted = RougeScorer(types, use_stemmer=False).score("Oral azithromycin is given.", correction)
    got = results(FAULTY, reply)
    assert [got[f"correction_{name}"] for name in types] == [
        (pytest.approx(wanted[name].fmeasure), 1) for name in types
    ]


def test_gold_that_names_no_sentence_is_refused():
    with pytest.raises(GoldError, match="neither CORRECT nor begins with a sentence's number"):
        FORMAT.read_gold("Oral azithromycin is given.", {})
