"""Two models, or many, on the same documents: which test is taken, and that it is right."""

import math
import random
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.metrics.labels import f1_macro, f1_macro_of_lists
from medtasks_ext.stats.bootstrap import resample, resampled_sums
from medtasks_ext.stats.comparison import (
    EXACT_FLIPS,
    EXACT_SWAPS,
    MCNEMAR,
    MOST_DOCUMENTS,
    RANDOM_FLIPS,
    Part,
    all_pairs,
    bootstrap_p_value,
    compare,
    document_test,
    holm,
    least_half,
)
from medtasks_ext.stats.statistic import counts_of, mean
from tests.results.simulated import paired_test

scores = st.floats(0, 1).map(lambda value: round(value, 6))


def pairs_of(values=scores, sizes=(1, 12)):
    return st.integers(*sizes).flatmap(
        lambda n: st.tuples(*[st.lists(values, min_size=n, max_size=n) for _ in range(2)])
    )


def binomial_test(won: int, lost: int) -> float:
    """Two-sided mid-p value, from the binomial coefficients."""
    n, rarer = won + lost, min(won, lost)
    tail = sum(math.comb(n, k) for k in range(rarer)) / 2**n + math.comb(n, rarer) / 2 ** (n + 1)
    return min(1.0, 2 * tail)


@given(won=st.integers(0, 40), lost=st.integers(0, 40), same=st.integers(1, 5))
def test_right_and_wrong_answers_are_compared_by_mcnemars_mid_p(won, lost, same):
    first, second = [1] * won + [0] * lost + [1] * same, [0] * won + [1] * lost + [1] * same
    found = paired_test(first, second)
    assert found.method == MCNEMAR
    assert found.p_value == pytest.approx(binomial_test(won, lost), rel=1e-9)


@given(pairs_of(sizes=(2, 9)))
def test_few_other_scores_are_compared_by_every_pattern_of_signs(pair):
    first, second = map(np.array, pair)
    found = paired_test(first, second)
    if found.method == MCNEMAR:  # only zeros and ones were drawn
        return
    assert found.method == EXACT_FLIPS
    sums = [abs(np.dot(signs, first - second)) for signs in product([1, -1], repeat=len(first))]
    assert found.p_value == pytest.approx(np.mean(np.array(sums) >= abs((first - second).sum()) - 1e-10))


def test_many_scores_are_compared_by_random_signs_near_the_exact_p_value():
    """Exact by convolution: differences are whole numbers."""
    rng = np.random.default_rng(3)
    differences = rng.choice([-2, -1, 0, 1, 2], 150, p=[0.15, 0.15, 0.3, 0.2, 0.2])
    chances = np.ones(1)  # of each sum of signed differences
    for step in np.abs(differences):
        kernel = np.zeros(2 * step + 1)
        kernel[0] += 0.5
        kernel[-1] += 0.5
        chances = np.convolve(chances, kernel)
    sums = np.arange(len(chances)) - np.abs(differences).sum()
    exact = chances[np.abs(sums) >= abs(differences.sum())].sum()
    found = paired_test(differences / 10, np.zeros(150))
    assert found.method == RANDOM_FLIPS and 0.001 < exact < 0.5
    assert found.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact / 10_000))
    assert found == paired_test(differences / 10, np.zeros(150))  # the same at every call


@given(arrays.arrays(float, st.integers(1, 60), elements=st.sampled_from([-0.2, -0.1, 0.0, 0.1, 1e-17])))
def test_the_bootstrap_p_value_is_twice_the_rarer_side_of_0(differences):
    values = [0.0 if abs(value) < 1e-12 else value for value in differences]
    sides = sum(value <= 0 for value in values), sum(value >= 0 for value in values)
    expected = min(1.0, 2 * (min(sides) + 1) / (len(values) + 1))
    found = bootstrap_p_value(differences)
    assert found == pytest.approx(expected)
    assert 2 / (len(values) + 1) <= found or found == 1
    assert bootstrap_p_value(-differences) == found


