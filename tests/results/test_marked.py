"""A run that was changed afterwards is marked wherever it is read; rows that it lacks are said."""

import pytest

from tests.report.made import write_run
from tests.run_files import edited, results_file

TASK = "bridge_chip_ctc"


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path):
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    return tmp_path / "run"


def test_a_planted_score_is_marked_wherever_it_is_read_and_published_nowhere(medtasks, run, tmp_path):
    with edited(run, TASK) as content:
        content["metrics"]["score"] = 0.99
        content["intervals"]["score"] |= {"interval_low": 0.9, "interval_high": 1.0}
    file = results_file(run)
    mark = f"changed since the run ended: {file.name}"
    outcome = medtasks("report", "run", "--published", "none", "-o", "report")
    assert mark in outcome.text
    assert mark in (tmp_path / "report" / "report.html").read_text()
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "other").code == 0
    assert mark in medtasks("compare", "run", "other").text
    for place in ("run", f"run/{file.name}"):
        assert mark in medtasks("report", place, "--published", "none", "-o", "named").text, place
        for command in (
            ("card", place, "--parts", "-o", "card"),
            ("card", "--layout", "medtasks", place, "-o", "s/ORG/random-label/2026-01-01"),
        ):
            refused = medtasks(*command)
            assert refused.code == 2 and file.name in refused.text
    refused = medtasks("card", "run", "--layout", "bridge", "--parts", "-o", "e")
    assert refused.code == 2 and mark in refused.text
    assert not any((tmp_path / name).exists() for name in ("card", "s", "e"))
    assert mark in medtasks("view", "run", TASK, "0").text
    assert mark in medtasks("study", "gold", "run", "--jury", "local", "--dry-run").text
    assert mark in medtasks("study", "forms", "run", "other", "--tasks", TASK, "-o", "forms").text


SCORES = [1.0] * 30 + [0.0] * 10
#: rows that the suite states
STATED = len(SCORES) + 3


@pytest.fixture
def told(medtasks, tmp_path):
    """What the report says of a run with so many rows left out or taken for examples."""

    def call(**rows):
        record = {"conditions": {"n_of_suite": STATED}}
        write_run(tmp_path / "run", "ORG/a", {TASK: SCORES}, loaded=rows, record=record)
        return " ".join(medtasks("report", "run", "--published", "none").out.split())

    return call


@pytest.mark.parametrize("rows", [{"n_dropped": 3}, {"n_held_out": 3}], ids=["blank gold", "examples"])
def test_rows_left_out_for_a_blank_gold_and_rows_for_examples_are_accounted_for(told, rows):
    """The suite left out the first kind itself, so that its score stands on the same rows."""
    said = told(**rows)
    assert "rows are missing" not in said and "rows in part" not in said


@pytest.mark.parametrize("rows", [{}, {"n_dropped": 2}, {"n_held_out": 1}, {"n_without_gold": 3}])
def test_rows_that_are_not_here_make_a_score_one_of_a_part(told, rows):
    n = len(SCORES) + rows.get("n_dropped", 0) + rows.get("n_held_out", 0)
    said = told(**rows)
    assert "rows in part" in said
    assert f"rows are missing here of {TASK} ({TASK}: {n} of the suite's {STATED} rows)" in said
