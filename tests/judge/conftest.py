"""Runs of judged tasks, and a server whose behaviour is scripted."""

import json
from pathlib import Path

import pytest
import yaml

from medtasks_ext.engines import servers
from tests.conftest import rewrite_answers
from tests.judge.made import make_rows, make_task, rows
from tests.judge.server import Server
from tests.run_files import result_of


@pytest.fixture
def server():
    with Server() as one:
        yield one


@pytest.fixture(autouse=True)
def quick_pauses(monkeypatch):
    monkeypatch.setattr(servers, "FIRST_PAUSE", 0.001)


@pytest.fixture
def tasks(tmp_path, monkeypatch, data_dir) -> Path:
    """A tasks folder with three judged tasks: with gold, without, and one whose data is gated."""
    root = tmp_path / "tasks"
    make_task(root, "qa")
    make_task(root, "note", gold=False)
    make_task(root, "gated", access="gated")
    for name in ("qa", "note", "gated"):
        make_rows(data_dir, name, rows(6))
    monkeypatch.setenv("MEDTASKS_TASKS_DIR", str(root))
    return root


@pytest.fixture
def run(tasks, medtasks, tmp_path):
    """Make a run folder: `run("qa")` answers a task with its references; answers can be changed."""

    def make(*names: str, folder: str = "run", answers: dict[str, str] | None = None) -> Path:
        named = ",".join(f"medhelm_{name}" for name in names)
        command = ("run", "--model", "oracle", "--tasks", named, "--output_path", folder)
        medtasks.done(*command)
        if answers is not None:
            for name in names:
                rewrite_answers(tmp_path / folder, f"medhelm_{name}", answers)
            assert medtasks("rescore", folder).code == 0
        return tmp_path / folder

    return make


@pytest.fixture
def jury(tmp_path, server):
    def write(*names: str, file: str = "jury.yaml", **settings: object) -> Path:
        judges = [
            {"name": name, "model": name, "base_url": server.url, "max_concurrent": 4, **settings}
            for name in names
        ]
        path = tmp_path / file
        path.write_text(yaml.safe_dump({"judges": judges}))
        return path

    return write


@pytest.fixture
def metrics(tmp_path):
    def read(folder: Path, task: str = "medhelm_qa") -> dict[str, float]:
        return result_of(folder, task)["metrics"]

    return read


def judgements(folder: Path, task: str = "medhelm_qa", kind: str = "ratings") -> list[dict]:
    """The stored judgements of a task, or its lines of another kind: `unreadable`, `fault`, `intent`."""
    path = folder / "judgements" / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    found = [json.loads(line) for line in lines if line.endswith(b"\n")]  # one may be being written
    return [item for item in found if item["task"] == task and (kind in item or item["outcome"] == kind)]
