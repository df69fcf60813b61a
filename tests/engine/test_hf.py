"""Transformers models through lm-eval, on the CPU: the size of batches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import outcomes
from tests.engine.tiny_model import make
from tests.run_files import results_of

pytestmark = pytest.mark.engine

TASKS = ["bridge_chip_ctc", "medhelm_hospice_referral", "mlb_cmexam"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("model"), layers=1, ends=True)


@pytest.fixture(scope="session")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample", "ACCELERATE_USE_CPU": "true"}


def flags(model: Path, *, kind: str = "hf-noted") -> list[str]:
    """Flags of a run of all tasks."""
    return ["run", "--tasks", ",".join(TASKS), "--model", kind, "--device", "cpu",
            "--model_args", f"pretrained={model},dtype=float32", "--batch_size", "auto",
            "--apply_chat_template", "--gen_kwargs", "max_gen_toks=48", "--output_path", "run"]  # fmt: skip


def run(command: list[str], cwd: Path, environment: dict[str, str], code: int = 0) -> str:
    """What a command said."""
    cwd.mkdir(exist_ok=True)
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, said[-6000:]
    return said


def batches(folder: Path) -> list[str]:
    """What the model noted."""
    path = folder / "BATCHES"
    return path.read_text().split() if path.is_file() else []


def answers(folder: Path) -> dict[tuple[str, str], str]:
    """Answers by task and document; each is there once."""
    found: dict[tuple[str, str], str] = {}
    for row in outcomes(folder / "run"):
        assert (row["task"], row["document"]) not in found
        found[row["task"], row["document"]] = row["text"]
    return found


def results(folder: Path) -> dict[str, dict]:
    """Metrics by task."""
    return results_of(folder / "run")["results"]


NOTED = [sys.executable, "-m", "tests.engine.hf"]


@pytest.fixture(scope="module")
def whole(model, environment, tmp_path_factory) -> Path:
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("whole")
    run([*NOTED, *flags(model)], folder, environment)
    return folder


def test_the_size_of_batches_is_found_once_for_all_tasks_and_answers_stay_the_same(
    whole, model, environment, tmp_path
):
    said = run([*NOTED, *flags(model)], tmp_path / "small", {**environment, "HF_ROWS": "3"})
    one_by_one = [*flags(model, kind="hf"), "--batch_size", "1"]
    run([sys.executable, "-m", "medtasks_ext", *one_by_one], tmp_path / "single", environment)
    small = batches(tmp_path / "small")
    assert "search" not in batches(whole) + small
    assert [rows for rows in small if int(rows) > 3] == ["8", "4"]
    assert said.count("the memory does not hold") == 2
    assert answers(whole) == answers(tmp_path / "small") == answers(tmp_path / "single")
    assert results(whole) == results(tmp_path / "small") == results(tmp_path / "single")
