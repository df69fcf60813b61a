"""Rows of a suite that are not test rows here: which are accounted for, and which are missing."""

import pytest

from tests.report.made import write_run

TASK = "bridge_chip_ctc"
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


@pytest.mark.parametrize(
    "rows",
    [{"n_dropped": 3}, {"n_held_out": 3}, {"n_dropped": 1, "n_held_out": 2}],
    ids=["blank gold", "examples", "both"],
)
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
