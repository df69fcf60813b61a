"""The counts behind the metrics: they give the metric back, for every task and under any weights."""

import random
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.metrics import mean as lm_eval_mean
from scipy import stats

from medtasks_ext.metrics import labels
from medtasks_ext.models import Baseline
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
from medtasks_ext.stats.bootstrap import percentile_interval, resample, resampling_weights, task_intervals
from medtasks_ext.stats.statistic import counts_of, statistic_of
from medtasks_ext.suites.scores import t_interval_of_bootstrap_mean
from tests.results.aggregations import KINDS, samples_of, some_items

TASKS = registry()

#: computed by a model that the tests do not have; per-document values are averaged as by `mean`
BY_A_MODEL = "BERTScore", "bertscore"


@pytest.mark.parametrize("kind", KINDS)
def test_an_aggregation_is_what_plain_counting_gives(kind):
    for seed in range(20):
        items = some_items(kind, random.Random(seed), 1 + seed)
        assert KINDS[kind][0](items) == pytest.approx(KINDS[kind][1](items), abs=1e-12)


class Mixed(Baseline):
    """Answers with the gold, another document's gold, or prose, by the document."""

    def answer(self, request, requests):
        targets = request.doc.loaded.targets
        draw = random.Random(f"{request.doc['id']} {request.doc.get('trial')}")
        return draw.choice([request.doc["target"], draw.choice(targets), "no answer at all"])


@pytest.mark.parametrize("dataset", TASKS.datasets)
def test_every_metric_of_every_task_follows_from_its_counts(dataset):
    settings = Settings(data="sample")
    task = build_task(TASKS, dataset, settings)
    outcome = evaluate_task(Mixed(), task, settings)
    aggregations = task.aggregation()
    assert {name for name, item in aggregations.items() if statistic_of(item) is None} == set()
    values = {
        name: value
        for item in counts_of(outcome.samples, aggregations)
        for name, value in item.values().items()
    }
    assert values == pytest.approx(outcome.metrics, abs=1e-12)
    for name, aggregation in aggregations.items():
        items = [sample[name] for sample in outcome.samples if name in sample]
        if items and not name.startswith(BY_A_MODEL):
            family = (
                "multi_label."
                if isinstance(items[0], tuple) and isinstance(items[0][0], list)
                else "single_label."
            )
            statistic = statistic_of(aggregation).name
            _, plain = KINDS.get(statistic) or KINDS.get(family + statistic) or (None, None)
            assert plain, f"{statistic}: count it plainly in tests/results/aggregations.py, too"
            assert values[name] == pytest.approx(plain(items), abs=1e-12), name
    assert values.keys() >= {"valid"}


def counted(kind: str, items: list) -> list:
    return counts_of(samples_of(kind, items), {"m": KINDS[kind][0]})


def test_weights_are_the_same_in_every_process_and_with_every_numpy():
    """The digest is written down: another one means that intervals are no longer those of before."""
    digest = "cd5287c318aa4a58558b0c4fca0f607c37152479badf14158e68034eadc8149a"
    assert sha256(resampling_weights("bridge_mie", 2084, 50).tobytes()).hexdigest() == digest


@pytest.mark.parametrize("kind", KINDS)
def test_resampled_values_are_those_of_documents_drawn_and_scored_anew(kind):
    n = 40
    items = some_items(kind, random.Random(3), n)
    per_unit = len(items) // n
    values = resample(counted(kind, items), "task")["m"]
    weights = resampling_weights("task", n)
    for row in range(0, 1000, 50):
        drawn = [
            (f"{item[0]} {copy}", *item[1:]) if per_unit > 1 else item
            for unit, times in enumerate(weights[row])
            for copy in range(times)
            for item in items[unit * per_unit : (unit + 1) * per_unit]
        ]
        assert values[row] == pytest.approx(KINDS[kind][1](drawn), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=200))
def test_the_percentile_interval_is_that_of_scipy(values):
    given = type("Given", (), {"bootstrap_distribution": np.asarray(values)})()
    expected = stats.bootstrap(
        ([0.0, 1.0],), np.mean, n_resamples=0, bootstrap_result=given, method="percentile"
    ).confidence_interval
    found = percentile_interval(np.asarray(values))
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-12)


def test_the_official_interval_is_the_t_interval_of_the_bootstrap_mean_and_32_times_too_narrow():
    values = resample(counted("mean", some_items("mean", random.Random(0), 200)), "task")["m"]
    found = t_interval_of_bootstrap_mean(values)
    expected = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-14)
    proper = percentile_interval(values)
    assert (proper.high - proper.low) / (found.high - found.low) == pytest.approx(np.sqrt(1000), rel=0.1)


def record_of(items: list, aggregation, of_paper=None) -> tuple[dict, object]:
    samples = [{"doc_id": i, "doc": {}, "score": item, "scored": 1.0} for i, item in enumerate(items)]
    aggregations = {"score": aggregation, "scored": lm_eval_mean}
    return task_intervals(samples, aggregations, "task", of_paper)


@pytest.mark.parametrize("items", [[], [1.0]])
def test_fewer_than_two_documents_have_no_interval(items):
    records, values = record_of(items, lm_eval_mean)
    assert values is None
    for record in records.values():
        assert record["interval_low"] is record["interval_high"] is None
        assert record["interval_method"].startswith("none")


def test_the_official_bootstrap_counts_labels_that_a_resample_lacks_as_0():
    """BRIDGE keeps the label columns of the whole file; here every label has one document, all right."""
    items = [([f"label {number}"], [f"label {number}"]) for number in range(50)]
    records, values = record_of(items, labels.f1_macro_of_lists, t_interval_of_bootstrap_mean)
    assert (values == 1).all()
    assert 0.8 < records["score"]["interval_low"] < records["score"]["interval_high"] == 1
    present = (resampling_weights("task", 50) > 0).mean(axis=1)
    official = records["score"]["t_interval_of_bootstrap_mean"]
    assert official["mean"] == pytest.approx(present.mean(), abs=1e-12)
    assert official["low"] < official["mean"] < official["high"] < 0.65


def test_documents_count_in_their_order_in_whatever_order_they_are_given():
    samples = samples_of("mean", some_items("mean", random.Random(3), 9))
    [one], [other] = (counts_of(some, {"m": KINDS["mean"][0]}) for some in (samples, samples[::-1]))
    assert np.array_equal(one.matrix, other.matrix)
