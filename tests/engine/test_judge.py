"""A jury on the real vLLM engine: one `vllm serve` under several names, tiny random weights."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.engine.conftest import NAMES
from tests.engine.tiny_model import make
from tests.run_files import result_of
from tests.runs.changes import all_named

pytestmark = pytest.mark.engine

TASKS = "medhelm_mediqa"


@pytest.fixture
def run(environment, tmp_path):
    """A run on sample rows, and the `medtasks` command in its folder."""

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["medtasks", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    made = command("run", "--tasks", TASKS, "--data", "sample", "--model", "oracle", "--output_path", "run")
    assert made.returncode == 0, made.stderr
    return command


def jury(folder: Path, server: str, names: Sequence[str] = NAMES) -> None:
    # A random model closes a text only by chance: a temperature, and room for the texts to end.
    judges = [
        {"name": name, "model": name, "base_url": f"{server}/v1", "temperature": 1.0, "max_tokens": 8000,
         "max_concurrent": 2}
        for name in names
    ]  # fmt: skip
    (folder / "jury.yaml").write_text(yaml.safe_dump({"judges": judges}))


def lines(folder: Path) -> list[dict]:
    path = folder / "run" / "judgements" / "answers.jsonl"
    content = path.read_bytes().splitlines() if path.is_file() else []  # a text may hold other separators
    return [json.loads(line) for line in content if line.endswith(b"}")]


def test_a_killed_jury_goes_on_and_its_verdicts_satisfy_the_schema(helm, run, server, environment, tmp_path):
    """In the words of MedHELM, which the random model answers with a text that ends."""
    jury(tmp_path, server)
    process = subprocess.Popen(
        ["medtasks", "judge", "--jury", "jury.yaml"], cwd=tmp_path, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while sum("verdict" in item for item in lines(tmp_path)) < 4:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    kept = {item["key"] for item in lines(tmp_path) if "verdict" in item}
    done = run("judge", "--jury", "jury.yaml")
    assert done.returncode in (0, 1), done.stderr
    found = [item for item in lines(tmp_path) if "verdict" in item]
    keys = [item["key"] for item in found]
    assert len(keys) == len(set(keys)) and kept < set(keys)
    missing = {item["unreadable"] for item in lines(tmp_path) if "unreadable" in item}
    assert missing <= {"reply cut at max_tokens"}  # the schema leaves no other way to fail
    assert {item["judge"] for item in found} == set(NAMES)
    for item in found:
        assert "counted" not in item["usage"] and item["usage"]["completion"] > 0
        assert all(part["score"] in (1, 2, 3, 4, 5) for part in item["verdict"].values())
    for task in TASKS.split(","):
        by_document: dict[str, list[float]] = {}
        for item in (item for item in found if item["task"] == task):
            by_document.setdefault(item["document"], []).extend(item["ratings"].values())
        means = [sum(ratings) / len(ratings) for ratings in by_document.values()]
        stored = result_of(tmp_path / "run", task)["metrics"]
        assert stored["score"] == pytest.approx((sum(means) / len(means) - 1) / 4)
    assert "SAMPLE DATA" in done.stdout


def test_a_model_that_is_not_served_is_said_before_anyone_is_asked(run, server, tmp_path):
    jury(tmp_path, server, ["tiny-a", "tiny-z"])
    done = run("judge", "--jury", "jury.yaml")
    assert done.returncode == 2 and "it has: tiny, tiny-a, tiny-b," in done.stderr
    assert not lines(tmp_path)


# Runs of the real vLLM engine, as it left them and judged: whatever is changed in them is named.


RUN_TASKS = ("bridge_chip_ctc", "medhelm_mediqa")
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
    made = ("run", "--tasks", ",".join(RUN_TASKS), "--data", "sample", "--output_path", "run")
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
