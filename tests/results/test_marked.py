"""A run that was changed after it was written is marked wherever it is read, and published nowhere."""

import csv
import json

import pytest

from medtasks_ext.runs.seal import look

TASK = "bridge_chip_ctc"


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path):
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    return tmp_path / "run"


def planted(run):
    """Another score in the result, as the review planted it; the size stays."""
    file = run / "tasks" / f"{TASK}.json"
    content = json.loads(file.read_text())
    content["metrics"]["score"] = 0.99
    content["intervals"]["score"] |= {"interval_low": 0.0, "interval_high": 0.0}
    file.write_text(json.dumps(content))


def test_report_and_store_say_the_root(medtasks, run, tmp_path):
    root = look(run).root.root
    assert medtasks("report", "run", "--published", "none", "-o", "report").code == 0
    assert medtasks("ingest", "run", "--store", "store").code == 0
    assert medtasks("report", "store", "--published", "none", "-o", "again").code == 0
    for folder in ("report", "again"):
        with (tmp_path / folder / "results.csv").open() as file:
            assert {row["root"] for row in csv.DictReader(file)} == {root}
    assert medtasks("card", "run", "--parts", "-o", "card").code == 0
    assert json.loads((tmp_path / "card/medtasks-manifest.json").read_text())["root"] == root
    assert root in (tmp_path / "card/medical-evaluation.md").read_text()


def test_a_planted_score_is_marked_wherever_it_is_read_and_published_nowhere(medtasks, run, tmp_path):
    planted(run)
    mark = f"changed after it was written: tasks/{TASK}.json"
    outcome = medtasks("report", "run", "--published", "none", "-o", "report")
    assert mark in outcome.text and "0 to 0 does not hold the score 0.99" in outcome.text
    assert mark in (tmp_path / "report" / "report.html").read_text()
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "other").code == 0
    assert mark in medtasks("compare", "run", "other").text
    medtasks("ingest", "run", "--store", "store")
    assert medtasks("report", "store", "--published", "none", "-o", "again").code == 0
    assert mark in (tmp_path / "again" / "report.html").read_text()
    for command in (("card", "run", "--parts", "-o", "card"), ("submit", "run", "-o", "s/ORG/M/2026-01-01")):
        refused = medtasks(*command)
        assert refused.code == 2 and f"tasks/{TASK}.json" in refused.text
    assert not (tmp_path / "card").exists() and not (tmp_path / "s").exists()


def test_no_card_is_written_of_an_open_folder(medtasks, run, tmp_path):
    with (run / "seal.jsonl").open("a") as file:
        file.write(json.dumps({"file": "results.json", "bytes": 1, "sha256": "0" * 64}) + "\n")
    refused = medtasks("card", "run", "--parts", "-o", "card")
    assert refused.code == 2 and "is open" in refused.text
    assert medtasks("report", "run", "--published", "none", "-o", "r").code == 0
    assert "not sealed: a call is under way" in (tmp_path / "r" / "report.html").read_text()
