"""A real model's answers: prompts are followed in part, and what cannot be read is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_lab.models.demo import NAME

pytestmark = pytest.mark.engine
pytest.importorskip("gguf")

TASKS = ["medhelm_medmcqa", "bridge_mednli", "clinicbench_bc5_disease"]
MEDTASKS = [sys.executable, "-m", "medtasks_ext"]


@pytest.fixture(scope="module")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample", "ACCELERATE_USE_CPU": "true"}


@pytest.fixture(scope="module")
def model(tmp_path_factory, environment) -> Path:
    folder = tmp_path_factory.mktemp("models") / NAME
    cache = os.environ.get("MEDTASKS_CACHE") or str(Path.home() / ".cache" / "medtasks")
    online = {**environment, "HF_HUB_OFFLINE": "0", "MEDTASKS_CACHE": cache}
    command = [*MEDTASKS, "model", "demo", "-o", str(folder)]
    done = subprocess.run(command, env=online, capture_output=True, text=True, check=False)
    if done.returncode and ("cannot be reached" in done.stderr or "no connection" in done.stderr):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    return folder


def test_its_folder_names_licence_and_origin(model):
    assert "Apache License" in (model / "LICENSE").read_text()
    assert "checkpoint is no score of SmolLM2" in (model / "README.md").read_text()
    assert not list(model.parent.glob(".*")), "nothing else stays"


def test_its_answers_are_read_scored_and_doubted(model, environment, tmp_path):
    """Most letters can be read, most labels cannot: the score stands, and the alarm is given."""
    command = [
        *MEDTASKS, "run", "--tasks", ",".join(TASKS), "--limit", "4", "--model", "hf", "--device", "cpu",
        "--model_args", f"pretrained={model},dtype=float32", "--batch_size", "4", "--apply_chat_template",
        "--gen_kwargs", "max_gen_toks=24", "--output_path", "run",
    ]  # fmt: skip
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-4000:]
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert NAME in json.dumps(results["medtasks"]["manifest"])
    for task in TASKS:
        figures = results["results"][task]
        assert 0 <= figures["score,answer"] <= 1 and 0 <= figures["valid,answer"] <= 1, figures
    answers = [
        json.loads(line)["response"]
        for path in (tmp_path / "run" / "responses").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "response" in line
    ]
    assert len(answers) >= 4 * len(TASKS) and sum(bool(text.strip()) for text in answers) > len(answers) / 2
    assert "SAMPLE" in said.stdout and "SAMPLE score" in said.stdout + said.stderr
    shown = subprocess.run(
        [*MEDTASKS, "view", "run", TASKS[0], "0"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "── response" in shown.stdout and "── gold answer ──" in shown.stdout
