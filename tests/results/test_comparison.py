"""Two models, or many, on the same documents: which test is taken, and that it is right."""

import math
import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from medtasks_ext.metrics.common import micro_f1
from medtasks_ext.metrics.labels import f1_macro
from medtasks_ext.metrics.labels import f1_macro_of_lists as multi_f1_macro
from medtasks_ext.metrics.permutation import accuracy_all3
from medtasks_ext.stats.bootstrap import percentile_interval, resample, resampled_sums, resampling_weights
from medtasks_ext.stats.comparison import (
    BOOTSTRAP,
    LEAST_P_VALUE,
    all_pairs,
    bootstrap_p_value,
    compare,
    compare_resamples,
    least_half,
    smallest_p_value,
)
from medtasks_ext.stats.permutation import (
    EXACT_FLIPS,
    EXACT_SWAPS,
    MCNEMAR,
    MOST_DOCUMENTS,
    RANDOM_FLIPS,
    RANDOM_SWAPS,
    Part,
    document_test,
    mid_p,
    paired,
)
from medtasks_ext.stats.statistic import counts_of, mean, mean_of_runs, mean_of_some
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
    assert (found.method, found.n_units) == (MCNEMAR, won + lost + same)
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


def test_random_signs_never_give_a_p_value_of_0():
    assert paired_test(np.linspace(0.5, 1, 400), np.zeros(400)).p_value == 1 / 10_000


def test_the_documents_of_a_unit_are_one_observation():
    """Ten copies of a question say no more than the question."""
    first, second = np.array([1, 1, 1, 1, 1, 0, 1]), np.zeros(7)
    alone = paired_test(first, second)
    copies = paired_test(np.repeat(first, 10), np.repeat(second, 10), list(np.repeat(range(7), 10)))
    assert (copies.n_units, copies.p_value) == (7, pytest.approx(alone.p_value))
    assert paired_test(np.repeat(first, 10), np.repeat(second, 10)).p_value < 1e-9
    assert paired_test(first, second, list("abcdefg")) == alone


@pytest.mark.parametrize(("first", "second"), [([], []), ([1.0], [1.0, 0.0]), ([math.nan], [1.0])])
def test_scores_that_do_not_pair_are_refused(first, second):
    with pytest.raises(ValueError):
        paired(first, second)


@given(arrays.arrays(float, st.integers(1, 60), elements=st.sampled_from([-0.2, -0.1, 0.0, 0.1, 1e-17])))
def test_the_bootstrap_p_value_is_twice_the_rarer_side_of_0(differences):
    values = [0.0 if abs(value) < 1e-12 else value for value in differences]
    sides = sum(value <= 0 for value in values), sum(value >= 0 for value in values)
    expected = min(1.0, 2 * (min(sides) + 1) / (len(values) + 1))
    found = bootstrap_p_value(differences)
    assert found == pytest.approx(expected)
    assert smallest_p_value(len(values)) <= found or found == 1
    assert bootstrap_p_value(-differences) == found


@pytest.mark.parametrize("centre", np.linspace(1.8, 2.2, 21))
def test_the_p_value_and_the_interval_say_the_same(centre):
    differences = np.random.default_rng(7).normal(centre, 1, 1000)
    below, interval = bootstrap_p_value(differences) < 0.05, percentile_interval(differences)
    if below:
        assert interval.low > 0
    elif interval.low > 0:
        assert bootstrap_p_value(differences) == pytest.approx(0.0519, abs=1e-4)  # one resample more


@given(pairs_of(sizes=(2, 40)), scores, scores)
def test_the_other_way_round_is_the_same_with_the_other_sign(pair, one, other):
    here, there = compare_resamples((one, other), pair), compare_resamples((other, one), pair[::-1])
    assert there.difference == -here.difference and there.p_value == here.p_value
    assert (there.interval.low, there.interval.high) == pytest.approx(
        (-here.interval.high, -here.interval.low), abs=1e-12
    )
    assert there.detectable == pytest.approx(here.detectable, abs=1e-12)
    assert paired_test(*pair).p_value == paired_test(*pair[::-1]).p_value


def test_all_pairs_are_what_each_pair_is_alone():
    rng = np.random.default_rng(8)
    own, resampled = rng.random(7), rng.random((7, 200))
    resampled[3], own[3] = resampled[2], own[2]  # two that are alike
    found = all_pairs(own, resampled)
    for i, j in product(range(7), repeat=2):
        alone = compare_resamples((own[i], own[j]), (resampled[i], resampled[j]))
        assert found.difference[i, j] == alone.difference and found.p_value[i, j] == alone.p_value
        assert (found.low[i, j], found.high[i, j]) == pytest.approx(
            (alone.interval.low, alone.interval.high), abs=1e-12
        )
    assert found.p_value[2, 3] == 1 and found.low[2, 3] == found.high[2, 3] == 0


