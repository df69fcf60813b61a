"""Closed answers by likelihood: which tasks have them, what is asked, what follows."""

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from medtasks_ext.errors import MedtasksError
from medtasks_ext.metrics.likelihood import (
    BINS,
    calibration_error,
    process_results,
    reliability,
    risk_coverage,
)
from medtasks_ext.registry import registry
from medtasks_ext.registry.build import built_files
from medtasks_ext.registry.strategies import (
    LIKELIHOOD,
    asked_strategy,
    dataset_and_strategy,
    is_strategy,
    shots_of,
    strategy_title,
    suffix_of,
)
from medtasks_ext.task import MedicalTask

DATASETS = [item for item in registry().datasets.values() if item.is_closed]
DOCUMENT = {"data": "hub"}

#: likelihoods of 2 to 6 possible answers, and the place of the right one
questions = st.integers(2, 6).flatmap(
    lambda n: st.tuples(st.lists(st.floats(-30, 0), min_size=n, max_size=n), st.integers(0, n - 1))
)


@pytest.fixture(autouse=True)
def sample(monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")


def evaluated(task, model, shots=0):
    """lm-eval's samples of a task with a built-in model."""
    from lm_eval import evaluate
    from lm_eval.api.registry import get_model

    import medtasks_ext.models  # noqa: F401

    if shots:
        task.set_config("num_fewshot", shots)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = task.config.task
        found = evaluate(get_model(model)(), {name: task}, bootstrap_iters=0, log_samples=True)
    return found["results"][name], found["samples"][name]


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda item: item.id)
def test_an_oracle_has_the_highest_score_and_prompts_end_with_a_cue(dataset):
    task = MedicalTask.of(dataset, LIKELIHOOD, {})
    assert task.config.task == f"{dataset.id}_ll" and task.OUTPUT_TYPE == "multiple_choice"
    results, samples = evaluated(task, "oracle")
    assert results["acc,answer"] == results["score,answer"] == 1 and results["risk_coverage,answer"] == 0
    assert results["SAMPLE_DATA,answer"] == 1
    assert {item["arguments"][0][0][-1] for item in samples} <= {*":：፦"}  # the cue
    one = [item for item in samples if "acc" in item]
    assert len(one) >= len(samples) / 2, "most questions have one right answer"
    for item in one:
        asked = [context + option for context, option in item["arguments"]]
        assert len(set(asked)) == len(asked) >= 2
        assert item["doc"]["prompt"] in asked[0]


def test_open_answers_are_refused_and_no_task_is_built_for_them():
    tasks = registry()
    files = built_files(tasks)
    for dataset in tasks.datasets.values():
        assert (f"{dataset.key}/{LIKELIHOOD}.yaml" in files) == dataset.is_closed
    summary = tasks.datasets["bridge_mediqa_2023_sum_b"]
    assert not summary.is_closed and tasks.asked(f"{summary.id}_ll") is None
    with pytest.raises(MedtasksError, match="cannot be listed"):
        MedicalTask.of(summary, LIKELIHOOD, {})


def test_a_label_has_its_lead_and_examples_are_written_as_ever():
    task = MedicalTask.of(registry().datasets["bridge_mednli"], LIKELIHOOD, {})
    _, samples = evaluated(task, "oracle", shots=2)
    context, option = samples[0]["arguments"][0]
    document = samples[0]["doc"]
    assert context.endswith(f"{document['prompt']}\nrelation:") and option == " entailment"
    assert context.count("\nrelation: ") == 3  # the instruction, and two examples


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("bridge_brainmri_ais", "\nAIS:"),
        ("clinicbench_medmcqa", "\nAnswer:"),
        ("clinicbench_ddi", "\nOutput:"),
        ("medmarks_careqa", "\nOutput:"),
        ("open_medical_llm_medqa", "\nAnswer:"),
    ],
)
def test_a_question_ends_as_its_examples_are_answered(name, end):
    task = MedicalTask.of(registry().datasets[name], LIKELIHOOD, {})
    _, samples = evaluated(task, "oracle", shots=1)
    for item in samples:
        prompt = item["arguments"][0][0]
        assert prompt.endswith(end) and not prompt.removesuffix(end).endswith(end)
        assert len(re.findall(rf"{re.escape(end)} \S[^\n]*\n\n", prompt)) == 1, prompt  # the example


