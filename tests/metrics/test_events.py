"""Event, relation and code F1 against a plain count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from medtasks_ext.answers import answer_format
from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.metrics import common, sets
from tests.metrics.build import INVALID, columns, documents, mean

EVENT = st.tuples(st.sampled_from("abcd"), st.sampled_from("xy")).map(list)
EVENTS = st.lists(EVENT, max_size=6)


def f1_by_counting(rows: list[tuple[set, set]]) -> float:
    tp = sum(item in predicted for gold, predicted in rows for item in gold)
    n_gold = sum(len(gold) for gold, _ in rows)
    n_predicted = sum(len(predicted) for _, predicted in rows)
    if not tp:
        return 0.0
    precision, recall = tp / n_predicted, tp / n_gold
    return 2 * precision * recall / (precision + recall)


@given(st.lists(st.tuples(EVENTS.filter(bool), EVENTS), min_size=1, max_size=12))
def test_event_and_subject_f1_pool_the_counts_of_all_documents(rows):
    got = columns(sets.process_events, documents([gold for gold, _ in rows]), [answer for _, answer in rows])
    whole = [(set(map(tuple, gold)), set(map(tuple, answer))) for gold, answer in rows]
    subjects = [({event[0] for event in gold}, {event[0] for event in answer}) for gold, answer in rows]
    assert common.micro_f1(got["score"]) == pytest.approx(f1_by_counting(whole), abs=1e-12)
    assert common.micro_f1(got["f1_event"]) == common.micro_f1(got["score"])
    assert common.micro_f1(got["f1_subject"]) == pytest.approx(f1_by_counting(subjects), abs=1e-12)
    assert got["acc_event"] == [float(gold == answer) for gold, answer in whole]
    assert got["acc_subject"] == [float(gold == answer) for gold, answer in subjects]


def test_an_answer_without_events_misses_them_all():
    got = columns(
        sets.process_events, documents([[["a", "x"], ["b", "y"]], [["c", "x"]]]), [INVALID, [["c", "x"]]]
    )
    assert got["score"] == [(0, 0, 2), (1, 0, 0)]
    assert common.micro_f1(got["score"]) == pytest.approx(0.5)  # precision 1, recall 1/3
    assert got["valid"] == [0, 1]


@pytest.mark.parametrize(
    ("line", "event", "subject"),
    [
        ("entity_1: a, entity_2: b, relation: holder;", 1, 1),
        ("entity_1: a, entity_2: b, relation: partner;", 1, 1),  # the label is officially never scored
        ("entity_1: b, entity_2: a, relation: holder;", 0, 1),  # the second place is
        ("entity_1: a, entity_2: c, relation: holder;", 0, 0),
        ("no relation", 0, 0),
    ],
)
def test_relations_are_scored_as_published(line, event, subject):
    block = {
        "kind": "relation_lines",
        "fields": ["entity_1", "entity_2", "relation"],
        "patterns": ["strict", "loose"],
    }
    got = scores(sets.process_relations, block, "entity_1: a, entity_2: b, relation: holder;", line)
    assert got == {"score": event, "f1_event": event, "f1_subject": subject}


def scores(process, block, gold, line):
    """F1 of one answer to one document, from text to metric."""
    [document] = documents([answer_format(block).read_gold(gold, {})])
    document["target"] = gold
    result = process(document, ParseAnswer(answer=block).apply([[line]], [document]))
    return {name: common.micro_f1([value]) for name, value in result.items() if isinstance(value, tuple)}


CODES = st.frozensets(st.sampled_from(["I10", "J44.9", "E11.65", "S72", "Z99"]))


@given(st.lists(st.tuples(CODES, CODES), min_size=1, max_size=4))
def test_billing_code_metrics_are_those_that_helm_takes_from_scikit_learn(rows):
    got = columns(
        sets.process_codes,
        documents([sorted(gold) for gold, _ in rows]),
        [sorted(answer) for _, answer in rows],
    )
    assert got["score"] == got["mimiciv_billing_code_f1"]
    for i, (gold, answer) in enumerate(rows):
        if not gold | answer:
            continue  # scikit-learn refuses; see the next test
        hot = MultiLabelBinarizer(classes=sorted(gold | answer))
        matrices = hot.fit_transform([gold]), hot.transform([answer])
        for name, score in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
            expected = score(*matrices, average="micro", zero_division=0)
            assert got[f"mimiciv_billing_code_{name}"][i] == pytest.approx(expected)
    assert common.micro_f1(got["billing_code_f1_pooled"]) == pytest.approx(f1_by_counting(rows), abs=1e-12)


def test_no_readable_code_on_either_side_scores_0():
    got = columns(sets.process_codes, documents([[]]), [[]])
    assert got["score"] == got["mimiciv_billing_code_precision"] == got["mimiciv_billing_code_recall"] == [0]


def test_billing_codes_are_averaged_over_documents_and_pooled_beside():
    got = columns(sets.process_codes, documents([["I10"], ["A00", "B99", "C34"]]), [["I10"], ["D50"]])
    assert mean(got["score"]) == 0.5
    assert common.micro_f1(got["billing_code_f1_pooled"]) == pytest.approx(1 / 3)  # 1 right of 2 and of 4