def test_all_pairs_are_what_each_pair_is_alone():
    rng = np.random.default_rng(8)
    own, resampled = rng.random(7), rng.random((7, 200))
    resampled[3], own[3] = resampled[2], own[2]  # two that are alike
    found = all_pairs(own, resampled)
    for i, j in product(range(7), repeat=2):
        alone = compare((own[i], own[j]), (resampled[i], resampled[j]))
        assert found.difference[i, j] == alone.difference and found.p_value[i, j] == alone.p_value
        assert (found.low[i, j], found.high[i, j]) == pytest.approx(
            (alone.interval.low, alone.interval.high), abs=1e-12
        )
    assert found.p_value[2, 3] == 1 and found.low[2, 3] == found.high[2, 3] == 0


def compared(aggregation, first: list, second: list, docs: list[dict] | None = None):
    """Compare two models that reported these items as their `score`."""
    docs = docs or [{} for _ in first]
    both = []
    for items in (first, second):
        samples = [{"doc_id": i, "doc": docs[i], "score": item} for i, item in enumerate(items)]
        both.append(counts_of(samples, {"score": aggregation})[0])
    resampled = tuple(resample([counts], "task")["score"] for counts in both)
    test = document_test([Part(1.0, *both)], len(first))
    return compare([item.values()["score"] for item in both], resampled, test=test)


def test_questions_on_one_note_are_tested_together():
    docs = [{"cluster": str(number // 4)} for number in range(40)]
    rng = random.Random(5)
    first, second = [[float(rng.random() < rate) for _ in docs] for rate in (0.8, 0.6)]
    found = compared(mean, first, second, docs)
    expected = paired_test(first, second, [doc["cluster"] for doc in docs])
    assert found.method == expected.method == EXACT_FLIPS
    assert found.p_value == pytest.approx(expected.p_value)


def by_hand(values, counts, weights):
    """The p-value from every pattern of swapped documents, each scored anew by its own metric."""
    sizes = [len(first) for first, _ in counts]
    found = []
    for swaps in product([False, True], repeat=sum(sizes)):
        start, total = 0, 0.0
        for value, (first, second), weight in zip(values, counts, weights, strict=True):
            some = swaps[start : start + len(first)]
            start += len(first)
            one = [b if swap else a for a, b, swap in zip(first, second, some, strict=True)]
            other = [a if swap else b for a, b, swap in zip(first, second, some, strict=True)]
            total += weight * (value(one) - value(other))
        found.append(abs(total))
    return np.mean(np.array(found) >= found[0] - 1e-9)


def counted(statistic, items):
    samples = [{"doc_id": i, "doc": {}, "score": item} for i, item in enumerate(items)]
    return counts_of(samples, {"score": statistic})[0]


@given(st.integers(0, 10**6))
def test_eight_documents_of_a_group_are_tested_exactly(seed):
    rng = np.random.default_rng(seed)
    entities = [[tuple(row) for row in rng.integers(0, 3, (4, 3)).tolist()] for _ in range(2)]
    scores = [rng.integers(0, 5, 4) / 4 for _ in range(2)]
    parts = [
        Part(0.75, *(counted(micro_f1, items) for items in entities)),
        Part(0.25, *(counted(mean, items.tolist()) for items in scores)),
    ]
    found = document_test(parts, 8)
    assert found.method == EXACT_SWAPS
    assert found.p_value == pytest.approx(by_hand((micro_f1, np.mean), (entities, scores), (0.75, 0.25)))
    found = document_test(parts[1:], 4)
    if found.method == EXACT_FLIPS:
        assert found.p_value == pytest.approx(by_hand((np.mean,), (scores,), (1,)))


def test_larger_groups_and_scores_whose_labels_nobody_recorded_are_left_to_the_bootstrap():
    rng = np.random.default_rng(13)
    pair = [counted(mean, items.tolist()) for items in rng.random((2, 10))]
    assert document_test([Part(0.5, *pair)] * 2, MOST_DOCUMENTS + 1) is None
    known = counted(f1_macro, [("a", "b"), ("b", "b"), ("a", "a")])
    labels = [replace(known, labels=()) for _ in range(2)]
    assert document_test([Part(1.0, *labels)], 3) is None
    right = [counted(mean, items.tolist()) for items in rng.integers(0, 2, (2, 600))]
    assert document_test([Part(1.0, *right)], 600).method == MCNEMAR  # exact, whatever the size


@given(st.integers(2, 30), st.integers(1, 4), st.data())
def test_a_difference_of_scores_is_nowhere_said_to_exceed_one(n, tasks, data):
    """Few documents and far-off models: the least width ends where no score can."""
    least = least_half([(1 / tasks, n)] * tasks)
    first, second = (data.draw(st.floats(0, 1)) for _ in range(2))
    resampled = np.full(50, first), np.full(50, second)
    found = compare((first, second), resampled, least).interval
    assert -1 <= found.low <= first - second <= found.high <= 1
    pairs = all_pairs([first, second], np.stack(resampled), least)
    assert (pairs.low[0, 1], pairs.high[0, 1]) == pytest.approx((found.low, found.high))
    assert found.low < found.high


@pytest.mark.parametrize("seed", [1, 2])
def test_with_the_same_draws_the_interval_of_a_difference_is_scipys(seed):
    """scipy's indices, counted, are the weights: the distribution is the same to the last digits."""
    rng = np.random.default_rng(seed)
    n, resamples = 120, 999
    first, second = (rng.poisson(rates, (n, 3)).astype(float) for rates in ([4, 1, 1], [3, 2, 1]))

    def difference(*columns, axis):
        one, other = (
            np.stack([part.sum(axis=axis) for part in side], axis=-1) for side in (columns[:3], columns[3:])
        )
        return micro_f1.value(one) - micro_f1.value(other)

    expected = stats.bootstrap(
        (*first.T, *second.T), difference, paired=True, vectorized=True, n_resamples=resamples,
        method="percentile", rng=np.random.default_rng(seed),
    )  # fmt: skip
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    weights = np.stack([np.bincount(row, minlength=n) for row in drawn])
    values = [micro_f1.value(sums) for sums in resampled_sums([first, second], weights)]
    assert values[0] - values[1] == pytest.approx(expected.bootstrap_distribution, abs=1e-12)
    found = compare((values[0].mean(), values[1].mean()), values).interval
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval), abs=1e-12)


p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=7)


