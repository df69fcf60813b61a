"""`medtasks study prompts`: which wording is asked, by rows of the few-shot pool alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.prompts import load
from tests.conftest import rewrite_answers, write_jsonl
from tests.run_files import samples_of

TASK = "clinicbench_pubmedqa"
SHORT = "Answer from the abstract with yes, no or maybe. {{ strategy }}"
CALL = ("study", "prompts", "wordings.yaml")


def row(name: str, number: int) -> dict:
    question = f"Does {name} {number} help?"
    context = {"contexts": [f"Abstract {name} {number}."]}
    return {"pubid": f"{name}{number}", "question": question, "context": context, "final_decision": "yes"}


@pytest.fixture
def rows(data_dir):
    """Six test rows and 112 rows of a pool; one of the pool is a test row."""
    folder = data_dir / "clinicbench" / "pubmedqa"
    test = [row("test", n) for n in range(6)]
    write_jsonl(folder / "test.jsonl", test)
    write_jsonl(folder / "fewshot.jsonl", [*(row("pool", n) for n in range(112)), test[0]])
    return folder


@pytest.fixture
def wordings(tmp_path):
    def write(**changes) -> None:
        content = {"task": TASK, "wordings": {"now": "", "short": SHORT}, **changes}
        (tmp_path / "wordings.yaml").write_text(yaml.safe_dump(content))

    write()
    return write


def place(name: str) -> Path:
    return Path("wordings", name, "clinicbench", "pubmedqa")


def asked(name: str) -> list[dict]:
    return [json.loads(line) for line in (place(name) / "test.jsonl").read_text().splitlines()]


@pytest.fixture
def runs(medtasks, rows, wordings, tmp_path, monkeypatch):
    """Two models that answered in both wordings: the first is wrong once in `now`, the second twice."""
    assert medtasks(*CALL).code == 0
    ids = [item["pubid"] for item in asked("now")]
    for name in ("now", "short"):
        monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "wordings" / name))
        load._build.cache_clear()
        one, other = (tmp_path / "wordings" / name / "runs" / model for model in "ab")
        done = medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", one)
        assert done.code == 0, done.text
        shutil.copytree(one, other)
        manifest = other / "run.json"
        manifest.write_text(manifest.read_text().replace('"oracle"', '"other"'))
        for folder, wrong in ((one, 1), (other, 2)):
            rewrite_answers(folder, TASK, dict.fromkeys(ids[:wrong] if name == "now" else [], "no"))
            assert medtasks("rescore", folder).code == 0
    return tmp_path / "wordings"


def test_all_wordings_are_asked_the_same_rows_of_the_pool_and_no_test_row(medtasks, rows, wordings):
    outcome = medtasks(*CALL)
    assert outcome.code == 0 and "2 wordings on 100 rows of the few-shot pool's 112" in outcome.out
    assert f"MEDTASKS_DATA_DIR=wordings/WORDING medtasks run --tasks {TASK}" in outcome.err
    assert asked("now") == asked("short") and len(asked("now")) == 100
    assert all(item["pubid"].startswith("pool") for item in asked("now"))
    assert (place("short") / "instruction.txt").read_text() == SHORT
    assert not (place("now") / "instruction.txt").exists()


def test_the_best_mean_over_models_is_chosen_of_what_was_asked_in_these_words(medtasks, runs):
    samples = [samples_of(runs / name / "runs" / "a", TASK)[0] for name in ("short", "now")]
    prompts = [sample["arguments"]["gen_args_0"]["arg_0"] for sample in samples]
    assert ["Answer from the abstract" in str(prompt) for prompt in prompts] == [True, False]
    outcome = medtasks(*CALL)
    assert outcome.code == 0, outcome.text
    found = json.loads((runs / "selection.json").read_text())
    assert found["chosen"] == "short" and found["prompt"] == SHORT and found["tied"] == []
    assert found["means"] == {"now": pytest.approx((0.99 + 0.98) / 2), "short": 1}
    assert found["scores"]["now"] == {"oracle": 0.99, "other": 0.98}
    printed = " ".join(outcome.out.split())
    assert "now 0.9850 0.9900 0.9800" in printed and "short 1.0000 1.0000 1.0000" in printed
    assert "chosen: short; these scores chose the prompt and are no results" in outcome.out
    shutil.rmtree(runs / "now" / "runs")
    shutil.copytree(runs / "short" / "runs", runs / "now" / "runs")
    assert "equal means: now, short; the first of the file is chosen" in medtasks(*CALL).out


def test_equal_means_are_said_and_the_first_is_chosen(medtasks, runs):
    shutil.rmtree(runs / "now" / "runs")
    shutil.copytree(runs / "short" / "runs", runs / "now" / "runs")
    outcome = medtasks(*CALL)
    assert "equal means: now, short; the first of the file is chosen" in outcome.out
    assert json.loads((runs / "selection.json").read_text())["chosen"] == "now"


def test_what_chooses_nothing_is_one_message(medtasks, runs, rows, wordings, monkeypatch):
    shutil.rmtree(runs / "short" / "runs" / "b")
    outcome = medtasks(*CALL)
    assert outcome.code == 2 and "wordings/short/runs: has no score of other on all rows" in outcome.err
    assert not outcome.out and not (runs / "selection.json").exists()
    shutil.rmtree(runs)
    for changes in ({"task": "clinicbench_nothing"}, {"wordings": {"../one": "", "two": SHORT}}):
        wordings(**changes)
        assert "wordings.yaml: names no dataset as `task`" in medtasks(*CALL).err
    wordings()
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(rows.parents[1]))
    (rows / "fewshot.jsonl").unlink()  # no test row may choose its own prompt
    outcome = medtasks(*CALL)
    assert outcome.code == 2 and "has no few-shot pool" in outcome.err and not runs.exists()
