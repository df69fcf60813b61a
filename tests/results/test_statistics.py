"""The counts behind the metrics: they give the metric back, for every task and under any weights."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.metrics.labels import f1_macro_of_lists
from medtasks_ext.models import Baseline
from medtasks_ext.registry import registry
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
from medtasks_ext.stats.statistic import counts_of, statistic_of
from tests.results.aggregations import PLAIN, some_items
from tests.results.statistics_of import AGGREGATIONS, samples_of

TASKS = registry()

#: computed by a model that the tests do not have; per-document values are averaged as by `mean`
BY_A_MODEL = "BERTScore", "bertscore"


@pytest.mark.parametrize("kind", PLAIN)
def test_an_aggregation_is_what_plain_counting_gives(kind):
    for seed in range(20):
        items = some_items(kind, random.Random(seed), 1 + seed)
        assert AGGREGATIONS[kind](items) == pytest.approx(PLAIN[kind](items), abs=1e-12)


@pytest.mark.parametrize("kind", PLAIN)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
def test_weights_say_how_often_a_document_is_there(kind, seed, n):
    """Counts under weights give what the aggregation gives on the documents written out that often."""
    rng = random.Random(seed)
    items = some_items(kind, rng, n)
    [counts] = counts_of(samples_of(kind, items), {"m": AGGREGATIONS[kind]})
    per_unit = len(items) // n
    weights = [rng.randrange(4) for _ in range(n)]
    weights[0] += 1  # never nothing at all
    repeated = [
        (f"{item[0]} {copy}", *item[1:]) if per_unit > 1 else item  # a question drawn twice is two questions
        for unit, times in enumerate(weights)
        for copy in range(times)
        for item in items[unit * per_unit : (unit + 1) * per_unit]
    ]
    value = counts.statistics["m"].value(np.asarray(weights) @ counts.matrix)
    assert counts.n_units == n
    assert float(value) == pytest.approx(PLAIN[kind](repeated), abs=1e-12)


@pytest.mark.parametrize("kind", PLAIN)
def test_nothing_drawn_is_0_and_no_fault(kind):
    [counts] = counts_of(samples_of(kind, some_items(kind, random.Random(1), 5)), {"m": AGGREGATIONS[kind]})
    with np.errstate(all="raise"):
        assert counts.statistics["m"].value(np.zeros(counts.matrix.shape[1])) == 0


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
            plain = PLAIN.get(statistic) or PLAIN.get(family + statistic)
            assert plain, f"{statistic}: count it plainly in tests/results/aggregations.py, too"
            assert values[name] == pytest.approx(plain(items), abs=1e-12), name
    assert values.keys() >= {"valid"}


def test_files_and_memory_and_any_order_give_the_same_counts():
    settings = Settings(data="sample")
    for dataset in ("bridge_dialmed", "bridge_mie", "mlb_cmexam"):
        task = build_task(TASKS, dataset, settings)
        outcome = evaluate_task(Mixed(), task, settings)
        stored = [json.loads(json.dumps(sample, default=str)) for sample in reversed(outcome.samples)]
        here, there = (counts_of(samples, task.aggregation()) for samples in (outcome.samples, stored))
        for one, other in zip(here, there, strict=True):
            assert one.statistics.keys() == other.statistics.keys()
            dense = [
                item if isinstance(item, np.ndarray) else item.toarray()
                for item in (one.matrix, other.matrix)
            ]
            assert np.array_equal(*dense)


def test_a_question_and_not_a_trial_is_resampled_in_every_metric():
    task = build_task(TASKS, "mlb_cmexam", Settings(data="sample"))
    outcome = evaluate_task(Mixed(), task, Settings(data="sample"))
    n_questions = len({sample["doc"]["item"] for sample in outcome.samples})
    assert len(outcome.samples) == 3 * n_questions
    assert {item.n_units for item in counts_of(outcome.samples, task.aggregation())} == {n_questions}


def test_many_labels_take_little_room():
    rng = random.Random(0)
    labels = [f"code {number}" for number in range(600)]
    items = [(rng.sample(labels, 3), rng.sample(labels, 3)) for _ in range(10_000)]
    [counts] = counts_of(
        [{"doc_id": i, "doc": {}, "m": item} for i, item in enumerate(items)], {"m": f1_macro_of_lists}
    )
    assert counts.matrix.shape == (10_000, 1800)
    assert counts.matrix.data.nbytes + counts.matrix.indices.nbytes < 2e6


def test_a_plain_function_has_no_statistic():
    assert statistic_of(max) is None
    assert counts_of([{"doc_id": 0, "doc": {}, "m": 1.0}], {"m": max}) == []
