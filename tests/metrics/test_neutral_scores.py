"""Scores of the kinds that belong to no paper equal those of scikit-learn."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, hamming_loss, jaccard_score, mean_absolute_error
from sklearn.preprocessing import MultiLabelBinarizer

from medtasks_ext.metrics import neutral
from medtasks_ext.stats.statistic import mean_of_some
from tests.metrics.build import INVALID, columns, documents

RNG = np.random.default_rng(42)


def read(answer):
    return INVALID if answer is None else answer


def sets(n: int, size: int) -> list[list[str]]:
    letters = "ABCDE"[:size]
    return [sorted(RNG.choice(list(letters), RNG.integers(1, size + 1), replace=False)) for _ in range(n)]


@pytest.mark.parametrize("size", [3, 5])
def test_choices(size):
    golds, answers = sets(200, size), sets(200, size)
    docs = documents(golds, options=["x"] * size)
    table = columns(neutral.process_choices, docs, [read(answer) for answer in answers])
    binarise = MultiLabelBinarizer(classes=list("ABCDE"[:size]))
    true, found = binarise.fit_transform(golds), binarise.transform(answers)
    assert np.mean(table["hamming_loss"]) == pytest.approx(hamming_loss(true, found))
    assert np.mean(table["jaccard"]) == pytest.approx(jaccard_score(true, found, average="samples"))
    assert np.mean(table["example_f1"]) == pytest.approx(f1_score(true, found, average="samples"))
    assert neutral.micro_f1(table["micro_f1"]) == pytest.approx(f1_score(true, found, average="micro"))
    assert np.mean(table["exact_match"]) == np.mean((true == found).all(axis=1))


@pytest.mark.parametrize("size", [2, 4, 7])
def test_ordinal(size):
    golds, answers = RNG.integers(0, size, 300), RNG.integers(0, size, 300)
    docs = documents([{"level": int(level), "of": size} for level in golds])
    table = columns(neutral.process_ordinal, docs, [read(int(answer)) for answer in answers])
    labels = list(range(size))
    for weights in ("linear", "quadratic"):
        wanted = cohen_kappa_score(golds, answers, labels=labels, weights=weights)
        assert getattr(neutral, f"kappa_{weights}")(table[f"kappa_{weights}"]) == pytest.approx(wanted)
    assert np.mean(table["mae"]) == pytest.approx(mean_absolute_error(golds, answers))


def test_an_unreadable_level_is_the_farthest_one():
    docs = documents([{"level": level, "of": 4} for level in range(4)])
    table = columns(neutral.process_ordinal, docs, [read(None)] * 4)
    assert table["mae"] == [3, 2, 2, 3] and table["acc"] == [0] * 4


def test_all_of_one_level_agree_wholly_or_not_at_all():
    for n, (answer, kappa) in product((1, 5), ((1, 1.0), (2, 0.0))):
        docs = documents([{"level": 1, "of": 3}] * n)
        table = columns(neutral.process_ordinal, docs, [read(answer)] * n)
        assert neutral.kappa_quadratic(table["score"]) == kappa


def test_number():
    golds = RNG.uniform(-50, 50, 100)
    answers = golds + RNG.normal(0, 1, 100)
    docs = documents([{"value": float(value), "within": 1.0} for value in golds])
    table = columns(neutral.process_number, docs, [read(float(answer)) for answer in answers])
    assert mean_of_some(table["mae"]) == pytest.approx(mean_absolute_error(golds, answers))
    assert np.mean(table["acc"]) == np.mean(np.abs(golds - answers) <= 1)
    [unreadable] = columns(neutral.process_number, docs[:1], [read(None)])["mae"]
    assert unreadable == (0.0, 0.0)


def test_arithmetic_in_binary_fractions_costs_nothing():
    docs = documents([{"value": 0.3, "within": 0.0}])
    assert columns(neutral.process_number, docs, [read(0.1 + 0.2)])["exact_match"] == [1.0]
