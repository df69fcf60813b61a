"""Small judged tasks and runs, made on the spot."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, declare_suites, write_jsonl

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


# `medtasks judge` in a process of its own, which a test may stop.


def process(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "medtasks_ext", "judge", *map(str, arguments)],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
