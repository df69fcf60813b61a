"""Accuracy and F1 of labels and label lists are scikit-learn's, over the gold labels alone."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    f1_score,
    hamming_loss,
    jaccard_score,
    mean_absolute_error,
    precision_recall_fscore_support,
)
from sklearn.preprocessing import MultiLabelBinarizer

from medtasks_ext.metrics import choice, common, labels, sets
from medtasks_ext.stats.statistic import mean_of_some
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
    docs = documents(["yes", "no"], labels=["yes"])
    got = columns(labels.process_label_invalid_is_wrong, docs, [INVALID, "no"])
    assert got["score"] == [0, 1]
    assert got["valid"] == [0, 1]


def test_the_suites_own_bootstrap_counts_a_label_that_a_resample_does_not_show_as_0():
    macro, micro = labels.f1_macro_of_lists, labels.f1_micro_of_lists
    first = np.asarray(macro.counts([(["a"], ["a"]), (["b"], ["b"])])[:1].sum(axis=0))
    assert (macro.value(first), macro.published(first)) == (1, 0.5)
    assert micro.published is micro.value


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


# Entity F1, relation F1 and label-set F1 (ClinicBench) by scikit-learn, plain counting and by hand.


MENTIONS = st.frozensets(st.sampled_from(["fever", "rash", "hepatitis", "hit", "anemia"]), max_size=4)
POSITIVE = ["mechanism", "effect", "advice", "int"]
RELATIONS = st.sampled_from([*POSITIVE, "none"])
HALLMARKS = ["angiogenesis", "death", "energetics", "growth", "immune"]


@given(st.lists(st.tuples(MENTIONS, st.none() | MENTIONS), min_size=1, max_size=25))
def test_entity_f1_counts_sentence_and_text_pairs(sentences):
    """An independent count: all (sentence, mention) pairs of the corpus as two flat sets."""
    gold = {(n, mention) for n, (mentions, _) in enumerate(sentences) for mention in mentions}
    predicted = {(n, mention) for n, (_, mentions) in enumerate(sentences) for mention in mentions or ()}
    right = len(gold & predicted)
    got = columns(
        sets.process_entities,
        documents([sorted(mentions) for mentions, _ in sentences]),
        [INVALID if answer is None else sorted(answer) for _, answer in sentences],
    )
    assert got["score"] == got["entity_f1"]
    assert common.micro_precision(got["entity_precision"]) == pytest.approx(right / (len(predicted) or 1))
    assert common.micro_recall(got["entity_recall"]) == pytest.approx(right / (len(gold) or 1))
    assert common.micro_f1(got["entity_f1"]) == pytest.approx(
        2 * right / (len(gold) + len(predicted)) if right else 0
    )


@given(st.lists(st.tuples(RELATIONS, st.none() | RELATIONS), min_size=1, max_size=40))
def test_relation_f1_is_that_of_scikit_learn_without_the_negative_class(pairs):
    gold, answers = map(list, zip(*pairs, strict=True))
    predicted = ["" if answer is None else answer for answer in answers]
    read = [INVALID if answer is None else answer for answer in answers]
    got = columns(sets.process_relation_label, documents(gold), read)
    _, _, micro, _ = precision_recall_fscore_support(
        gold, predicted, labels=POSITIVE, average="micro", zero_division=0
    )
    macro = f1_score(gold, predicted, labels=sorted(set(gold)), average="macro", zero_division=0)
    assert got["score"] == got["micro_f1"]
    assert common.micro_f1(got["micro_f1"]) == pytest.approx(micro, abs=1e-12)
    assert labels.f1_macro(got["macro_f1"]) == pytest.approx(macro, abs=1e-12)
    assert mean(got["acc"]) == pytest.approx(accuracy_score(gold, predicted))
    if "" not in predicted:  # with the negative class micro-F1 is accuracy
        pooled = f1_score(gold, predicted, labels=[*POSITIVE, "none"], average="micro", zero_division=0)
        assert mean(got["acc"]) == pytest.approx(pooled)


HALLMARK_SETS = st.frozensets(st.sampled_from(HALLMARKS), max_size=4)


@given(st.lists(st.tuples(HALLMARK_SETS, HALLMARK_SETS), min_size=1, max_size=25))
def test_label_set_metrics_are_those_of_scikit_learn(pairs):
    hot = MultiLabelBinarizer(classes=HALLMARKS).fit([HALLMARKS])
    gold, predicted = (hot.transform([pair[side] for pair in pairs]) for side in (0, 1))
    got = columns(
        sets.process_labels,
        documents([sorted(pair[0]) for pair in pairs]),
        [sorted(pair[1]) for pair in pairs],
    )
    micro = f1_score(gold, predicted, average="micro", zero_division=0)
    assert common.micro_f1(got["score"]) == pytest.approx(micro, abs=1e-12)
    seen = (gold + predicted).sum(axis=0) > 0
    if seen.any():
        per_label = f1_score(gold, predicted, average=None, zero_division=0)
        assert labels.f1_macro_of_lists(got["macro_f1"]) == pytest.approx(per_label[seen].mean(), abs=1e-12)
    samples = f1_score(gold, predicted, average="samples", zero_division=1)
    assert mean(got["example_f1"]) == pytest.approx(samples, abs=1e-12)
    assert mean(got["acc"]) == pytest.approx(accuracy_score(gold, predicted))


def test_an_unreadable_answer_is_not_right_where_there_is_no_label_to_find():
    docs = documents([["death", "growth"], [], [], ["immune"]])
    got = columns(sets.process_labels, docs, [["death", "energetics"], [], INVALID, INVALID])
    # one right, energetics invented, growth and immune missed
    assert common.micro_f1(got["score"]) == pytest.approx(2 / 5)
    assert got["example_f1"] == [pytest.approx(1 / 2), 1, 0, 0] and got["acc"] == [0, 1, 0, 0]


# Scores of the kinds that belong to no paper.


RNG = np.random.default_rng(42)


def random_sets(n: int, size: int) -> list[list[str]]:
    letters = "ABCDE"[:size]
    return [sorted(RNG.choice(list(letters), RNG.integers(1, size + 1), replace=False)) for _ in range(n)]


@pytest.mark.parametrize("size", [3, 5])
def test_neutral_choices(size):
    golds, answers = random_sets(200, size), random_sets(200, size)
    docs = documents(golds, options=["x"] * size)
    table = columns(choice.process_choices, docs, answers)
    binarise = MultiLabelBinarizer(classes=list("ABCDE"[:size]))
    true, found = binarise.fit_transform(golds), binarise.transform(answers)
    assert np.mean(table["hamming_loss"]) == pytest.approx(hamming_loss(true, found))
    assert np.mean(table["jaccard"]) == pytest.approx(jaccard_score(true, found, average="samples"))
    assert np.mean(table["example_f1"]) == pytest.approx(f1_score(true, found, average="samples"))
    assert choice.micro_f1(table["micro_f1"]) == pytest.approx(f1_score(true, found, average="micro"))
    assert np.mean(table["exact_match"]) == np.mean((true == found).all(axis=1))


@pytest.mark.parametrize("size", [2, 4, 7])
def test_neutral_levels(size):
    golds, answers = RNG.integers(0, size, 300), RNG.integers(0, size, 300)
    docs = documents([{"level": int(level), "of": size} for level in golds])
    table = columns(choice.process_ordinal, docs, [int(answer) for answer in answers])
    labels = list(range(size))
    for weights in ("linear", "quadratic"):
        wanted = cohen_kappa_score(golds, answers, labels=labels, weights=weights)
        assert getattr(choice, f"kappa_{weights}")(table[f"kappa_{weights}"]) == pytest.approx(wanted)
    assert np.mean(table["mae"]) == pytest.approx(mean_absolute_error(golds, answers))


def test_an_unreadable_level_is_the_farthest_one():
    docs = documents([{"level": level, "of": 4} for level in range(4)])
    table = columns(choice.process_ordinal, docs, [INVALID] * 4)
    assert table["mae"] == [3, 2, 2, 3] and table["acc"] == [0] * 4


def test_all_of_one_level_agree_wholly_or_not_at_all():
    for n, (answer, kappa) in product((1, 5), ((1, 1.0), (2, 0.0))):
        docs = documents([{"level": 1, "of": 3}] * n)
        table = columns(choice.process_ordinal, docs, [answer] * n)
        assert choice.kappa_quadratic(table["score"]) == kappa


def test_neutral_numbers():
    golds = RNG.uniform(-50, 50, 100)
    answers = golds + RNG.normal(0, 1, 100)
    docs = documents([{"value": float(value), "within": 1.0} for value in golds])
    table = columns(choice.process_number, docs, [float(answer) for answer in answers])
    assert mean_of_some(table["mae"]) == pytest.approx(mean_absolute_error(golds, answers))
    assert np.mean(table["acc"]) == np.mean(np.abs(golds - answers) <= 1)
    [unreadable] = columns(choice.process_number, docs[:1], [INVALID])["mae"]
    assert unreadable == (0.0, 0.0)


def test_arithmetic_in_binary_fractions_costs_nothing():
    docs = documents([{"value": 0.3, "within": 0.0}])
    assert columns(choice.process_number, docs, [0.1 + 0.2])["exact_match"] == [1.0]
