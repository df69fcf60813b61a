"""Runs of the real vLLM engine, as it left them and judged: whatever is changed in them is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.engine.conftest import NAMES
from tests.engine.tiny_model import make
from tests.runs.changes import all_named

pytestmark = pytest.mark.engine

TASKS = ("bridge_chip_ctc", "medhelm_mediqa")
#: Changes to the files of a folder that an earlier version was attacked with.
AT_LEAST = 137


def test_every_change_to_a_run_and_to_its_judgements_is_named(environment, served, tmp_path):
    model = make(tmp_path / "tiny", ends=True)

    def medtasks(*arguments: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["medtasks", *map(str, arguments)], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode in (0, 1), done.stderr
        return done

    of_model = f"pretrained={model},dtype=float32,enforce_eager=True,max_model_len=16384"
    made = ("run", "--tasks", ",".join(TASKS), "--data", "sample", "--output_path", "run")
    medtasks(*made, "--model", "vllm", "--model_args", of_model)
    run: Path = tmp_path / "run"
    changes = all_named(run, tmp_path)
    assert "answers.jsonl" in changes

    with served(model, *NAMES) as address:
        # a reply in the judge's form is rare from random weights: what it fails by is a line as well
        judges = [
            {"name": name, "model": name, "base_url": f"{address}/v1", "temperature": 1.0} for name in NAMES
        ]
        (tmp_path / "jury.yaml").write_text(yaml.safe_dump({"judges": judges}))
        medtasks("judge", "--jury", "jury.yaml")
    of_judged = all_named(run, tmp_path)
    assert "judgements/answers.jsonl" in of_judged
    assert sum(of_judged.values()) >= AT_LEAST