@pytest.mark.parametrize(
    ("own", "resampled"),
    [([0.1, 0.2], np.zeros((3, 5))), ([0.1, math.nan], np.zeros((2, 5))), ([0.1], np.zeros(5))],
)
def test_models_without_all_scores_are_refused(own, resampled):
    with pytest.raises(ValueError):
        all_pairs(own, resampled)


def compared(aggregation, first: list, second: list, docs: list[dict] | None = None):
    """Compare two models that reported these items as their `score`."""
    docs = docs or [{} for _ in first]
    both = []
    for items in (first, second):
        samples = [{"doc_id": i, "doc": docs[i], "score": item} for i, item in enumerate(items)]
        both.append(counts_of(samples, {"score": aggregation})[0])
    resampled = tuple(resample([counts], "task")["score"].values for counts in both)
    return compare([Part(1.0, *both)], len(first), resampled)


def test_accuracy_is_tested_by_mcnemar_and_has_a_bootstrap_interval():
    rng = random.Random(0)
    first = [float(rng.random() < 0.7) for _ in range(200)]
    second = [value if rng.random() < 0.8 else 1 - value for value in first]
    found = compared(mean, first, second)
    assert found.method == MCNEMAR
    assert found.p_value == paired_test(first, second).p_value
    assert found.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert found.interval.low < found.difference < found.interval.high


def test_means_of_other_scores_are_tested_by_sign_flips():
    first, second = np.random.default_rng(1).random((2, 60))
    found = compared(mean, list(first), list(second))
    assert found.method == RANDOM_FLIPS and found.p_value == paired_test(first, second).p_value


def test_pooled_f1_of_many_documents_is_tested_by_the_bootstrap():
    rng = np.random.default_rng(2)
    n = MOST_DOCUMENTS + 1
    found = compared(
        micro_f1, rng.poisson([5, 2, 2], (n, 3)).tolist(), rng.poisson([4, 3, 3], (n, 3)).tolist()
    )
    assert found.method == BOOTSTRAP and found.interval.low > 0
    assert LEAST_P_VALUE <= found.p_value < smallest_p_value(1000)


@pytest.mark.parametrize("effect", [0.08, 0.09, 0.1, 0.11])
def test_beyond_what_resamples_can_count_the_tail_is_that_of_the_z_test(effect):
    documents = np.random.default_rng(5).normal(effect, 1, 2000)
    drawn = np.random.default_rng(6).integers(0, 2000, (2000, 2000))
    p_value = bootstrap_p_value(documents[drawn].mean(axis=1))
    z = documents.mean() / (documents.std() / np.sqrt(2000))
    assert p_value < smallest_p_value(2000)
    assert np.log(p_value) == pytest.approx(np.log(2 * stats.norm.sf(z)), rel=0.1)


def test_resamples_that_do_not_vary_have_no_tail():
    assert bootstrap_p_value(np.full(1000, 0.5)) == smallest_p_value(1000)


