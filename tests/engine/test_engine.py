"""The real vLLM engine on the CPU, with a tiny random model: the literal command, a killed run, an API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from medtasks_ext.run.store import Follower
from tests.engine.tiny_model import TEMPLATE_WITHOUT_SYSTEM, make
from tests.run_files import results_of, samples_file

pytestmark = pytest.mark.engine

GROUPS = ["bridge_zh", "medhelm_admin"]
ARGUMENTS = "dtype=float32,max_model_len=16384,enforce_eager=True"
FLAGS = ["--apply_chat_template", "--gen_kwargs", "max_gen_toks=16"]


@pytest.fixture(scope="session")
def environment(environment) -> dict[str, str]:
    return {**environment, "MEDTASKS_DATA": "sample"}


def run(command: list[object], cwd: Path, environment: dict[str, str]) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def literal(tiny, environment, tmp_path_factory) -> tuple[str, dict]:
    """README's lm_eval command, zero-shot and 5-shot in one call."""
    folder = tmp_path_factory.mktemp("literal")
    names = [*GROUPS, *(f"{name}_5shot" for name in GROUPS)]
    model_args = f"pretrained={tiny},{ARGUMENTS}"
    command = ["lm_eval", "--tasks", ",".join(names), "--model", "vllm", "--model_args", model_args,
               "--batch_size", "auto", *FLAGS]  # fmt: skip
    printed = run([*command, "--output_path", folder, "--log_samples"], folder, environment)
    return printed, json.loads(next(folder.rglob("results_*.json")).read_text())


def roll_up_rows(printed: str) -> list[tuple[str, str]]:
    """(group, metric) of lm-eval's table of groups, which writes a group's name once."""
    rows, name = [], ""
    for line in printed.split("Groups")[-1].splitlines()[2:]:
        cells = [cell.strip(" -") for cell in line.strip("|").split("|")]
        if len(cells) > 5:
            name = cells[0] or name
            rows.append((name, cells[4]))
    return rows


def test_the_literal_command_prints_one_roll_up_row_per_group(literal):
    printed, results = literal
    rows = roll_up_rows(printed)
    for name in [*GROUPS, *(f"{group}_5shot" for group in GROUPS)]:
        assert rows.count((name, "score")) == 1, printed
        tasks = results["group_subtasks"][name]
        mean = sum(results["results"][task]["score,answer"] for task in tasks) / len(tasks)
        assert results["groups"][name]["score,answer"] == pytest.approx(mean)
        assert results["groups"][name]["SAMPLE_DATA,answer"] == 1
    assert len(results["group_subtasks"]["bridge_zh"]) == 16
    assert len(results["group_subtasks"]["medhelm_admin_5shot"]) == 5


def test_the_five_shot_prompt_is_a_conversation_in_the_models_own_template(literal):
    _, results = literal
    assert results["configs"]["bridge_mie_5shot"]["num_fewshot"] == 5
    assert results["configs"]["bridge_mie_5shot"]["metadata"]["medtasks"]["loaded"]["origin"] == "sample"
    assert results["n-shot"]["bridge_mie_5shot"] == 5


def counted(folder: Path) -> dict[str, list[str]]:
    """Task -> keys of the requests that are answered."""
    found: dict[str, list[str]] = {}
    for row in Follower(folder).rows("answer"):
        found.setdefault(row["task"], []).append(row["key"])
    return found


def states(folder: Path) -> dict[str, dict]:
    return json.loads((folder / "run.json").read_text())["tasks"]


