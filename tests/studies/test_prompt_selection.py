"""`medtasks prompts candidates` and `choose`: which wording is asked, by rows of the few-shot pool alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry import forget
from tests.conftest import rewrite_answers, write_jsonl

TASK = "clinicbench_pubmedqa"
SHORT = {"instruction": "Answer from the abstract with yes, no or maybe. {{ strategy }}"}


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
    def write(**changes) -> str:
        content = {
            "task": TASK,
            "candidates": {"own": {}, "short": SHORT}, **changes,
        }  # fmt: skip
        (tmp_path / "wordings.yaml").write_text(yaml.safe_dump(content))
        return "wordings.yaml"

    yield write
    forget()


def asked(tmp_path, name: str) -> list[dict]:
    file = tmp_path / "cand" / "data" / "own" / f"{TASK}_{name}" / "test.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def runs(medtasks, rows, wordings, tmp_path, monkeypatch):
    """Two models that answered both candidates: the first is wrong once in `own`, the second twice."""
    assert medtasks("prompts", "candidates", wordings(), "-o", "cand").code == 0
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "cand" / "data"))
    monkeypatch.setenv("MEDTASKS_TASKS", str(tmp_path / "cand" / "tasks"))
    forget()
    names = f"{TASK}_own,{TASK}_short"
    done = medtasks("run", "--model", "oracle", "--tasks", names, "--output_path", "a")
    assert done.code == 0, done.text
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    manifest = tmp_path / "b" / "run.json"
    manifest.write_text(manifest.read_text().replace('"oracle"', '"other"'))
    ids = [item["pubid"] for item in asked(tmp_path, "own")]
    for folder, wrong in (("a", 1), ("b", 2)):
        rewrite_answers(tmp_path / folder, f"{TASK}_own", dict.fromkeys(ids[:wrong], "no"))
        assert medtasks("rescore", folder).code == 0
    monkeypatch.delenv("MEDTASKS_TASKS")
    forget()
    return tmp_path


def test_all_candidates_are_asked_the_same_rows_of_the_pool_and_no_test_row(
    medtasks, rows, wordings, tmp_path
):
    outcome = medtasks("prompts", "candidates", wordings(), "-o", "cand")
    assert outcome.code == 0 and "2 candidates on 100 rows of the few-shot pool's 112" in outcome.out
    own, short = asked(tmp_path, "own"), asked(tmp_path, "short")
    assert own == short and len(own) == 100 and all(item["pubid"].startswith("pool") for item in own)
    task = (tmp_path / "cand" / "tasks" / f"{TASK}_short" / "task.yaml").read_text()
    assert SHORT["instruction"] in task and "download" not in task


def test_the_best_mean_over_models_is_chosen(medtasks, runs):
    outcome = medtasks("prompts", "choose", "cand", "a", "b")
    assert outcome.code == 0, outcome.text
    found = json.loads((runs / "cand" / "selection.json").read_text())
    assert found["chosen"] == "short" and found["prompt"] == SHORT and found["tied"] == []
    assert found["means"] == {"own": pytest.approx((0.99 + 0.98) / 2), "short": 1}
    assert found["scores"]["own"] == {"oracle": 0.99, "other": 0.98} and found["rows_of_the_pool"] == 100
    assert "chosen: short; these scores chose the prompt and are no results" in outcome.out


def test_equal_means_are_said_and_the_first_is_chosen(medtasks, runs):
    for folder in ("a", "b"):
        stored = runs / folder / "tasks" / f"{TASK}_own.json"
        content = json.loads(stored.read_text())
        best = json.loads(stored.with_name(f"{TASK}_short.json").read_text())
        same = {name: best[name] for name in ("metrics", "intervals")}
        stored.write_text(json.dumps({**content, **same}))
    outcome = medtasks("prompts", "choose", "cand", "a", "b")
    assert "equal means: own, short; the first of the file is chosen" in outcome.out
    assert json.loads((runs / "cand" / "selection.json").read_text())["chosen"] == "own"


def test_a_model_that_lacks_a_candidate_chooses_nothing(medtasks, runs):
    manifest = json.loads((runs / "b" / "run.json").read_text())
    manifest["tasks"][f"{TASK}_short"]["state"] = "waiting"
    (runs / "b" / "run.json").write_text(json.dumps(manifest))
    outcome = medtasks("prompts", "choose", "cand", "a", "b")
    assert outcome.code == 2 and "has no score of candidate short" in outcome.err and not outcome.out
    assert not (runs / "cand" / "selection.json").exists()


def test_without_a_pool_nothing_is_chosen_by_test_rows(medtasks, rows, wordings, tmp_path):
    (rows / "fewshot.jsonl").unlink()
    outcome = medtasks("prompts", "candidates", wordings(), "-o", "cand")
    assert outcome.code == 2 and "has no few-shot pool" in outcome.err and not outcome.out
    assert not (tmp_path / "cand").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "clinicbench_nothing"}, "no dataset 'clinicbench_nothing'"),
        ({"candidates": {"one": {}}}, "two or more"),
        ({"candidates": ["one", "two"]}, "two or more"),
        ({"candidates": {"one": {}, "two": {}}}, "words of its own"),
        ({"candidates": {"One!": {}, "two": SHORT}}, "a name (a-z, 0-9)"),
        ({"rows": 8}, "has keys beside task and candidates"),
        ({"candidates": None}, "two or more"),
    ],
)
def test_a_wrong_file_gets_one_message(medtasks, rows, wordings, tmp_path, changes, message):
    outcome = medtasks("prompts", "candidates", wordings(**changes), "-o", "cand")
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1
    assert not outcome.out and not Path(tmp_path / "cand" / "candidates.json").exists()


def test_a_folder_without_candidates_is_refused(medtasks, rows, tmp_path):
    outcome = medtasks("prompts", "choose", ".", "a")
    assert outcome.code == 2 and "candidates.json" in outcome.err