def test_a_question_that_is_asked_three_times_counts_once():
    rng = random.Random(3)
    docs = [{"item": str(number // 3)} for number in range(90)]
    right = [[rng.random() < rate for _ in range(90)] for rate in (0.9, 0.7)]
    items = [
        [(doc["item"], n % 3, hit, ["x"]) for n, (doc, hit) in enumerate(zip(docs, hits, strict=True))]
        for hits in right
    ]
    found = compared(accuracy_all3, *items, docs)
    whole = [[float(all(hits[n : n + 3])) for n in range(0, 90, 3)] for hits in right]
    assert found.method == MCNEMAR and found.p_value == paired_test(*whole).p_value


def test_runs_of_unequal_size_are_tested_by_the_score_that_is_reported():
    """Each run counts once: every pattern of swapped documents is scored anew by the metric itself."""
    runs = ["a", "a", "a", "a", "b", "b", "c", "c"]
    first, second = [1, 1, 1, 0, 1, 1, 1, 0], [0, 1, 0, 0, 0, 1, 0, 1]
    found = compared(mean_of_runs, list(zip(runs, first, strict=True)), list(zip(runs, second, strict=True)))
    scored = []
    for swaps in product([False, True], repeat=8):
        sides = [
            mean_of_runs(
                [(run, y if swap else x) for run, x, y, swap in zip(runs, one, other, swaps, strict=True)]
            )
            for one, other in ((first, second), (second, first))
        ]
        scored.append(abs(sides[0] - sides[1]))
    assert found.difference == pytest.approx(scored[0])
    assert found.method == EXACT_FLIPS
    assert found.p_value == pytest.approx(np.mean(np.array(scored) >= scored[0] - 1e-12))


def test_runs_of_equal_size_and_documents_that_do_not_count_leave_it_at_mcnemar():
    runs = ["a", "a", "a", "b", "b", "b"]
    first, second = [1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 0]
    sides = [list(zip(runs, items, strict=True)) for items in (first, second)]
    expected = paired_test(first, second)
    assert compared(mean_of_runs, *sides).method == expected.method == MCNEMAR
    assert compared(mean_of_runs, *sides).p_value == expected.p_value
    sides = [[(value, 1) for value in items] + [(0, 0)] * 3 for items in (first, second)]
    some = compared(mean_of_some, *sides)
    assert (some.method, some.p_value) == (MCNEMAR, expected.p_value)
    assert some.difference == pytest.approx(4 / 6)


def test_questions_on_one_note_are_tested_together():
    docs = [{"cluster": str(number // 4)} for number in range(40)]
    rng = random.Random(5)
    first, second = [[float(rng.random() < rate) for _ in docs] for rate in (0.8, 0.6)]
    found = compared(mean, first, second, docs)
    expected = paired_test(first, second, [doc["cluster"] for doc in docs])
    assert found.method == expected.method == EXACT_FLIPS and expected.n_units == 10
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


def test_many_swaps_are_drawn_near_the_exact_p_value():
    """Pooled F1 with no false positives and equal sizes is a mean, whose signs can be flipped exactly."""
    rng = np.random.default_rng(12)
    hits = rng.integers(0, 2, (2, 60))
    parts = [Part(1.0, *(counted(micro_f1, [(h, 1 - h, 1 - h) for h in row.tolist()]) for row in hits))]
    found = document_test(parts, 60)
    assert found.method == RANDOM_SWAPS and found == document_test(parts, 60)
    won, lost = int((hits[0] > hits[1]).sum()), int((hits[0] < hits[1]).sum())
    assert found.p_value == pytest.approx(stats.binomtest(won, won + lost).pvalue, abs=0.02)


def test_macro_f1_is_tested_by_swaps_over_the_labels_of_both_models():
    """Every pattern, each scored by the aggregation itself."""
    rng = np.random.default_rng(5)
    gold = [["a"], ["b"], ["a", "c"], ["c"], ["b"], ["a"], ["c"]]
    told = [
        [[str(label) for label in rng.choice(list("abc"), rng.integers(0, 3), replace=False)] for _ in gold]
        for _ in range(2)
    ]
    told[0][0], told[1][1] = [*told[0][0], "x"], [*told[1][1], "y"]
    both = [[*zip(gold, side, strict=True)] for side in told]
    counts = [counts_of([{"doc_id": i, "doc": {}, "score": item} for i, item in enumerate(side)],
                        {"score": multi_f1_macro})[0] for side in both]  # fmt: skip
    assert counts[0].labels != counts[1].labels
    observed, extreme = multi_f1_macro(both[0]) - multi_f1_macro(both[1]), 0
    for pattern in product([0, 1], repeat=len(gold)):
        swapped = [[both[side ^ turned][i] for i, turned in enumerate(pattern)] for side in (0, 1)]
        difference = multi_f1_macro(swapped[0]) - multi_f1_macro(swapped[1])
        extreme += abs(difference) >= abs(observed) - 1e-9
    found = document_test([Part(1.0, *counts)], len(gold))
    assert found.method == EXACT_SWAPS
    assert found.p_value == pytest.approx(extreme / 2 ** len(gold))


def test_larger_groups_and_scores_whose_labels_nobody_recorded_are_left_to_the_bootstrap():
    rng = np.random.default_rng(13)
    pair = [counted(mean, items.tolist()) for items in rng.random((2, 10))]
    assert document_test([Part(0.5, *pair)] * 2, MOST_DOCUMENTS + 1) is None
    known = counted(f1_macro, [("a", "b"), ("b", "b"), ("a", "a")])
    labels = [replace(known, labels=()) for _ in range(2)]
    assert document_test([Part(1.0, *labels)], 3) is None
    right = [counted(mean, items.tolist()) for items in rng.integers(0, 2, (2, 600))]
    assert document_test([Part(1.0, *right)], 600).method == MCNEMAR  # exact, whatever the size


def test_models_that_were_asked_different_documents_are_refused():
    counts = [
        counts_of([{"doc_id": i, "doc": {}, "score": 1.0} for i in range(n)], {"score": mean})[0]
        for n in (3, 4)
    ]
    with pytest.raises(ValueError, match="the same documents"):
        compare([Part(1.0, *counts)], 4, (np.zeros(5), np.zeros(5)))


@given(st.integers(2, 30), st.integers(1, 4), st.data())
def test_a_difference_of_scores_is_nowhere_said_to_exceed_one(n, tasks, data):
    """Few documents and far-off models: the least width ends where no score can."""
    least = least_half([(1 / tasks, n)] * tasks)
    first, second = (data.draw(st.floats(0, 1)) for _ in range(2))
    resampled = np.full(50, first), np.full(50, second)
    found = compare_resamples((first, second), resampled, least).interval
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
    found = compare_resamples((values[0].mean(), values[1].mean()), values).interval
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval), abs=1e-12)


nightly = pytest.mark.nightly


def times(few, many):
    """So many simulations every day, and so many at night."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=nightly)])


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
