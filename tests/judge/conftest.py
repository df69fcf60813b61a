"""Runs of judged tasks, and a server whose behaviour is scripted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from medtasks_ext.engines import servers
from tests.conftest import ROOT, declare_suites, rewrite_answers, write_jsonl
from tests.judge.server import Server
from tests.run_files import result_of

AXES = {
    "accuracy": "Is everything in it correct?",
    "completeness": "Does it answer all parts?",
    "clarity": "Is it easy to follow?",
}
NOTE_AXES = {"accuracy": AXES["accuracy"], "structure": "Are all parts in place?", "clarity": AXES["clarity"]}

_TASK = """
class: !function medtasks_ext.task.MedicalTask
task: medhelm_{name}
dataset: medhelm/{name}
rows:
  schemas:
    - columns: {{question: what is asked, reply: the reference}}
  identity: question
prompt:
  instruction: "Answer the question. {{{{ strategy }}}}"
  input: "{{{{ question }}}}"
  target: "{target}"
answer: {{kind: free_text, reference: question}}
judge:
  protocol: likert_jury
  question: "{{{{ question }}}}"
  role: a medical expert who judges replies to patients
  axes: {axes}
  show_gold: {show_gold}
about:
  name: medhelm_{name}
  summary: Answer a question.
  language: en
  task_type: question_answering
  document_types: [general_ehr_note]
  specialties: [general]
  stage: initial_assessment
  axes:
    category: patient_communication
    subcategory: providing_patient_education_resources
  access: {access}
  url: https://example.org
  licence: none
  citation: none
  n_test: 4
  primary_metric: jury_1_to_5
metadata: {{version: 1-A}}
"""


def make_task(root: Path, name: str, *, gold: bool = True, access: str = "open") -> None:
    """A judged task below a tasks folder. Without gold it is like NoteExtract: other axes, no reference."""
    folder = root / "medhelm" / name
    folder.mkdir(parents=True)
    text = _TASK.format(
        name=name,
        access=access,
        target="{{ reply }}" if gold else "",
        show_gold=str(gold).lower(),
        axes=json.dumps(AXES if gold else NOTE_AXES),
    )
    (folder / "task.yaml").write_text(text)
    declare_suites(root)


def make_rows(data: Path, name: str, rows: list[dict[str, Any]]) -> None:
    write_jsonl(data / "medhelm" / name / "test.jsonl", rows)


def rows(n: int) -> list[dict[str, Any]]:
    """Questions d0, d1, ... with their references."""
    return [
        {"id": f"d{i}", "question": f"Question number {i}?", "reply": f"Reference reply {i}."}
        for i in range(n)
    ]


def process(*arguments, cwd):
    """`medtasks judge` in a process of its own, which a test may stop."""
    return subprocess.Popen(
        [sys.executable, "-m", "medtasks_ext", "judge", *map(str, arguments)],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


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
