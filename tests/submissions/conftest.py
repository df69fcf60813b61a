"""Runs on invented local rows of four kinds of data, and submissions of them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.report.submissions import About, Submission, TaskResult
from medtasks_ext.results.conditions import of_the_paper
from medtasks_ext.runs.conditions import Conditions
from tests.conftest import command, sample_rows, write_jsonl

#: open and of a mean, open and of counts, gated and of counts, private and of a mean
OPEN_MEAN, OPEN_COUNTS = "medhelm_medqa", "bridge_ade_drug_dosage"
CLOSED_COUNTS, CLOSED_MEAN = "bridge_cas_label", "medhelm_hospice_referral"
TASKS = (OPEN_MEAN, OPEN_COUNTS, CLOSED_COUNTS, CLOSED_MEAN)
PLACE = "submissions/Org/random-label/2026-05-01"
#: what must not be found in any file of a submission
SECRET_TEXT = "Frau Quendel"


@pytest.fixture
def rows(data_dir):
    lay_rows(data_dir)
    return data_dir


def lay_rows(data: Path) -> None:
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
        write_jsonl(data / "medhelm" / name / "test.jsonl", items)
    (data / "bridge" / "example").mkdir(parents=True)
    for name in ("ADE-Drug dosage", "CAS-label"):
        _lay(data / "bridge", name)


def _lay(folder: Path, name: str) -> None:
    """Put the sample rows of a dataset where the suite's own files belong, as a user has them."""
    dataset = "bridge_" + name.lower().replace(" ", "_").replace("-", "_")
    for file, split in ((f"{name}.SFT", "test"), (f"example/{name}.example", "fewshot")):
        rows = [{**row, "id": f"{SECRET_TEXT} {row['id']}"} for row in sample_rows(dataset, split)]
        (folder / f"{file}.json").write_text(json.dumps(rows), encoding="utf-8")


@pytest.fixture
def run(medtasks, rows, tmp_path):
    """Calls `medtasks run` on these rows; returns the run's folder."""

    def call(
        folder: str = "run", *more: str, tasks: str = ",".join(TASKS), model: str = "random-label"
    ) -> Path:
        medtasks.done("run", "--model", model, "--tasks", tasks, "--output_path", folder, *more)
        return tmp_path / folder

    return call


@pytest.fixture(scope="session")
def made_submission(made_once) -> Path:
    """A folder with a run on these rows, its submission."""

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("MEDTASKS_DATA_DIR", str(folder / "data"))
            lay_rows(folder / "data")
            command("run", "--model", "random-label", "--tasks", ",".join(TASKS), "--output_path", "run")
            command("card", "--layout", "medtasks", "run", "-o", PLACE)

    return made_once("submission", fill)


@pytest.fixture
def submission(made_submission, rows, medtasks, tmp_path) -> Path:
    """The submission of such a run, in a folder of one's own."""
    for name in ("run", PLACE):
        shutil.copytree(made_submission / name, tmp_path / name)
    return tmp_path / PLACE


def write_submission(
    root: Path, model: str, score: float, *, suite: str = "bridge", first: int | None = None, **asked: Any
) -> Submission:
    """A submission of the first zero-shot tasks of a suite, or all, asked as in its paper but for `asked`."""
    datasets = [
        item for item in registry().datasets.values() if item.metadata.suite == suite and item.of_paper
    ]
    record = Submission(
        model=model,
        date="2026-05-01",
        about=About(access="open", domain="medical", reasoning="no"),
        run=Conditions(engine="vllm", template=True),
        tasks={item.task("zero_shot"): _task(item, score, asked) for item in datasets[:first]},
    )
    folder = root / model / record.date
    folder.mkdir(parents=True)
    record.write(folder, {})
    return record


def _task(dataset: Any, score: float, asked: dict[str, Any]) -> TaskResult:
    n, paper = dataset.n_documents, of_the_paper(dataset, "zero_shot")
    said = {"wording": "official", "prompt": None, **asked}
    conditions = replace(
        paper, version=dataset.version, origin="local", n_of_suite=n, n=n, n_here=n, **said
    )  # fmt: skip
    return TaskResult(n=n, score=score, interval=(score, score), valid=1.0, conditions=conditions)
