"""Accuracy and F1 of labels and label lists are scikit-learn's, over the gold labels alone."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from medtasks_ext.metrics import labels
from tests.metrics.build import INVALID, columns, documents, mean

LABELS = st.sampled_from(["疾病", "年龄", "药物", "a", "b"])
WITH_STRANGERS = st.sampled_from(["疾病", "年龄", "药物", "a", "b", "yeſ", "0", ""])


@given(st.lists(st.tuples(LABELS, WITH_STRANGERS), min_size=1, max_size=40))
def test_single_label_metrics_are_those_of_scikit_learn(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    got = columns(labels.process_label, documents(gold, labels=set(gold)), predicted)
    for average, value in (
        ("macro", labels.f1_macro(got["f1_macro"])),
        ("micro", labels.f1_micro(got["f1_micro"])),
    ):
        _, _, f1, _ = precision_recall_fscore_support(
            gold, predicted, labels=sorted(set(gold)), average=average, zero_division=0
        )
        assert value == pytest.approx(f1, abs=1e-12)
    assert mean(got["acc"]) == mean(got["score"]) == pytest.approx(accuracy_score(gold, predicted))


def test_in_clinicbench_an_answer_that_cannot_be_read_is_wrong():
    got = columns(
        labels.process_label_invalid_is_wrong,
        documents(["yes", "no"], labels=["yes"]),
        [INVALID, "no"],
    )
    assert got["score"] == [0, 1]
    assert got["valid"] == [0, 1]


SETS = st.frozensets(LABELS, min_size=1)


@given(st.lists(st.tuples(SETS, st.lists(WITH_STRANGERS, min_size=1)), min_size=1, max_size=25))
def test_label_list_metrics_are_those_of_multi_hot_matrices_over_the_gold_labels(rows):
    space = sorted({label for gold, _ in rows for label in gold})
    assume(len(space) > 1)  # scikit-learn takes a single column for a binary task
    docs = documents([sorted(gold) for gold, _ in rows], labels=space)
    got = columns(labels.process_labels, docs, [sorted(set(answer)) for _, answer in rows])
    hot = MultiLabelBinarizer(classes=space).fit([space])
    gold = hot.transform([gold for gold, _ in rows])
    predicted = hot.transform([set(answer) & set(space) for _, answer in rows])
    macro, micro = (
        f1_score(gold, predicted, average=average, zero_division=0) for average in ("macro", "micro")
    )
    assert labels.f1_macro_of_lists(got["f1_macro"]) == pytest.approx(macro, abs=1e-12)
    assert labels.f1_micro_of_lists(got["f1_micro"]) == pytest.approx(micro, abs=1e-12)
    assert mean(got["acc"]) == mean(got["score"]) == pytest.approx(accuracy_score(gold, predicted))


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        (["a", "b"], 1), (["b", "a"], 1),
        (["a", "b", "unknown"], 1),  # not in the label space: it vanishes
        (["a", "b", "c"], 0), (["a"], 0), ([""], 0),
    ],
)  # fmt: skip
def test_a_label_list_is_right_when_its_gold_labels_are_exactly_the_gold(answer, score):
    docs = documents([["a", "b"]], labels=["a", "b", "c"])
    assert columns(labels.process_labels, docs, [answer])["score"] == [score]
