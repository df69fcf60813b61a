"""Judges over the real vLLM: a jury that is killed, and a judge that is trained with TRL."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, write_jsonl
from tests.engine import tiny_model
from tests.engine.conftest import NAMES, called
from tests.engine.tiny_model import make
from tests.run_files import result_of

pytestmark = pytest.mark.engine


TASK = "medhelm_mediqa"


def lines(folder: Path) -> list[dict]:
    path = folder / "run" / "judgements" / "answers.jsonl"
    content = path.read_bytes().splitlines() if path.is_file() else []  # a text may hold other separators
    return [json.loads(line) for line in content if line.endswith(b"}")]


def test_a_killed_jury_goes_on_and_its_verdicts_satisfy_the_schema(helm, server, environment, tmp_path):
    """In the words of MedHELM, which the random model answers with a text that ends."""
    made = ("medtasks", "run", "--tasks", TASK, "--model", "oracle", "--output_path", "run")
    called(made, tmp_path, environment)
    # A random model closes a text only by chance: a temperature, and room for the texts to end.
    judges = [
        {"name": name, "model": name, "base_url": f"{server}/v1", "temperature": 1.0, "max_tokens": 8000,
         "max_concurrent": 2}
        for name in NAMES
    ]  # fmt: skip
    (tmp_path / "jury.yaml").write_text(yaml.safe_dump({"judges": judges}))
    command = ("medtasks", "judge", "--jury", "jury.yaml")
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while sum("verdict" in item for item in lines(tmp_path)) < 4:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    kept = {item["key"] for item in lines(tmp_path) if "verdict" in item}
    assert "SAMPLE DATA" in called(command, tmp_path, environment, (0, 1))
    found = [item for item in lines(tmp_path) if "verdict" in item]
    keys = [item["key"] for item in found]
    assert len(keys) == len(set(keys)) and kept < set(keys)
    missing = {item["unreadable"] for item in lines(tmp_path) if "unreadable" in item}
    assert missing <= {"reply cut at max_tokens"}  # the schema leaves no other way to fail
    assert {item["judge"] for item in found} == set(NAMES)
    by_document: dict[str, list[float]] = {}
    for item in found:
        assert "counted" not in item["usage"] and item["usage"]["completion"] > 0
        assert all(part["score"] in (1, 2, 3, 4, 5) for part in item["verdict"].values())
        by_document.setdefault(item["document"], []).extend(item["ratings"].values())
    means = [sum(ratings) / len(ratings) for ratings in by_document.values()]
    stored = result_of(tmp_path / "run", TASK)["metrics"]
    assert stored["score"] == pytest.approx((sum(means) / len(means) - 1) / 4)


# ---------------------------------------------------------------------- a trained judge

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
    pytest.importorskip("trl")
    folder = tmp_path_factory.mktemp("judge")
    write_jsonl(folder / "cases.jsonl", [case(number) for number in range(12)])
    called(("medtasks", "study", "judge", "cases.jsonl"), folder, environment)
    rows = [json.loads(line) for line in (folder / "judge_data" / "train.jsonl").read_text().splitlines()]
    texts = [message["content"] for row in rows for message in row["prompt"] + row["completion"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny_model, "LINES", [*tiny_model.LINES, *texts])
        make(folder / "model")
    return folder


def train(folder: Path, environment: dict[str, str], *more: str, code: int = 0) -> str:
    command = (sys.executable, RECIPE / "train.py", "--config", RECIPE / "qwen3_14b.yaml",
               "--model_name_or_path", "model", *ON_CPU, *more)  # fmt: skip
    return called(command, folder, environment, (code,))


@pytest.fixture(scope="module")
def judge(folder, environment) -> Path:
    """The model after training of all its weights."""
    train(folder, environment, "--use_peft", "false", "--num_train_epochs", "40", "--output_dir", "judge")
    return folder / "judge"


def losses(folder: Path) -> list[float]:
    history = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    return [item["loss"] for item in history if "loss" in item]


def test_the_loss_on_the_verdict_falls_and_a_row_that_does_not_fit_stops_the_training(
    judge, folder, environment
):
    found = losses(judge)
    assert found[0] > 3 and sum(found[-4:]) / 4 < 0.1
    said = train(folder, environment, "--max_length", "100", "--output_dir", "short", code=1)
    assert "rows are longer than max_length 100: raise it to" in said
    assert not (folder / "short").exists()


@pytest.mark.nightly
def test_the_served_judge_decides_its_training_points_as_the_experts_do(judge, folder, served, environment):
    held_out = {json.loads(line)["id"] for line in (folder / "judge_data/test_cases.jsonl").open()}
    trained_on = [item for item in map(case, range(12)) if item["id"] not in held_out]
    write_jsonl(folder / "trained_on.jsonl", trained_on)
    with served(judge, "judge", context=4096) as address:
        one = {"name": "judge", "model": "judge", "base_url": f"{address}/v1", "max_tokens": 40}
        (folder / "jury.yaml").write_text(yaml.safe_dump({"judges": [one]}))
        command = ("medtasks", "study", "judge", "trained_on.jsonl", "--jury", "jury.yaml")
        called(command, folder, environment)
    found = json.loads((folder / "judge_eval" / "judge_eval.json").read_text())["judge"]
    assert (found["points"], found["missing"]) == (2 * len(trained_on), 0)
    assert found["cohen_kappa"]["interval_low"] > 0 and found["accuracy"]["interval_low"] > 0.5
