"""Batch files and the real vLLM: `vllm run-batch` for a run, a server behind Ray Data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, outcomes
from tests.run_files import results_of

pytestmark = pytest.mark.engine

TASKS = ("bridge_chip_ctc", "medhelm_mediqa")
LONGEST_ANSWER = 16
FLAGS = ("--data", "sample", "--gen_kwargs", f"max_gen_toks={LONGEST_ANSWER}", "--output_path", "run")
CHAT = ("--apply_chat_template", "--model", "local-chat-completions", "--model_args", "model=tiny")


Call = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("batch")


@pytest.fixture(scope="module")
def call(environment, folder) -> Call:
    """Run a command in the folder; its exit code must be the one that is given."""

    def run(*command: object, code: int = 0) -> str:
        done = subprocess.run(
            [*map(str, command)], cwd=folder, env={**environment, "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-6000:]
        return done.stdout + done.stderr

    return run


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def run_batch(call: Call, model: Path, file: str, context: int) -> str:
    """`vllm run-batch`; returns the file of results."""
    results = file.removesuffix(".jsonl") + ".results.jsonl"
    call("vllm", "run-batch", "-i", file, "-o", results, "--model", model, "--served-model-name", "tiny",
         "--dtype", "float32", "--enforce-eager", "--max-model-len", context)  # fmt: skip
    return results


def stored(folder: Path) -> list[dict]:
    return outcomes(folder, "", "answer")


ASKED = ("medtasks", "run", "--tasks", ",".join(TASKS), *CHAT, *FLAGS)


@pytest.fixture(scope="module")
def written(call, tiny, folder) -> list[dict]:
    """The requests of a run, of which those that fit into a short context have their answers."""
    from transformers import AutoTokenizer

    call(*ASKED, "--to-batch", "requests.jsonl")
    written = lines(folder / "requests.jsonl")
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    template = {"add_generation_prompt": True, "return_dict": False}
    sizes = sorted(
        len(tokenizer.apply_chat_template(line["body"]["messages"], **template)) for line in written
    )
    context = sizes[len(sizes) // 2] + LONGEST_ANSWER
    room = [context - size for size in sizes]
    results = run_batch(call, tiny, "requests.jsonl", context)
    said = call(*ASKED, "--from-batch", results, code=1)
    # versions differ in whether an answer that has less room than its budget is refused or cut
    fit = sum(item["response"]["status_code"] == 200 for item in lines(folder / results))
    assert sum(left >= LONGEST_ANSWER for left in room) <= fit <= sum(left > 0 for left in room)
    assert f"{fit} of {fit} answers are new" in said and 0 < fit < len(written)
    assert f"{len(written) - fit} results: prompt and answer do not fit the model's context" in said
    return written


@pytest.fixture(scope="module")
def answered(call, tiny, folder, written) -> str:
    """The results of what did not fit."""
    call(*ASKED, "--to-batch", "rest.jsonl")
    assert len(lines(folder / "rest.jsonl")) == len(written) - len(stored(folder / "run"))
    return run_batch(call, tiny, "rest.jsonl", 16384)


def test_what_did_not_fit_is_asked_in_a_second_file_and_the_run_is_scored(call, folder, written, answered):
    left = len(written) - len(stored(folder / "run"))
    assert f"{left} of {left} answers are new" in call(*ASKED, "--from-batch", answered)
    answers = stored(folder / "run")
    assert {record["key"] for record in answers} == {line["custom_id"] for line in written}
    for record in answers:
        assert record["model"] == "tiny" and record["request_id"] and record["finish"] in ("length", "stop")
        assert 0 < record["usage"]["completion"] <= LONGEST_ANSWER < record["usage"]["prompt"]
    scored = results_of(folder / "run")["results"]
    assert set(scored) == set(TASKS)
    assert "nothing is left to ask" in call(*ASKED, "--to-batch", "none.jsonl")


@pytest.mark.nightly
def test_the_program_of_the_page_asks_a_server_through_a_ray_cluster(call, tiny, server, folder):
    pytest.importorskip("ray", reason="make_engine_env.sh installs it")
    program = ROOT / "model_configs" / "ask_servers.py"
    kinds = {
        "conversations": CHAT,
        "texts": ("--model", "local-completions", "--model_args", f"model={tiny},max_length=16384"),
    }
    for name, kind in kinds.items():
        flags = (*FLAGS[:-1], name)
        asked = ("medtasks", "run", "--tasks", ",".join(TASKS), *kind, *flags)
        call(*asked, "--to-batch", f"{name}.jsonl")
        call(sys.executable, program, f"{name}.jsonl", f"{name}.results.jsonl", server)
        said = call(*asked, "--from-batch", f"{name}.results.jsonl")
        written = lines(folder / f"{name}.jsonl")
        assert f"{len(written)} of {len(written)} answers are new" in said
        answers = stored(folder / name)
        assert {record["key"] for record in answers} == {line["custom_id"] for line in written}
        assert all(record["usage"]["completion"] > 0 for record in answers)