def test_a_question_with_several_right_answers_has_no_score():
    task = MedicalTask.of(registry().datasets["mlb_cmexam"], LIKELIHOOD, {})
    results, samples = evaluated(task, "oracle")
    several = [item for item in samples if len(item["doc"]["gold"]) > 1]
    assert several and not any("acc" in item for item in several)
    assert results["scored,answer"] == pytest.approx(1 - len(several) / len(samples))


@given(questions)
def test_a_document_has_lm_evals_metrics(question):
    likelihoods, gold = question
    options = ["x" * (1 + place) for place in range(len(likelihoods))]
    found = process_results(DOCUMENT, [(value, False) for value in likelihoods], options, gold)
    assert found["acc"] == float(np.argmax(likelihoods) == gold)
    lengths = np.array([len(option) for option in options])
    assert found["acc_norm"] == float(np.argmax(np.array(likelihoods) / lengths) == gold)
    probabilities, place = found["calibration_error"]
    shares = [math.exp(value) for value in likelihoods]
    assert probabilities == pytest.approx([share / sum(shares) for share in shares], abs=1e-9)
    assert place == gold and "SAMPLE_DATA" not in found
    expected = brier_score_loss([gold], [probabilities], labels=range(len(options)), scale_by_half=False)
    assert found["brier_score"] == pytest.approx(expected, abs=1e-9)


@given(st.lists(questions, min_size=1, max_size=40))
def test_calibration_is_what_its_definition_says(asked):
    items = []
    for likelihoods, gold in asked:
        shares = np.exp(np.array(likelihoods) - max(likelihoods))
        items.append(((shares / shares.sum()).tolist(), gold))
    sure = np.array([max(probabilities) for probabilities, _ in items])
    right = np.array([float(np.argmax(probabilities) == gold) for probabilities, gold in items])
    expected = 0.0
    for k in range(BINS):
        inside = (sure > k / BINS) & (sure <= (k + 1) / BINS)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - sure[inside].mean())
    assert calibration_error(items) == pytest.approx(expected, abs=1e-9)
    assert 0 <= calibration_error(items) <= 1
    sums = reliability(sure, right)
    assert sums[:, 2].sum() == len(items)
    assert np.abs(sums[:, 0] - sums[:, 1]).sum() / len(items) == pytest.approx(expected, abs=1e-9)
    area = risk_coverage(items)
    assert 0 <= area <= 1 and risk_coverage(items[::-1]) == pytest.approx(area)
    assert area == 0 if right.all() else area > 0


def test_one_who_knows_when_he_errs_has_less_risk():
    right, wrong = ([0.9, 0.1], 0), ([0.6, 0.4], 1)
    assert risk_coverage([right] * 5 + [wrong] * 5) < risk_coverage([([0.7, 0.3], 0), ([0.7, 0.3], 1)] * 5)
    assert risk_coverage([([0.7, 0.3], 0), ([0.7, 0.3], 1)] * 5) == pytest.approx(0.5)
    assert risk_coverage([]) == 0


@pytest.mark.parametrize(
    ("name", "strategy", "shots", "title"),
    [
        ("bridge_mednli_ll", LIKELIHOOD, 0, "by likelihood, 0-shot"),
        ("bridge_mednli_ll_5shot", "likelihood_5_shot", 5, "by likelihood, 5-shot"),
    ],
)
def test_likelihood_is_a_strategy_of_its_own(name, strategy, shots, title):
    assert dataset_and_strategy(name) == ("bridge_mednli", strategy)
    assert asked_strategy(LIKELIHOOD, shots) == strategy and is_strategy(strategy)
    assert shots_of(strategy) == shots and strategy_title(strategy) == title
    assert f"bridge_mednli{suffix_of(strategy)}" == name
