"""ROUGE-L of reports: the reference package's, and pycocoevalcap's written out plainly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from medtasks_ext.metrics import generation
from tests.metrics.build import INVALID, columns, documents

REFERENCE = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
WORDS = st.lists(
    st.sampled_from(
        ["No", "no", "acute", "effusion.", "effusion", "1.", "x-ray", "", "\n", "é", "effusions", "\ud800"]
    ),
    max_size=20,
).map(" ".join)


def scores(text: str, reference: str) -> dict[str, float]:
    got = columns(generation.process_report, documents([reference], language="en"), [text])
    return {name: values[0] for name, values in got.items()}


def common_subsequence(one: list[str], other: list[str]) -> int:
    row = [0] * (len(other) + 1)
    for token in one:
        before = row
        row = [0]
        for place, own in enumerate(other):
            row.append(before[place] + 1 if token == own else max(before[place + 1], row[place]))
    return row[-1]


def coco(text: str, reference: str) -> float:
    given, wanted = (item.replace("\n", " ").split(" ") for item in (text, reference))
    common = common_subsequence(given, wanted)
    precision, recall = common / len(given), common / len(wanted)
    if not common:
        return 0.0
    return (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)


@given(WORDS | st.text(max_size=60), WORDS.filter(str.strip))
def test_rouge_is_that_of_the_reference_package_without_stemming(text, reference):
    text, reference = (item.encode(errors="replace").decode() for item in (text, reference))
    expected = REFERENCE.score(reference, text)
    got = scores(text, reference)
    for name in ("rouge1", "rouge2", "rougeL"):
        assert got[name] == pytest.approx(expected[name].fmeasure, abs=1e-12)
    assert got["score"] == got["rougeL"]


@given((WORDS | st.text(max_size=60)).filter(bool), WORDS.filter(str.strip))
def test_the_coco_variant_counts_case_and_punctuation_and_weighs_recall(text, reference):
    plain = [item.encode(errors="replace").decode() for item in (text, reference)]
    assert scores(text, reference)["rougeL_coco"] == pytest.approx(coco(*plain), abs=1e-12)


def test_a_case_worked_by_hand():
    got = scores("no acute disease", "No acute cardiopulmonary disease.")
    # rouge_score: no, acute, disease of 3 and 4 tokens
    assert got["rougeL"] == pytest.approx(2 * 1 * 0.75 / 1.75)
    # whole tokens: acute alone, of 3 and 4
    assert got["rougeL_coco"] == pytest.approx(2.44 * (1 / 3) * 0.25 / (0.25 + 1.44 / 3))
    assert got["output_words"] == 3
    assert scores("effusions", "effusion")["rougeL"] == 0  # not stemmed


def test_an_empty_answer_scores_nothing():
    got = columns(generation.process_report, documents(["Normal chest."], language="en"), [INVALID])
    for name in ("score", "rougeL", "rouge1", "rouge2", "rougeL_coco", "output_words", "valid"):
        assert got[name] == [0.0]
