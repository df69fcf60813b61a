"""Closed answers by likelihood: which tasks have them, what is asked, what follows from the replies."""

import json
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
    risk_coverage,
)
from medtasks_ext.models import Baseline, Oracle
from medtasks_ext.registry import registry
from medtasks_ext.registry.build import built_files
from medtasks_ext.registry.strategies import LIKELIHOOD
from medtasks_ext.task import MedicalTask
from tests.conftest import outcomes
from tests.run_files import result_of, samples_of

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


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("bridge_mednli", "\nrelation:"),
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
    area = risk_coverage(items)
    assert 0 <= area <= 1 and risk_coverage(items[::-1]) == pytest.approx(area)
    assert area == 0 if right.all() else area > 0


# ---------------------------------------------------------------------- through `medtasks run`

TASK = "bridge_mednli_ll"


@pytest.fixture
def unsure(monkeypatch):
    """The oracle finds every option as likely as it is short, and its place in the alphabet adds a little."""

    def loglikelihood(self, requests, disable_tqdm=False):
        return [
            (-len(request.args[1]) - ord(request.args[1].strip()[0]) / 1e4, False) for request in requests
        ]

    monkeypatch.setattr(Oracle, "loglikelihood", loglikelihood)


def ask(medtasks, *more: str, tasks: str = "bridge_mednli"):
    return medtasks("run", "--tasks", tasks, "--ask", "likelihood", "--model", "oracle", "-o", "run", *more)


def test_outcomes_hold_the_likelihood_of_each_option_and_scores_and_a_report_follow(
    medtasks, unsure, tmp_path
):
    outcome = ask(medtasks)
    assert outcome.code == 0 and TASK in outcome.out
    run = tmp_path / "run"
    stored = {line["document"]: line for line in outcomes(run)}
    samples, record = samples_of(run, TASK), result_of(run, TASK)
    assert len(stored) == len(samples) == 10
    for sample in samples:
        line = stored[sample["doc"]["id"]]
        options = [pair["arg_1"] for pair in sample["arguments"].values()]
        assert options == [" entailment", " contradiction", " neutral"]
        assert line["likelihoods"] == [
            [float(value), greedy == "True"] for ((value, greedy),) in sample["resps"]
        ]
        assert line["text"] == "neutral"  # the shortest
        probabilities, place = sample["calibration_error"]
        assert sum(probabilities) == pytest.approx(1) and str(place) == sample["target"]
        assert sample["acc"] == float(sample["doc"]["gold"] == "neutral")
    assert record["metrics"]["acc"] == sum(sample["acc"] for sample in samples) / 10
    asked = record["conditions"]
    assert asked["strategy"] == "likelihood" and asked["delimiter"] == " "
    assert "budget" not in asked and "decoding" not in asked

    seen = json.loads(medtasks("preview", TASK, "--json").out)  # to the letter what the run asked
    arguments = [*samples[0]["arguments"].values()]
    assert [{"arg_0": seen["prompt"], "arg_1": option} for option in seen["options"]] == arguments

    assert medtasks("rescore", "run").code == 0
    assert result_of(run, TASK)["metrics"] == record["metrics"]
    assert "1 of 1 tasks are done already" in ask(medtasks).err


def test_what_a_smaller_choice_left_is_asked_and_no_more(medtasks, monkeypatch):
    asked: list[str] = []
    original = Baseline.loglikelihood

    def counted(self, requests, disable_tqdm=False):
        asked.extend(request.doc["id"] for request in requests)
        return original(self, requests, disable_tqdm)

    monkeypatch.setattr(Baseline, "loglikelihood", counted)
    ask(medtasks, "--limit", "4")
    assert len(asked) == 4 * 3
    ask(medtasks)
    assert len(asked) == 10 * 3 and len(set(asked)) == 10


def test_generated_answers_and_likelihoods_share_a_run_and_stand_apart(medtasks):
    medtasks.done("run", "--tasks", f"bridge_mednli,{TASK}", "--model", "random-label", "-o", "run")
    report = medtasks("report", "run", "-o", "report")
    rows = {line.split()[0] for line in report.out.splitlines() if line.startswith(" bridge_")}
    assert rows == {"bridge_mednli", TASK}


CHAT = ("--model", "local-chat-completions", "--apply_chat_template", "--model_args",
        "model=m,base_url=http://127.0.0.1:9/v1/chat/completions")  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "more", "words"),
    [
        ("bridge_mediqa_2023_sum_b", (), "cannot be listed"),
        ("bridge_mednli_5shot", (), "leave the suffix out"),
        ("bridge_mednli", ("--ask", "nicely"), "answers or likelihood"),
        (TASK, CHAT, "at most 20 likeliest tokens"),
    ],
)
def test_what_cannot_be_asked_by_likelihood_is_one_message(medtasks, tasks, more, words):
    outcome = ask(medtasks, *more, tasks=tasks)
    assert outcome.code == 2 and words in outcome.err and len(outcome.err.splitlines()) <= 4


def test_a_plan_counts_prompts_and_options_and_no_output(medtasks, monkeypatch):
    monkeypatch.setattr("medtasks_ext.runner.preview.count_bytes", lambda texts: list(map(len, texts)))
    planned = {}
    for name in ("bridge_mednli", TASK):
        planned[name] = json.loads(medtasks.done("plan", "org/model-1b", "--tasks", name, "--json").out)
    (written,), (chosen,) = (plan["tasks"] for plan in planned.values())
    options = sum(map(len, ("entailment", "contradiction", "neutral")))
    assert chosen["prompt_tokens"] == written["prompt_tokens"] + 10 * (options + len("\nrelation:"))
    assert chosen["most_output_tokens"] == 0 < written["most_output_tokens"]
