"""Equal models: p-values are uniform, and errors no more frequent than they claim, of tasks and of groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.metrics.single_label import f1_macro
from medtasks_ext.stats.bootstrap import resampling_weights
from medtasks_ext.stats.comparison import bootstrap_p_value
from medtasks_ext.stats.counts import Counts, counts_of
from medtasks_ext.stats.permutation import MOST_DOCUMENTS, Part, document_test, mid_p, paired_test
from medtasks_ext.stats.statistic import mean

nightly = pytest.mark.nightly


def times(few, many):
    """So many simulations every day, and so many at night."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=nightly)])


def a_mean(scores):
    return Counts(np.column_stack([scores, np.ones(len(scores))]), {"score": mean})


def pooled_f1(rng, n):
    """Two equal models that find and miss entities of the same documents."""
    gold = rng.poisson(4, n)
    return [
        Counts(np.column_stack([hits, rng.poisson(1, n), gold - hits]).astype(float), {"score": micro_f1})
        for hits in (rng.binomial(gold, 0.6) for _ in range(2))
    ]


@times(400, 4000)
def test_sign_flips(times):
    rng = np.random.default_rng(4)
    found = [paired_test(*rng.beta(2, 2, (2, 40))).p_value for _ in range(times)]
    assert stats.kstest(found, "uniform").pvalue > 0.05


@times(150, 1500)
def test_groups_of_small_tasks(times):
    """Three tasks of unlike size and spread."""
    rng, weights = np.random.default_rng(5), (0.5, 0.25, 0.25)
    found = [
        document_test(
            [
                Part(weight, *map(a_mean, rng.beta(spread, spread, (2, n))))
                for weight, n, spread in zip(weights, (8, 5, 12), (0.5, 2, 5), strict=True)
            ],
            25,
        ).p_value
        for _ in range(times)
    ]
    assert stats.kstest(found, "uniform").pvalue > 0.05


@times(150, 1500)
def test_groups_of_means_and_pooled_f1(times):
    rng = np.random.default_rng(6)
    found = [
        document_test(
            [Part(0.5, *pooled_f1(rng, 10)), Part(0.5, *map(a_mean, rng.random((2, 12))))], 22
        ).p_value
        for _ in range(times)
    ]
    assert stats.kstest(found, "uniform").pvalue > 0.05


@times(400, 4000)
def test_a_pooled_f1_of_few_documents_is_tested_exactly(times):
    """No pattern of swaps beyond the observed one is more extreme in more than a share of alpha."""
    rng = np.random.default_rng(7)
    found = np.array([document_test([Part(1.0, *pooled_f1(rng, 8))], 8).p_value for _ in range(times)])
    for alpha in (0.02, 0.05, 0.2, 0.5):
        assert np.mean(found <= alpha) <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / times)


@times(2000, 20_000)
def test_the_bootstrap_of_many_documents(times):
    """One task, and a group of four: both larger than what is tested document by document."""
    rng = np.random.default_rng(5)
    for sizes in ((MOST_DOCUMENTS + 100,), (150,) * 4):
        total = np.zeros((times, 1000))
        for place, n in enumerate(sizes):
            differences = rng.beta(2, 2, (times, n)) - rng.beta(2, 2, (times, n))
            weights = resampling_weights(f"null {place}", n).astype(np.float32)
            total += differences.astype(np.float32) @ weights.T / n / len(sizes)
        found = bootstrap_p_value(total)
        assert stats.kstest(found, "uniform").pvalue > 0.01
        assert abs(np.mean(found <= 0.05) - 0.05) < 0.005 + 3 * np.sqrt(0.05 * 0.95 / times)


@nightly
@pytest.mark.parametrize(
    ("tasks", "n", "errors"), [(1, 8, 0.11), (1, 30, 0.06), (10, 8, 0.07), (1, 500, 0.05)]
)
def test_how_often_the_bootstrap_errs_at_5_percent(tasks, n, errors):
    """The reason for `MOST_DOCUMENTS`."""
    rng, times = np.random.default_rng(8), 10_000
    total = np.zeros((times, 1000))
    for task in range(tasks):
        differences = rng.beta(2, 2, (times, n)) - rng.beta(2, 2, (times, n))
        total += differences @ resampling_weights(f"null {task}", n).astype(float).T / n / tasks
    assert np.mean(bootstrap_p_value(total) <= 0.05) == pytest.approx(errors, abs=0.006)


@pytest.mark.parametrize("discordant", [1, 6, 30, 101])
def test_mcnemar_errs_no_more_often_than_it_says(discordant):
    p_values = np.array(
        [paired_test([1] * won + [0] * (discordant - won),
         [0] * won + [1] * (discordant - won)).p_value for won in range(discordant + 1)],
    )  # fmt: skip
    chances = stats.binom.pmf(range(discordant + 1), discordant, 0.5)
    # a mid-p value may err a little more often than it says, for some numbers of documents
    for alpha in (0.001, 0.01, 0.05, 0.2):
        assert chances[p_values <= alpha].sum() <= 1.5 * alpha + 1e-12
    assert chances[p_values <= 0.05].sum() <= 0.06


@pytest.mark.parametrize("n", [6, 12, 20, 50, 100, 200, 500])
def test_mcnemar_errs_in_at_most_6_percent_whatever_the_number_of_documents(n):
    """Exact: the number of documents that only one model has right is itself drawn."""
    for share in (0.1, 0.3, 0.5):
        errors = 0.0
        for discordant in range(n + 1):
            chance = stats.binom.pmf(discordant, n, share)
            won = np.arange(discordant + 1)
            found = np.array([mid_p(int(k), discordant - int(k)) <= 0.05 for k in won])
            errors += chance * stats.binom.pmf(won, discordant, 0.5)[found].sum()
        assert errors <= 0.06


@times(300, 3000)
def test_macro_f1(times):
    """20 documents with five labels, two equal models: the bootstrap errs in 8 %."""
    rng = np.random.default_rng(9)
    found = []
    for _ in range(times):
        gold = rng.integers(0, 5, 20).astype(str)
        told = [np.where(rng.random(20) < 0.6, gold, rng.integers(0, 5, 20).astype(str)) for _ in range(2)]
        counts = [
            counts_of(
                [
                    {"doc_id": i, "doc": {}, "score": pair}
                    for i, pair in enumerate(zip(gold, side, strict=True))
                ],
                {"score": f1_macro},
            )[0]
            for side in told
        ]
        found.append(document_test([Part(1.0, *counts)], 20).p_value <= 0.05)
    assert np.mean(found) <= 0.06 + 2 * np.sqrt(0.05 * 0.95 / times)


def test_only_clusters_keep_the_error_rate_where_questions_share_a_note():
    rng = np.random.default_rng(6)
    notes, units = 40, list(np.repeat(range(40), 5))
    wrong = {"documents": 0, "clusters": 0}
    for _ in range(300):
        models = rng.random((2, notes)) < 0.5  # each gets a note's questions all right or all wrong
        first, second = np.repeat(models, 5, axis=1)
        wrong["documents"] += paired_test(first, second).p_value <= 0.05
        wrong["clusters"] += paired_test(first, second, units).p_value <= 0.05
    assert wrong["clusters"] / 300 < 0.08 < 0.25 < wrong["documents"] / 300