@given(p_lists)
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    """A finding stands if every set of hypotheses that it is in is rejected (Marcus et al. 1976)."""
    places = range(len(p_values))
    sets = [set(chosen) for size in range(1, len(p_values) + 1) for chosen in combinations(places, size)]
    expected = [
        max(min(1.0, len(chosen) * min(p_values[k] for k in chosen)) for chosen in sets if place in chosen)
        for place in places
    ]
    assert holm(p_values) == pytest.approx(expected)


@pytest.mark.parametrize("effect", [0.08, 0.1, 0.11])
def test_beyond_what_resamples_can_count_the_tail_is_that_of_the_z_test(effect):
    documents = np.random.default_rng(5).normal(effect, 1, 2000)
    drawn = np.random.default_rng(6).integers(0, 2000, (2000, 2000))
    p_value = bootstrap_p_value(documents[drawn].mean(axis=1))
    z = documents.mean() / (documents.std() / np.sqrt(2000))
    assert p_value < 2 / 2001
    assert np.log(p_value) == pytest.approx(np.log(2 * stats.norm.sf(z)), rel=0.1)


def test_macro_f1_is_tested_by_swaps_over_the_labels_of_both_models():
    """Every pattern, each scored by the aggregation itself."""
    gold = [["a"], ["b"], ["a", "c"], ["c"], ["b"]]
    told = [[["a", "x"], ["b"], ["a"], [], ["b"]], [["c"], ["b", "y"], ["c"], ["c"], ["a"]]]
    both = [[*zip(gold, side, strict=True)] for side in told]
    counts = [counted(f1_macro_of_lists, side) for side in both]
    assert counts[0].labels != counts[1].labels
    found = document_test([Part(1.0, *counts)], len(gold))
    swapped = (
        [[both[side ^ turned][i] for i, turned in enumerate(pattern)] for side in (0, 1)]
        for pattern in product([0, 1], repeat=len(gold))
    )
    scored = np.array([abs(f1_macro_of_lists(one) - f1_macro_of_lists(two)) for one, two in swapped])
    assert found.method == EXACT_SWAPS
    assert found.p_value == pytest.approx(np.mean(scored >= scored[0] - 1e-9))
