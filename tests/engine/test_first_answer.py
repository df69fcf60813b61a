"""The preflight and the plan with the real engine and a real tokenizer."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.conftest import outcomes
from tests.run_files import result_of

pytestmark = pytest.mark.engine

TASK = "medhelm_medconfinfo"
CONFIG = """model: vllm
model_args:
  pretrained: {folder}
  dtype: float32
  max_model_len: 16384
  enforce_eager: true
apply_chat_template: false
gen_kwargs:
  max_gen_toks: 16
"""


def test_one_start_of_an_untrained_model_says_what_is_wrong_and_what_was_planned(tiny, environment, tmp_path):
    (tmp_path / "tiny.yaml").write_text(CONFIG.format(folder=tiny))
    environment = {**environment, "MEDTASKS_DATA": "sample"}

    def medtasks(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["medtasks", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
        return done

    planned = json.loads(medtasks("plan", "tiny.yaml", "--tasks", TASK, "--json").stdout)
    run = medtasks("run", "--config", "tiny.yaml", "--tasks", TASK, "--output_path", "run")

    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    record = manifest["preflight"]
    untemplated, endless = record["warnings"]  # the weights are random: it cannot stop
    assert "it is not applied" in untemplated and "did not end within 16 tokens" in endless
    for warning in record["warnings"]:
        assert f"preflight: ! {warning}" in run.stderr and f"note: {warning}" in run.stderr
    assert "the response ends: '" in run.stderr  # sample rows are public

    result = result_of(tmp_path / "run", TASK)
    keys = [row["key"] for row in outcomes(tmp_path / "run", TASK)]
    assert len(keys) == len(set(keys)) == result["n"]
    assert manifest["tasks"][TASK]["generated"] == result["n"] - 1  # the first was asked beforehand

    (task,) = planned["tasks"]
    assert task["prompt_tokens"] == result["tokens"]["input"] and task["documents"] == result["n"]
    assert task["most_output_tokens"] == 16 * result["n"]
