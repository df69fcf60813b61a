"""`medtasks run --ask likelihood`: the same stream, folder and checks as for answers that are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from medtasks_ext.models import Baseline, Oracle
from medtasks_ext.registry import registry
from tests.conftest import outcomes
from tests.run_files import result_of, samples_of

TASK = "bridge_mednli_ll"


@pytest.fixture(autouse=True)
def sample(monkeypatch):
    monkeypatch.setenv("MEDTASKS_DATA", "sample")


@pytest.fixture
def unsure(monkeypatch):
    """The oracle finds every option as likely as it is short, and its place in the alphabet adds a little."""

    def loglikelihood(self, requests, disable_tqdm=False):
        return [
            (-len(request.args[1]) - ord(request.args[1].strip()[0]) / 1e4, False) for request in requests
        ]

    monkeypatch.setattr(Oracle, "loglikelihood", loglikelihood)


def ask(medtasks, *more: str, tasks: str = "bridge_mednli", out: str = "run"):
    return medtasks("run", "--tasks", tasks, "--ask", "likelihood", "--model", "oracle", "-o", out, *more)


def read(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_outcomes_hold_the_likelihood_of_each_option_and_scores_follow(medtasks, unsure, tmp_path):
    outcome = ask(medtasks)
    assert outcome.code == 0 and TASK in outcome.out
    run = tmp_path / "run"
    stored = {line["document"]: line for line in outcomes(run)}
    samples = samples_of(run, TASK)
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
    record = result_of(run, TASK)
    assert record["metrics"]["acc"] == sum(sample["acc"] for sample in samples) / 10
    asked = record["conditions"]
    assert asked["strategy"] == "likelihood" and asked["delimiter"] == " "
    assert "budget" not in asked and "decoding" not in asked


def test_a_folder_is_scored_anew(medtasks, unsure, tmp_path):
    ask(medtasks)
    before = result_of(tmp_path / "run", TASK)
    assert medtasks("rescore", "run").code == 0
    assert result_of(tmp_path / "run", TASK)["metrics"] == before["metrics"]
    again = ask(medtasks)
    assert again.code == 0 and "1 of 1 tasks are done already" in again.err


def test_what_a_crash_cut_off_is_asked_again_and_no_more(medtasks, monkeypatch, tmp_path):
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


def test_examples_are_a_condition(medtasks, tmp_path):
    ask(medtasks, "--num_fewshot", "2", out="whole")
    whole = result_of(tmp_path / "whole", TASK)
    assert whole["conditions"]["strategy"] == "likelihood_2_shot"
    assert "relation: " in samples_of(tmp_path / "whole", TASK)[0]["arguments"]["gen_args_0"]["arg_0"]


def test_groups_hold_the_tasks_whose_answers_can_be_listed(medtasks):
    outcome = ask(medtasks, tasks="bridge_ja,mlb_medkqa", out="group")
    assert outcome.code == 0 and "are asked by likelihood: answers of the others" in outcome.err
    known = registry()
    for name in ("bridge_ja", "mlb_medkqa"):
        datasets = [known.known(leaf)[0] for leaf in known.leaves(name)]
        expected = [f"{item.id}_ll" for item in datasets if item.is_closed]
        assert expected and expected == known.leaves(f"{name}_ll")
    closed = [item for item in known.datasets.values() if item.is_closed and item.metadata.grouped]
    assert {f"{item.id}_ll" for item in closed} == {
        leaf
        for suite in known.suites.values()
        if suite.id in known.groups
        for leaf in known.leaves(f"{suite.id}_ll")
    }


def test_generated_answers_and_likelihoods_share_a_run_and_stand_apart(medtasks, tmp_path):
    medtasks.done("run", "--tasks", f"bridge_mednli,{TASK}", "--model", "random-label", "-o", "run")
    report = medtasks("report", "run", "-o", "report")
    rows = {line.split()[0] for line in report.out.splitlines() if line.startswith(" bridge_")}
    assert rows == {"bridge_mednli", TASK} and "BRIDGE, by likelihood, 0-shot: calibration" in report.out


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ("bridge_mediqa_2023_sum_b", "cannot be listed"),
        ("bridge_mednli_5shot", "leave the suffix out"),
        ("bridge_mednlo", "no task or group"),
    ],
)
def test_what_cannot_be_asked_by_likelihood_is_one_message(medtasks, tasks, words):
    outcome = ask(medtasks, tasks=tasks)
    assert outcome.code == 2 and words in outcome.err and len(outcome.err.splitlines()) <= 3


def test_an_unknown_way_is_one_message(medtasks):
    outcome = medtasks("run", "--tasks", "bridge_mednli", "--ask", "nicely", "--model", "oracle")
    assert outcome.code == 2 and "answers or likelihood" in outcome.err


@pytest.mark.parametrize("model", ["local-chat-completions", "openai-chat-completions"])
def test_a_chat_interface_is_refused_before_it_is_asked(medtasks, monkeypatch, model):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    arguments = (
        "--model_args",
        "model=m,base_url=http://127.0.0.1:9/v1/chat/completions",
        "--apply_chat_template",
    )
    outcome = medtasks("run", "--tasks", TASK, "--model", model, *arguments, "-o", "run")
    assert outcome.code == 2 and "at most 20 likeliest tokens" in outcome.err
    assert "local-completions" in outcome.err and len(outcome.err.splitlines()) <= 4


def test_a_preview_is_to_the_letter_what_a_run_asks(medtasks, tmp_path):
    ask(medtasks)
    seen = json.loads(medtasks("preview", TASK, "--json").out)
    [*arguments] = samples_of(tmp_path / "run", TASK)[0]["arguments"].values()
    assert [{"arg_0": seen["prompt"], "arg_1": option} for option in seen["options"]] == arguments
    assert seen["strategy"] == "likelihood" and not seen["answers"] and not seen["generation"]
    printed = medtasks("preview", TASK)
    assert "possible answers (3)" in printed.out and "' contradiction'" in printed.out
    refused = medtasks("preview", TASK, "--response", "neutral")
    assert refused.code and "--response: no response is read where likelihood is asked" in refused.err


def test_a_plan_counts_prompts_and_options_and_no_output(medtasks, monkeypatch):
    monkeypatch.setattr("medtasks_ext.runner.plan.count_bytes", lambda texts: list(map(len, texts)))
    monkeypatch.setenv("MEDTASKS_DATA", "sample")
    planned = {}
    for name in ("bridge_mednli", TASK):
        outcome = medtasks("plan", "org/model-1b", "--tasks", name, "--json")
        assert outcome.code == 0, outcome.err
        planned[name] = json.loads(outcome.out)
    (written,), (chosen,) = (plan["tasks"] for plan in planned.values())
    options = sum(map(len, ("entailment", "contradiction", "neutral")))
    lead = len("\nrelation:")
    assert chosen["prompt_tokens"] == written["prompt_tokens"] + 10 * (options + lead)
    assert chosen["most_output_tokens"] == 0 < written["most_output_tokens"]
    assert f"--tasks {TASK}" in planned[TASK]["command"]
    assert any(line.startswith("by likelihood:") for line in planned[TASK]["rules"])
    group = json.loads(medtasks("plan", "org/model-1b", "--tasks", "bridge_ja_ll", "--json").out)
    assert [task["task"] for task in group["tasks"]] == sorted(registry().leaves("bridge_ja_ll"))


def test_a_report_says_how_sure_the_model_is(medtasks, unsure, tmp_path):
    ask(medtasks)
    outcome = medtasks("report", "run", "-o", "report")
    samples = samples_of(tmp_path / "run", TASK)
    record = result_of(tmp_path / "run", TASK)["metrics"]
    assert f"calibration error {record['calibration_error']:.3f}" in " ".join(outcome.out.split())
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    (found,) = json.loads(page.split('id="data">')[1].split("</script>")[0])["calibration"]
    assert found["documents"] == sum(n for *_, n in found["bins"]) == 10
    assert sum(right for _, right, _ in found["bins"]) == sum(sample["acc"] for sample in samples)
    sure = sum(max(sample["calibration_error"][0]) for sample in samples)
    assert sum(one for one, *_ in found["bins"]) == pytest.approx(sure, abs=1e-3)
    assert found["acc_norm"] == pytest.approx(record["acc_norm"])
    (as_json,) = json.loads(medtasks("report", "run", "--json").out)["calibration"]
    assert as_json["task"] == TASK and as_json["calibration_error"] == record["calibration_error"]
    assert len(as_json["risks"]) == 20 and as_json["risks"][-1] == pytest.approx(1 - record["acc"])
    differs = record["acc_norm"] != record["acc"]
    assert ("acc_norm" in outcome.out.partition("by likelihood: how sure")[2]) == differs