def test_a_run_killed_in_the_middle_of_generation_goes_on_and_gives_the_same(
    literal, tiny, environment, tmp_path
):
    command = ["medtasks", "run", "--tasks", ",".join(GROUPS), "--model", "vllm",
               "--model_args", f"pretrained={tiny},{ARGUMENTS}", *FLAGS, "--output_path", "run"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    folder = tmp_path / "run"
    while sum(map(len, counted(folder).values())) < 40:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = counted(folder)
    done_before = {task for task, state in states(folder).items() if state["state"] == "done"}
    printed = run(command, tmp_path, environment)
    complete, after = counted(folder), states(folder)
    assert len(done_before) < len(complete)
    for task, keys in complete.items():
        stored = kept.get(task, [])
        assert keys[: len(stored)] == stored
        if task not in done_before:  # `generated` counts what the model was asked for
            assert after[task]["generated"] == len(keys) - len(stored), task
    _, results = literal
    scored = results_of(folder)["results"]
    for group in GROUPS:
        for task in results["group_subtasks"][group]:
            assert scored[task]["score,answer"] == pytest.approx(results["results"][task]["score,answer"]), (
                task
            )
    rows = [line.split()[0] for line in printed.splitlines() if line.strip().startswith(tuple(GROUPS))]
    assert rows == GROUPS


def test_a_template_that_refuses_a_system_turn_gets_the_instruction_in_the_user_turn(environment, tmp_path):
    folder = make(tmp_path / "model", template=TEMPLATE_WITHOUT_SYSTEM)
    run(
        ["medtasks", "run", "--tasks", "bridge_chip_ctc_5shot", "--model", "hf",
         "--device", "cpu", "--model_args", f"pretrained={folder},dtype=float32", *FLAGS, "--limit", "2",
         "--output_path", "run"],
        tmp_path,
        environment,
    )  # fmt: skip
    sample = json.loads(samples_file(tmp_path / "run", "bridge_chip_ctc_5shot").read_bytes().splitlines()[0])
    prompt = sample["arguments"]["gen_args_0"]["arg_0"]
    assert "<|system|>" not in prompt
    assert prompt.startswith("<|user|>The input is a clinical text") and prompt.count("Input:\n") == 6


def test_an_openai_compatible_server_is_evaluated_and_asked_once_per_document(server, environment, tmp_path):
    # long records would not fit this server's context, and no API says how to cut them
    tasks = {"bridge_mie_cot", "medhelm_bmt_status", "medhelm_mimic_iv_billing_code",
             "medhelm_medconfinfo", "medhelm_privacy_detection"}  # fmt: skip
    command = [
        "medtasks",
        "run",
        "--tasks",
        ",".join(sorted(tasks)),
        *api(f"{server}/v1/chat/completions"),
        *FLAGS,
        "--output_path",
        "run",
    ]
    assert "medhelm_privacy_detection" in run(command, tmp_path, environment)
    assert set(counted(tmp_path / "run")) == tasks
    before = (tmp_path / "run/answers.jsonl").read_bytes()
    run(command, tmp_path, environment)
    assert (tmp_path / "run/answers.jsonl").read_bytes() == before


class HangsUp(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that answers a number of requests and then closes every connection."""

    left = 0
    asked = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked += 1
        if type(self).left <= 0:
            self.close_connection = True
            return
        type(self).left -= 1
        answer = json.dumps(
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": "A"}}]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def api(url: str, **more: object) -> list[str]:
    arguments = {"model": "tiny", "base_url": url, "num_concurrent": 2, **more}
    return [
        "--model",
        "local-chat-completions",
        "--model_args",
        ",".join(f"{k}={v}" for k, v in arguments.items()),
    ]


def test_an_endpoint_that_hangs_up_costs_no_answer_that_was_paid_for(environment, tmp_path):
    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), HangsUp)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    model = api(f"http://127.0.0.1:{endpoint.server_port}/v1/chat/completions", max_retries=1)
    command = [
        "medtasks",
        "run",
        "--tasks",
        "medhelm_hospice_referral",
        *model,
        *FLAGS,
        "--output_path",
        "run",
    ]
    HangsUp.left = 4
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "✗ medhelm_hospice_referral" in done.stderr and "Traceback" not in done.stderr
    kept = counted(tmp_path / "run")["medhelm_hospice_referral"]
    assert len(kept) == 4
    HangsUp.left, HangsUp.asked = 100, 0
    run(command, tmp_path, environment)
    endpoint.shutdown()
    complete = counted(tmp_path / "run")["medhelm_hospice_referral"]
    assert complete[:4] == kept and HangsUp.asked == len(complete) - 4


def test_an_endpoint_that_is_down_is_said_before_anything_runs(environment, tmp_path):
    model = api("http://127.0.0.1:9/v1/chat/completions")
    command = [
        "medtasks",
        "run",
        "--tasks",
        "medhelm_hospice_referral",
        *model,
        *FLAGS,
        "--output_path",
        "run",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no server answers at http://127.0.0.1:9" in done.stderr and "Traceback" not in done.stderr
