"""The survey on a taxonomy: what is asked, and the paper's figures from answers that give them."""

import csv
import json

import pytest

from medtasks_ext.registry import registry
from tests.human.conftest import fill, key_of, read

CLINICIANS = 29


@pytest.fixture
def survey(tmp_path, medtasks):
    """Export the survey on MedHELM's taxonomy for some clinicians."""

    def call(experts):
        done = medtasks("human", "export", "medhelm", "--kind", "survey", "--experts", experts, "-o", "forms")
        assert done.code == 0, done.text
        return tmp_path / "forms"

    return call


def test_every_subcategory_is_asked_about_once_in_an_order_of_each_clinician(survey):
    folder = survey(2)
    axis = registry().suites["medhelm"].axes["subcategory"]
    orders = []
    for number in (1, 2):
        header, *rows = read(folder / f"expert_{number}.csv")
        assert header == ["form", "row", "digest", "taxonomy", "item", "asks", "options", "answer [options]"]
        asked = [row for row in rows if row[6].startswith("clinical_decision_support|")]
        orders.append([row[4] for row in asked])
        assert sorted(orders[-1]) == sorted(axis.titles.values()) and not any(row[3] for row in asked)
        assert [row[6] for row in rows[len(asked) :]] == ["1|2|3|4|5", *["free text"] * 6]
    assert orders[0] != orders[1]


def test_answers_that_give_the_papers_figures_give_them(survey, medtasks, tmp_path):
    """96.7 % of all assignments, 4.21 with s.d. 0.675 of 29 clinicians, and comments by lines."""
    folder = survey(CLINICIANS)
    key = key_of(folder)
    intended = key["intended"]
    total = CLINICIANS * len(intended)
    wrong = total - round(0.967 * total)
    stars = [3] * 4 + [4] * 15 + [5] * 10  # the only counts without a 1 or 2 that give mean and s.d.
    missed = 0
    for number in range(1, CLINICIANS + 1):
        rows = key["forms"][f"expert_{number}"]

        def choose(row, question, rows=rows, number=number):
            nonlocal missed
            about = rows[row]["about"]
            if about["part"] == "comprehensiveness":
                return str(stars[number - 1])
            if about["part"] == "comments":
                return "- one thing\n\nanother; thing" if number <= 2 and not about["value"] else ""
            category = intended[about["value"]]
            if missed < wrong and about["value"] == "care_coordination_and_planning":
                missed += 1
                return next(value for value in intended.values() if value != category)
            return category

        fill(folder / f"expert_{number}.csv", choose)
    done = medtasks("human", "ingest", *folder.glob("*.csv"), "--key", folder / "key.json", "-o", "out")
    assert done.code == 0 and "next: read out/comments.csv" in done.err, done.text
    assert missed == wrong == 21
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["agreement_rate"] == pytest.approx(1 - wrong / total)
    assert results["agreement_rate_low"] < results["agreement_rate"] < results["agreement_rate_high"]
    assert f"{results['comprehensiveness_mean']:.2f}" == "4.21"
    assert f"{results['comprehensiveness_sd']:.3f}" == "0.675"
    assert results["ratings"] == {"1": 0, "2": 0, "3": 4, "4": 15, "5": 10} and results["comments"] == 4
    words = " ".join(done.out.split())
    assert "96.7 %" in words and "4.21 ± 0.675" in words and words.count("4.21 ± 0.675") == 2
    assert "care_coordination_and_planning: 27.6 % in administration; clinical_decision_support 21" in words
    with (tmp_path / "out" / "assignments.csv").open() as file:
        rows = {row["value"]: row for row in csv.DictReader(file)}
    assert rows["care_coordination_and_planning"]["clinical_decision_support"] == "21" and len(rows) == 22
    with (tmp_path / "out" / "comments.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == ["'- one thing", "another; thing"] * 2
    [fleiss] = [row for row in results["agreement"] if row["measure"] == "fleiss_kappa"]
    assert 0.8 < fleiss["value"] < 1 and fleiss["n"] == 22


@pytest.mark.parametrize(
    ("source", "message"),
    [(["bridge"], "no taxonomy of two levels"), (["nosuch"], "no suite"), (["medhelm", "mlb"], "one suite")],
)
def test_a_survey_needs_a_suite_with_a_taxonomy(medtasks, source, message):
    done = medtasks("human", "export", *source, "--kind", "survey", "-o", "forms")
    assert done.code == 2 and message in done.err


def test_a_category_that_is_none_gets_one_message(survey, medtasks, tmp_path):
    folder = survey(1)
    fill(folder / "expert_1.csv", lambda row, question: "research")
    done = medtasks("human", "ingest", folder / "expert_1.csv", "--key", folder / "key.json", "-o", "out")
    assert done.code == 2 and done.err.count("medtasks:") == 1 and "write one of:" in done.err
    assert not (tmp_path / "out").exists()
