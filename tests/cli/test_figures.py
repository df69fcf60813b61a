"""`medtasks figures`: runs in MedHELM's published table."""

import json

import pytest

from medtasks_ext.registry import registry
from tests.conftest import write_jsonl
from tests.report.made import write_run

TASKS = "medhelm_hospice_referral,medhelm_clinic_referral"


@pytest.fixture
def two_runs(medtasks, data_dir):
    """The oracle and a guessing model on the same local rows."""
    for name, question in (("hospice_referral", "prompt"), ("clinic_referral", "question")):
        rows = [{question: "Eligible?", "context": f"note\u2028{n}", "label": "AB"[n % 2]} for n in range(12)]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", rows)
    for model in ("oracle", "random-label"):
        assert medtasks("run", "--model", model, "--tasks", TASKS, "--output_path", model).code == 0


def test_runs_that_were_asked_otherwise_stand_below_the_published_models_without_win_rates(
    medtasks, two_runs
):
    outcome = medtasks("figures", "oracle", "random-label")
    assert outcome.code == 0
    assert "MedHELM, 2 of 37 benchmarks" in outcome.out
    lines = {line.split("  ")[0].strip(): line for line in outcome.out.splitlines()}
    assert lines["oracle (asked otherwise)"].split()[3:7] == ["–", "–", "1.000", "0.000"]
    assert "2 of 2 tasks were asked otherwise" in outcome.err and "wording in 2" in outcome.err
    assert sum("(published)" in name for name in lines) == 9
    assert "medhelm_hospice_referral: 0." in outcome.out and "(n = 12)" in outcome.out


def test_costs_are_of_counted_tokens_with_the_bound_beside_them(medtasks, two_runs, tmp_path):
    file = tmp_path / "oracle" / "tasks" / "medhelm_hospice_referral.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "tokens": {"input": 2_000_000, "output": 10_000}}))
    outcome = medtasks("figures", "oracle", "--price", "3,15")
    # 12 answers of at most 4,000 tokens
    assert "oracle: 6.15 USD for the tokens used, at most 6.72 if" in outcome.out
    assert "without 1 tasks whose tokens could not be counted: medhelm_clinic_referral" in outcome.out


def test_tokens_that_were_not_counted_have_no_cost(medtasks, two_runs):
    outcome = medtasks("figures", "oracle", "--price", "3,15")
    assert "oracle: no cost, since no tokens were counted in its 2 tasks" in outcome.out
    assert "0.00 USD" not in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "no such file"),
        (("oracle", "--price", "cheap"), "'cheap' is no price"),
        (("oracle", "--price=-1,-2"), "'-1,-2' is no price"),
        (("oracle", "--price", "nan,1"), "'nan,1' is no price"),
        (("oracle", "--price", "1,inf"), "'1,inf' is no price"),
        (("oracle", "--price", "1,2", "--price", "3,4"), "2 prices for 1 runs"),
        (("oracle", "random-label", "--price", "1,2"), "1 prices for 2 runs"),
        (("oracle", "--strategy", "one_shot"), "unknown strategy 'one_shot'"),
        (("oracle", "--strategy", "cot"), "no task of medhelm has a score"),
    ],
)
def test_a_wrong_argument_gets_one_message(medtasks, two_runs, arguments, message):
    outcome = medtasks("figures", *arguments)
    assert outcome.code == 2 and message in outcome.err


def test_sample_rows_never_stand_beside_published_scores(medtasks):
    medtasks("run", "--model", "oracle", "--tasks", TASKS, "--data", "sample", "--output_path", "run")
    outcome = medtasks("figures", "run")
    assert outcome.code == 2 and "synthetic sample rows cannot stand beside published scores" in outcome.err


def test_mlb_shows_dimensions_beside_the_published_models_and_departments(medtasks, data_dir):
    rows = [
        {
            "question": f"第{n}题：首选哪一项？",
            "options": ["甲", "乙", "丙", "丁", "戊"],
            "answer": [2],
            "department": "Cardiology" if n < 5 else "Neonatology",
        }
        for n in range(8)
    ]
    write_jsonl(data_dir / "mlb" / "maguidance" / "test.jsonl", rows)
    assert medtasks("run", "--model", "oracle", "--tasks", "mlb_maguidance", "--output_path", "run").code == 0
    outcome = medtasks("figures", "run", "--suite", "mlb")
    assert outcome.code == 0
    line = next(line for line in outcome.out.splitlines() if line.strip().startswith("oracle "))
    assert line.split()[1:5] == ["1.0000", "(1/22,", "in", "part)"]  # 8 of the suite's rows
    assert outcome.out.count("(published)") == 10 and "0.7729" in outcome.out
    assert any(line.split() == ["Cardiology", "1.0000", "1", "5"] for line in outcome.out.splitlines())
    assert any(line.split() == ["Pediatrics", "1.0000", "1", "3"] for line in outcome.out.splitlines())


def test_another_suite_has_no_table(medtasks, two_runs):
    outcome = medtasks("figures", "oracle", "--suite", "bridge")
    assert outcome.code == 2 and "no published table is known of 'bridge'" in outcome.err


def test_a_run_with_other_examples_is_refused_and_what_is_unlike_is_said(medtasks, tmp_path):
    write_run(
        tmp_path / "few", "ORG/few", {"medhelm_medqa": [1.0, 0.0]}, record={"config": {"num_fewshot": 5}}
    )
    outcome = medtasks("figures", "few")
    assert outcome.code == 2 and "medhelm_medqa was asked 5-shot" in outcome.err
    partly = {"config": {"num_fewshot": 0}}
    write_run(tmp_path / "own", "ORG/own", {"medhelm_medqa": [1.0, 0.0]}, record=partly)
    outcome = medtasks("figures", "own")
    assert outcome.code == 0 and "asked otherwise" in outcome.err and "wording in 1" in outcome.err


def test_a_run_that_was_asked_alike_has_a_win_rate_on_these_tasks_alone(medtasks, tmp_path):
    tasks = ("medhelm_medqa", "medhelm_head_qa", "medhelm_medmcqa")
    scores = {name: [1.0] * registry().datasets[name].n_documents for name in tasks}
    write_run(tmp_path / "a", "ORG/a", scores, loaded={"instruction": "official"})
    file = tmp_path / "a" / "tasks" / "medhelm_medqa.json"
    record = json.loads(file.read_text())
    record["loaded"]["instruction"] = "own"
    file.write_text(json.dumps(record))
    outcome = medtasks("figures", "a")
    assert (
        "MedHELM, 2 of 37 benchmarks" in outcome.out and "asked as the published models were" in outcome.out
    )
    line = next(line for line in outcome.out.splitlines() if line.strip().startswith("ORG/a "))
    assert line.split()[1] == "1.000"
    assert "1 of 3 tasks were asked otherwise" in outcome.err and "wording in 1" in outcome.err
