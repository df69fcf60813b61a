"""`run --error` with the real engine: the documents and prompts of a full run, and of plain lm_eval."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import outcomes
from tests.engine.tiny_model import make
from tests.run_files import result_of

pytestmark = pytest.mark.engine

TASK = "medhelm_ent_referral"
N = 300


def prompts(folder: Path) -> dict[str, Any]:
    """Document -> prompt, of the samples that a call wrote."""
    [file] = folder.rglob(f"samples_{TASK}*.jsonl")
    samples = map(json.loads, file.open())
    return {sample["doc"]["id"]: sample["arguments"] for sample in samples}


def first_words(arguments: Any) -> str:
    """The prompt among the arguments of a sample, which lm-eval's own files name otherwise."""
    return arguments[0][0] if isinstance(arguments, list) else arguments["gen_args_0"]["arg_0"]


def test_a_part_and_then_the_rest_are_the_documents_and_prompts_of_lm_eval(environment, tmp_path):
    folder = tmp_path / "data" / "medhelm" / "ent_referral"
    folder.mkdir(parents=True)
    for name, n in (("test", N), ("fewshot", 5)):
        made = (
            {
                "id": f"{name}-{i}",
                "prompt": f"Referral {i}?",
                "context": f"{name} {i} ",
                "label": "ABC"[i % 3],
            }
            for i in range(n)
        )
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    model = make(tmp_path / "model", ends=True)
    given = f"pretrained={model},dtype=float32,enforce_eager=True,max_model_len=2048,max_num_seqs=32"
    more = ("--model", "vllm", "--model_args", given, "--tasks", TASK, "--gen_kwargs", "max_gen_toks=24")
    environment = {**environment, "MEDTASKS_DATA_DIR": str(tmp_path / "data")}

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [*arguments, *more], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
        return done.stderr

    def result() -> dict[str, Any]:
        found: dict[str, Any] = result_of(tmp_path / "run", TASK)
        return found

    run = ("medtasks", "run", "--no-preflight", "--output_path", "run")
    call(*run, "--error", "10")
    part, estimate = prompts(tmp_path / "run"), result()["estimate"]
    assert len(part) == estimate["asked"] < N == estimate["of"]
    call(*run)
    whole = prompts(tmp_path / "run")
    asked = [row["key"] for row in outcomes(tmp_path / "run", TASK)]
    assert len(asked) == len(set(asked)) == len(whole) == N  # nothing twice
    assert part.items() <= whole.items() and "estimate" not in result()

    call("lm_eval", "run", "--batch_size", "auto", "--log_samples", "--output_path", "plain")
    plain = prompts(tmp_path / "plain")
    assert {key: first_words(item) for key, item in plain.items()} == {
        key: first_words(item) for key, item in whole.items()
    }
