"""The recipe of the judge model on a tiny random Llama: trained with TRL, served by vLLM, evaluated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, write_jsonl
from tests.engine import tiny_model

pytestmark = pytest.mark.engine
pytest.importorskip("trl")

RECIPE = ROOT / "model_configs" / "judge_sft"
ON_CPU = ("--dtype", "float32", "--bf16", "false", "--use_cpu", "true", "--learning_rate", "2e-3",
          "--per_device_train_batch_size", "5", "--gradient_accumulation_steps", "1", "--save_strategy", "no",
          "--logging_steps", "1", "--disable_tqdm", "true")  # fmt: skip


def case(number: int) -> dict:
    """An answer that meets both of its points or neither, which shows in a word."""
    met = number % 2 == 0
    return {
        "id": f"case {number}", "question": f"第{number}位患者感冒三天，居家应注意什么？",
        "answer": ("是" if met else "否") * 12,
        "points": [{"id": "rest", "text": "建议休息"}, {"id": "water", "text": "建议多饮水"}],
        "decisions": {"rest": met, "water": met}, "decided_by": "expert",
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(environment, tmp_path_factory) -> Path:
    """The data of 12 cases, and a random model whose tokenizer knows the prompt."""
    folder = tmp_path_factory.mktemp("judge")
    write_jsonl(folder / "cases.jsonl", [case(number) for number in range(12)])
    command = ["medtasks", "study", "judge", "cases.jsonl"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    rows = [json.loads(line) for line in (folder / "judge_data" / "train.jsonl").read_text().splitlines()]
    texts = [message["content"] for row in rows for message in row["prompt"] + row["completion"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny_model, "LINES", [*tiny_model.LINES, *texts])
        tiny_model.make(folder / "model")
    return folder


def train(folder: Path, environment: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, RECIPE / "train.py", "--config", RECIPE / "qwen3_14b.yaml",
               "--model_name_or_path", "model", *ON_CPU, *more]  # fmt: skip
    return subprocess.run([*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def judge(folder, environment) -> Path:
    """The model after training of all its weights."""
    done = train(
        folder, environment, "--use_peft", "false", "--num_train_epochs", "40", "--output_dir", "judge"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "judge"


@pytest.fixture(scope="module")
def address(judge, served):
    with served(judge, "judge", context=4096) as server:
        yield f"{server}/v1"


def losses(folder: Path) -> list[float]:
    history = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    return [item["loss"] for item in history if "loss" in item]


def test_the_loss_on_the_verdict_falls(judge):
    found = losses(judge)
    assert found[0] > 3 and sum(found[-4:]) / 4 < 0.1


@pytest.mark.nightly
def test_the_served_judge_decides_its_training_points_as_the_experts_do(folder, address, environment):
    held_out = {json.loads(line)["id"] for line in (folder / "judge_data/test_cases.jsonl").open()}
    trained_on = [item for item in map(case, range(12)) if item["id"] not in held_out]
    write_jsonl(folder / "trained_on.jsonl", trained_on)
    jury = {"judges": [{"name": "judge", "model": "judge", "base_url": address, "max_tokens": 40}]}
    (folder / "jury.yaml").write_text(yaml.safe_dump(jury))
    command = ["medtasks", "study", "judge", "trained_on.jsonl", "--jury", "jury.yaml", "-o", "evaluation"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / "evaluation" / "judge_eval.json").read_text())["judge"]
    assert (found["points"], found["missing"]) == (2 * len(trained_on), 0)
    assert found["cohen_kappa"]["interval_low"] > 0 and found["accuracy"]["interval_low"] > 0.5


@pytest.mark.nightly
def test_lora_leaves_one_plain_model_that_differs_from_its_base(folder, environment):
    from safetensors.torch import load_file

    done = train(folder, environment, "--max_steps", "4", "--eval_strategy", "no", "--output_dir", "lora")
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list((folder / "lora").glob("adapter*")) and len(losses(folder / "lora")) == 4
    before, after = (load_file(folder / name / "model.safetensors") for name in ("model", "lora"))
    assert before.keys() == after.keys()
    assert any((before[name] != after[name]).any() for name in before)


def test_a_row_that_does_not_fit_stops_the_training(folder, environment):
    done = train(folder, environment, "--max_length", "100", "--output_dir", "short")
    assert done.returncode != 0 and "rows are longer than max_length 100: raise it to" in done.stderr
    assert not (folder / "short").exists()
