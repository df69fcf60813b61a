"""Published models without a run of one's own."""

import csv

import pytest

from medtasks_ext.results.published import reference_folder
from tests.report.made import write_run


def test_a_report_of_published_models_alone_has_the_printed_figures(medtasks, tmp_path):
    outcome = medtasks("report", "--published", "bridge", "-o", "out", "--strategy", "zero_shot")
    assert outcome.code == 0 and "the best of 98 published models" in outcome.out
    with (reference_folder() / "bridge_overall.csv").open(encoding="utf-8") as file:
        printed = {row["model"]: row for row in csv.DictReader(file)}
    with (tmp_path / "out" / "groups.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["axis"] == "suite" and row["value"] == "bridge"]
    known = {row["model"]: row for row in rows if row["model"] in printed}
    assert len(known) == 95
    for model, row in known.items():
        low = float(printed[model]["zero_shot_ci_low"]) / 100
        assert float(row["paper_interval_low"]) == pytest.approx(low) and not row["interval_low"]
    assert "0.4484 [0.441, 0.456]p" in outcome.out and "]p: the interval that" in outcome.out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Published results: BRIDGE" in page


def test_a_report_of_nothing_is_refused(medtasks):
    outcome = medtasks("report")
    assert outcome.code == 2 and "no runs are named" in outcome.err and "--published all" in outcome.err


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (("gpt-4o", "nonesuch-9000"), "no run and no published model is called 'nonesuch-9000'"),
        (("gpt-4o", "o1-7"), "similar: HuatuoGPT-o1-"),
        (("gpt4o", "o1"), "similar: GPT-4o"),
        (("GPT-4", "gpt-oss-20b"), "have no scored task in common"),
    ],
)
def test_a_name_that_no_paper_has_is_refused_with_similar_ones(medtasks, models, message):
    outcome = medtasks("compare", *models)
    assert outcome.code == 2 and message in outcome.err


def test_a_name_that_is_no_folder_and_no_model_is_refused_beside_a_run(medtasks, tmp_path):
    write_run(tmp_path / "run", "ORG/mine", {"bridge_mednli": [1.0] * 3})
    outcome = medtasks("compare", str(tmp_path / "run"), str(tmp_path / "other"))
    assert outcome.code == 2 and "no run and no published model is called" in outcome.err
