"""Runs on invented local rows of four kinds of data, and submissions of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from medtasks_ext.rows.folders import FETCHED
from medtasks_ext.rows.remote import RemoteFile
from tests.conftest import ROOT, write_jsonl

#: open and of a mean, open and of counts, gated and of counts, private and of a mean
OPEN_MEAN, OPEN_COUNTS = "medhelm_medqa", "bridge_ade_drug_dosage"
CLOSED_COUNTS, CLOSED_MEAN = "bridge_cas_label", "medhelm_hospice_referral"
TASKS = (OPEN_MEAN, OPEN_COUNTS, CLOSED_COUNTS, CLOSED_MEAN)
ADDRESS = "https://example.org/run.answers.parquet"
PLACE = "submissions/Org/random-label/2026-05-01"
#: what must not be found in any file of a submission
SECRET_TEXT = "Frau Quendel"


@pytest.fixture
def rows(data_dir):
    """Invented rows in place of those of the four datasets; texts and ids name a patient."""
    for name, question in (("hospice_referral", "prompt"), ("medqa", "question")):
        items = [
            {question: f"{SECRET_TEXT} {n}?", "context": f"{SECRET_TEXT} {n}", "label": "AB"[n % 2]}
            for n in range(12)
        ]
        if name == "medqa":
            options = {letter: f"{letter} {SECRET_TEXT}" for letter in "ABCD"}
            items = [
                {"question": item["question"], "options": options, "answer_idx": item["label"]}
                for item in items
            ]
        write_jsonl(data_dir / "medhelm" / name / "test.jsonl", items)
    (data_dir / "bridge" / "example").mkdir(parents=True)
    for name in ("ADE-Drug dosage", "CAS-label"):
        _lay(data_dir / "bridge", name)
    return data_dir


def _lay(folder: Path, name: str) -> None:
    """Put the sample rows of a dataset where the suite's own files belong, as a user has them."""
    source = ROOT / "tasks" / "bridge" / name.lower().replace(" ", "_").replace("-", "_") / "sample.jsonl"
    split: dict[str, list[dict[str, object]]] = {"test": [], "fewshot": []}
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        split[row.pop("_split")].append({**row, "id": f"{SECRET_TEXT} {row['id']}"})
    for file, rows in ((f"{name}.SFT", split["test"]), (f"example/{name}.example", split["fewshot"])):
        (folder / f"{file}.json").write_text(json.dumps(rows), encoding="utf-8")


@pytest.fixture
def run(medtasks, rows, tmp_path):
    """Calls `medtasks run` on these rows; returns the run's folder."""

    def call(
        folder: str = "run", *more: str, tasks: str = ",".join(TASKS), model: str = "random-label"
    ) -> Path:
        outcome = medtasks("run", "--model", model, "--tasks", tasks, "--output_path", folder, *more)
        assert outcome.code == 0, outcome.err
        return tmp_path / folder

    return call


@pytest.fixture
def submission(medtasks, run, tmp_path, carry_answers) -> Path:
    """A submission of such a run, whose answers can be had."""
    run()
    outcome = medtasks("submit", "run", "-o", PLACE, "--address", ADDRESS)
    assert outcome.code == 0, outcome.text
    carry_answers(tmp_path / "run.answers.parquet")
    return tmp_path / PLACE


@pytest.fixture
def carry_answers(data_dir):
    """Puts a file of answers where a download of its address would be found."""

    def carry(file: Path, address: str = ADDRESS) -> Path:
        place = data_dir / FETCHED / RemoteFile(address, "").carried
        place.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(file, place))

    return carry
