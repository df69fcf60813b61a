"""Batch files and the real vLLM: `vllm run-batch` for a run and a jury, a server behind Ray Data."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.engine.tiny_model import make

pytestmark = pytest.mark.engine

TASKS = ("bridge_chip_ctc", "medhelm_mediqa")
LONGEST_ANSWER = 16
FLAGS = ("--data", "sample", "--gen_kwargs", f"max_gen_toks={LONGEST_ANSWER}", "--output_path", "run")
CHAT = ("--apply_chat_template", "--model", "local-chat-completions", "--model_args", "model=tiny")
#: what a busy machine may take
SECONDS = 1800


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("model"))


@pytest.fixture
def call(environment, tmp_path):
    """Run a command in an empty folder; its exit code must be the one that is given."""

    def run(*command: object, code: int = 0) -> str:
        done = subprocess.run(
            [*map(str, command)], cwd=tmp_path, env={**environment, "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-6000:]
        return done.stdout + done.stderr

    return run


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def answer_file(call, model: Path, file: str, context: int) -> str:
    """`vllm run-batch` as `medtasks requests` prints it; returns the file of results."""
    results = file.removesuffix(".jsonl") + ".results.jsonl"
    call("vllm", "run-batch", "-i", file, "-o", results, "--model", model, "--served-model-name", "tiny",
         "--dtype", "float32", "--enforce-eager", "--max-model-len", context)  # fmt: skip
    return results


def stored(folder: Path) -> list[dict]:
    return [record for task in TASKS for record in lines(folder / "responses" / f"{task}.jsonl")]


def test_a_run_through_run_batch_and_what_did_not_fit_in_a_second_file(call, model, tmp_path):
    from transformers import AutoTokenizer

    requests = ("medtasks", "requests", "--tasks", ",".join(TASKS), *CHAT, *FLAGS)
    assert "vllm run-batch -i requests.jsonl -o requests.results.jsonl --model tiny" in call(*requests)
    written = lines(tmp_path / "requests.jsonl")
    tokenizer = AutoTokenizer.from_pretrained(model)
    template = {"add_generation_prompt": True, "return_dict": False}
    sizes = sorted(
        len(tokenizer.apply_chat_template(line["body"]["messages"], **template)) for line in written
    )
    context = sizes[len(sizes) // 2] + LONGEST_ANSWER
    room = [context - size for size in sizes]
    results = answer_file(call, model, "requests.jsonl", context)
    said = call("medtasks", "responses", "run", results, code=1)
    # versions differ in whether an answer that has less room than its budget is refused or cut
    fit = sum(item["response"]["status_code"] == 200 for item in lines(tmp_path / results))
    assert sum(left >= LONGEST_ANSWER for left in room) <= fit <= sum(left > 0 for left in room)
    assert f"{fit} new answers, {len(written) - fit} new faults" in said and 0 < fit < len(written)
    faults = [record["fault"] for record in stored(tmp_path / "run") if "fault" in record]
    assert set(faults) == {"too_long"} and len(faults) == len(written) - fit
    call(*requests)
    rest = lines(tmp_path / "requests.jsonl")
    assert len(rest) == len(written) - fit
    said = call("medtasks", "responses", "run", answer_file(call, model, "requests.jsonl", 16384))
    assert f"{len(rest)} new answers" in said
    answers = [record for record in stored(tmp_path / "run") if "response" in record]
    assert {record["key"] for record in answers} == {line["custom_id"] for line in written}
    for record in answers:
        assert record["model"] == "tiny" and record["request_id"] and record["finish"] in ("length", "stop")
        assert 0 < record["usage"]["completion"] <= LONGEST_ANSWER < record["usage"]["prompt"]
    scored = json.loads((tmp_path / "run" / "results.json").read_text())["results"]
    assert set(scored) == set(TASKS)
    assert "nothing is left to ask" in call(*requests)


def test_a_jury_through_run_batch(call, model, tmp_path):
    # A random model closes a text only by chance: a temperature, and room for the texts to end.
    judge = {"name": "tiny", "model": "tiny", "base_url": "http://localhost:8000/v1", "temperature": 1.0,
             "max_tokens": 8000}  # fmt: skip
    (tmp_path / "jury.yaml").write_text(yaml.safe_dump({"judges": [judge]}))
    call("medtasks", "run", "--tasks", TASKS[1], "--model", "oracle", *FLAGS)
    jury = ("medtasks", "judge", "run", "--jury", "jury.yaml")
    call(*jury, "--requests", "judge.jsonl")
    written = lines(tmp_path / "judge-tiny.jsonl")
    results = answer_file(call, model, "judge-tiny.jsonl", 16384)
    replies = lines(tmp_path / results)
    whole = [item for item in replies if item["response"]["body"]["choices"][0]["finish_reason"] == "stop"]
    said = call(*jury, "--responses", results, code=int(len(whole) < len(written)))
    stored = lines(tmp_path / "run" / "judgements" / f"{TASKS[1]}.jsonl")
    found = [item for item in stored if "verdict" in item]
    assert len(found) == len(whole) > 0  # the schema leaves no other way to fail
    for item in found:
        assert item["usage"]["counted"] and item["usage"]["batch"] and item["usage"]["completion_tokens"] > 0
        assert all(part["score"] in (1, 2, 3, 4, 5) for part in item["verdict"].values())
    assert f"{len(found)}/{len(written)}" in said


def program() -> str:
    """The page's own example."""
    page = (ROOT / "docs" / "large_runs.md").read_text(encoding="utf-8")
    (found,) = [
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "import ray" in block
    ]
    return found


def test_the_pages_program_asks_a_server_through_a_ray_cluster(call, model, served, tmp_path):
    pytest.importorskip("ray", reason="make_engine_env.sh installs it")
    (tmp_path / "ask.py").write_text(program())
    kinds = {
        "conversations": CHAT,
        "texts": ("--model", "local-completions", "--model_args", f"model={model},max_length=16384"),
    }
    with served(model, "tiny", str(model)) as address:
        for name, kind in kinds.items():
            flags = (*FLAGS[:-1], name)
            call("medtasks", "requests", "--tasks", ",".join(TASKS), *kind, *flags, "-o", f"{name}.jsonl")
            call(sys.executable, "ask.py", f"{name}.jsonl", f"{name}.results.jsonl", address)
            said = call("medtasks", "responses", name, f"{name}.results.jsonl")
            written = lines(tmp_path / f"{name}.jsonl")
            assert f"{name}.results.jsonl: {len(written)} new answers\n" in said
            answers = stored(tmp_path / name)
            assert {record["key"] for record in answers} == {line["custom_id"] for line in written}
            assert all(record["usage"]["completion"] > 0 for record in answers)
