"""Results are read from whatever wrote them; what cannot be used is said."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.results.conditions import comparable, differences
from medtasks_ext.results.frames import schema
from medtasks_ext.results.reading import read_results
from tests.conftest import edited_json, hashed_anew, read_json, write_jsonl
from tests.report.made import write_run
from tests.run_files import result_of, results_of, samples_file

TASK, OTHER = "medhelm_hospice_referral", "medhelm_clinic_referral"


def read(*folders):
    return read_results([Path(folder) for folder in folders], registry())


@pytest.fixture
def run(medtasks, data_dir, tmp_path):
    """Calls `medtasks run` on local rows; returns the run's folder."""
    for name, question in (("hospice_referral", "prompt"), ("clinic_referral", "question")):
        rows = [{question: "Eligible?", "context": f"note {n}", "label": "AB"[n % 2]} for n in range(12)]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", rows)

    def call(folder, *more, model="random-label", tasks=TASK):
        medtasks.done("run", "--model", model, "--tasks", tasks, "--output_path", folder, *more)
        return tmp_path / folder

    return call


def edit(file, change):
    with edited_json(file) as content:
        change(content)
    hashed_anew(file)


def test_plain_lm_eval_output_gives_the_same_numbers(run, tmp_path):
    """A run in lm-eval's own layout: results_DATE.json, samples_TASK_DATE.jsonl."""
    folder = run("run", tasks=f"{TASK},{OTHER}")
    plain = as_lm_eval(folder, tmp_path / "plain", model_args="pretrained=org/model")
    ours, theirs = read(folder).entries[0], read(plain).entries[0]
    assert theirs.kind == "lm_eval"
    for task in (TASK, OTHER):
        one, other = ours.experiments[task], theirs.experiments[task]
        assert one.metrics == other.metrics and one.intervals == other.intervals
        written = read_json(next(plain.glob("results_*.json")))["results"][task]
        order = [key.partition(",")[0] for key in written if key.endswith(",answer") and "_stderr" not in key]
        assert list(other.metrics)[: len(order)] == order
        assert one.words == other.words and one.n == other.n
        assert one.read_resampled() == pytest.approx(other.read_resampled())
        assert one.read_documents().scores == pytest.approx(other.read_documents().scores)


def as_lm_eval(folder, target, model_args="pretrained=org/model,dtype=float32"):
    content = results_of(folder)
    content["config"] = {"model": "random-label", "model_args": model_args, "gen_kwargs": {}}
    content["chat_template"] = None
    del content["medtasks"]
    target.mkdir()
    (target / "results_2026-01-01T00-00-00.json").write_text(json.dumps(content))
    for task in content["configs"]:
        shutil.copy(samples_file(folder, task), target / f"samples_{task}_2026-01-01T00-00-00.jsonl")
    return target


def results_beside(plain):
    return next(plain.glob("results_*.json"))


def test_a_figure_that_the_samples_do_not_give_is_refused_with_both(run, medtasks, tmp_path):
    plain = as_lm_eval(run("run"), tmp_path / "plain")
    said = read(plain).entries[0].experiments[TASK].score
    edit(
        results_beside(plain), lambda content: content["results"][TASK].update({"score,answer": said + 2e-9})
    )
    [fault] = read(plain).faults
    assert f"{TASK}: score is {said + 2e-9}, and {said} by its samples" in fault.what and fault.skipped
    edit(results_beside(plain), lambda content: content["results"][TASK].update({"score,answer": 0.99}))
    outcome = medtasks("report", "plain", "-o", "page")
    assert outcome.code == 2 and f"score is 0.99, and {said} by its samples" in outcome.err
    both = medtasks("report", "plain", "run", "-o", "page")
    assert "score is 0.99" in both.text and "0.99" not in both.text.replace("score is 0.99", "")


@pytest.mark.parametrize(
    ("condition", "change"),
    [
        ("chat template", {"chat_template": "{{ messages }} Answer yes mostly."}),
        ("variant of the model", {"config": {"model_sha": "bbb"}}),
        ("precision", {"config": {"model_dtype": "torch.float16"}}),
        ("context", {"config": {"model_args": "pretrained=org/model,max_model_len=256"}}),
        ("versions of packages", {"lm_eval_version": "0.4.9"}),
        ("versions of packages", {"pretty_env_info": "[pip3] torch==2.8.0\n[pip3] vllm==0.6.0"}),
    ],
)
def test_what_lm_eval_says_of_the_model_and_its_engine_is_a_condition(run, tmp_path, condition, change):
    plain = as_lm_eval(run("run"), tmp_path / "plain", model_args="pretrained=org/model")
    stated = {
        "chat_template": "{{ messages }}", "lm_eval_version": "0.4.13", "transformers_version": "4.57.0",
        "pretty_env_info": "[pip3] torch==2.8.0\n[pip3] vllm==0.11.0", "max_length": 8192,
    }  # fmt: skip
    loaded = {"model_sha": "aaa", "model_num_parameters": 1, "model_dtype": "torch.bfloat16"}
    edit(results_beside(plain), lambda content: content.update(stated) or content["config"].update(loaded))
    other = shutil.copytree(plain, tmp_path / "other")
    facts = read(plain).entries[0].experiments[TASK].facts
    assert differences(facts, read(other).entries[0].experiments[TASK].facts) == ()
    assert read(plain).entries[0].label == "org/model"  # no model is called by what was loaded of it

    def changed(content):
        config = {**content["config"], **change.get("config", {})}
        content.update({**change, "config": config})

    edit(results_beside(other), changed)
    changed_facts = read(other).entries[0].experiments[TASK].facts
    assert comparable(facts, changed_facts)
    assert condition in [item.condition for item in differences(facts, changed_facts) if item.known]


def test_strategies_of_one_model_become_one_entry_whatever_shots_each_has(tmp_path):
    five, scores = f"{TASK}_5shot", [1.0, 0.0, 1.0]
    runs = [write_run(tmp_path / name, "model", {name: scores}) for name in (TASK, f"{TASK}_cot", five)]
    results = read(*runs)
    [entry] = results.entries
    assert results.faults == [] and entry.label == "model"
    assert {name: item.strategy for name, item in entry.experiments.items()} == {
        TASK: "zero_shot", f"{TASK}_cot": "cot", five: "five_shot",
    }  # fmt: skip


@pytest.mark.parametrize("state", ["waiting", "failed", "missing"])
def test_the_score_of_a_task_that_is_not_done_any_more_is_not_read(tmp_path, state):
    """A task that is asked again keeps its former result until the new score is there."""
    scores = {TASK: [1.0, 0.0], OTHER: [1.0, 1.0]}
    folder = write_run(tmp_path / "run", "model", scores, states={TASK: {"state": state}})
    assert result_of(folder, TASK)["metrics"]["score"] == 0.5
    [entry] = read(folder).entries
    assert set(entry.experiments) == {OTHER}


def test_an_axis_with_the_name_of_another_column_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "wards"
    folder.mkdir()
    said = {
        "title": "WardBench", "about": "wards", "citation": "", "axes": {"source": {"values": {"er": "ER"}}},
        "groups": {"source": ""}, "partition": ["source"], "main_axes": ["source"], "sections": "source",
        "assigned_by": "medtasks", "datasets": [],
    }  # fmt: skip
    (folder / "suite.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(tmp_path))
    with pytest.raises(MedtasksError, match=r"axes\.source: tables of results have") as caught:
        schema("results")
    assert str(folder / "suite.yaml") in str(caught.value)
