"""Transformers models through lm-eval, on the CPU: the size of batches, and processes that share a run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.tiny_model import make

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


def batches(folder: Path, rank: int = 0) -> list[str]:
    """What the model noted."""
    path = folder / f"BATCHES.rank{rank}"
    return path.read_text().split() if path.is_file() else []


def answers(folder: Path) -> dict[tuple[str, str], str]:
    """Answers by task and document; each is there once."""
    found: dict[tuple[str, str], str] = {}
    for task in TASKS:
        for path in sorted((folder / "run/responses").glob(f"{task}.*jsonl")):
            for line in map(json.loads, path.read_text().splitlines()):
                assert (task, line["document"]) not in found
                found[task, line["document"]] = line["response"]
    return found


def results(folder: Path) -> dict[str, dict]:
    """Metrics by task."""
    return json.loads((folder / "run/results.json").read_text())["results"]


NOTED = [sys.executable, "-m", "tests.engine.hf"]
#: two processes; `--multi_gpu` is the kind of launch that starts several, on a CPU, too
TWO = ["accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
       "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0", "-m"]  # fmt: skip


@pytest.fixture(scope="module")
def whole(model, environment, tmp_path_factory) -> Path:
    """The folder of a run in one process."""
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


def test_two_processes_share_all_documents_and_the_slow_one_gets_less(whole, model, environment, tmp_path):
    said = run([*TWO, "tests.engine.hf", *flags(model)], tmp_path, {**environment, "HF_SLOW": "1:8"})
    quick, slow = (sum(map(int, batches(tmp_path, rank))) for rank in (0, 1))
    assert quick + slow == len(answers(whole))
    assert 0 < slow < quick
    assert answers(tmp_path) == answers(whole)
    assert results(tmp_path) == results(whole)
    assert not list((tmp_path / "run/prompts").iterdir())
    assert said.count("preflight: asking") == 1
    assert all(f"{task}: done" in said for task in TASKS)


@pytest.mark.nightly
def test_two_processes_that_were_killed_go_on_with_what_has_no_answer(whole, model, environment, tmp_path):
    import psutil

    command = [*TWO, "tests.engine.hf", *flags(model)]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (batches(tmp_path, 1) and len(batches(tmp_path)) > 2):
        assert process.poll() is None
        time.sleep(0.02)
    for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        one.kill()
    process.wait()
    kept = answers(tmp_path)
    for path in tmp_path.glob("BATCHES.*"):
        path.unlink()
    assert len(kept) < len(answers(whole))
    run(command, tmp_path, environment)
    assert sum(int(rows) for rank in (0, 1) for rows in batches(tmp_path, rank)) + len(kept) == len(
        answers(whole)
    )
    assert answers(tmp_path) == answers(whole)
    assert results(tmp_path) == results(whole)
