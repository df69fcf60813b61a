"""Test items that two physicians review: what is asked about which item, and what becomes of it."""

import csv
import json
from datetime import date

import pytest
import yaml
from sklearn.metrics import cohen_kappa_score

from tests.human.conftest import fill, key_of, read

CHOICE, OPEN = "mlb_maexam", "mlb_maethic"


@pytest.fixture
def review(tmp_path, medtasks, monkeypatch):
    """Export items of sample rows: `review(*options)` writes the folder `forms`."""
    monkeypatch.setenv("MEDTASKS_DATA", "sample")

    def call(*options, tasks=(CHOICE, OPEN)):
        done = medtasks("human", "export", *tasks, "--kind", "review", *options, "-o", "forms")
        assert done.code == 0, done.text
        return tmp_path / "forms"

    return call


def test_an_item_is_asked_about_what_it_has(review):
    folder = review("-n", 3)
    key = key_of(folder)["forms"]
    assert set(key) == {"expert_1", "expert_2"}
    asked = {}
    for row in key["expert_1"].values():
        asked.setdefault((row["about"]["task"], row["about"]["item"]), []).append(row["about"]["criterion"])
    assert len(asked) == 8
    for (task, item), criteria in asked.items():
        if item == "prompt":
            assert criteria == ["wording", "signed", "native", "remark"]
            continue
        own = "distractors" if task == CHOICE else "rubric"
        assert criteria == ["natural", "valid", "answer", own, "remark"]
    header, *rows = read(folder / "expert_1.csv")
    assert header == [
        "form", "row", "digest", "item", "reference", "points", "criterion", "asks", "options",
        "verdict [options]",
    ]  # fmt: skip
    assert {row[8] for row in rows} == {"yes|no", "自由填写"}
    assert all(row[5] for row in rows if row[6] == "得分点与题目相符")
    page = (folder / "expert_1.html").read_text()
    assert "SAMPLE" in page and CHOICE not in page


def test_verdicts_become_rates_agreement_and_outcomes(review, medtasks, tmp_path):
    folder = review("-n", 4)
    key = key_of(folder)["forms"]
    abouts = [row["about"] for row in key["expert_1"].values()]
    failed, disputed, *_ = sorted(
        {about["item"] for about in abouts if about["task"] == CHOICE and about["item"] != "prompt"}
    )

    def opinion(expert, about):
        bad = about["task"] == CHOICE and about["item"] == failed
        odd = about["task"] == CHOICE and about["item"] == disputed and expert == 2
        if about["criterion"] == "remark":
            return "=改为每日一次" if bad else ""
        if about["criterion"] in ("signed", "native"):
            return {"signed": f"Dr. {expert}", "native": "zh"}[about["criterion"]] if expert == 1 else ""
        return "no" if about["criterion"] == "answer" and (bad or odd) else "yes"

    for number in (1, 2):
        rows = key[f"expert_{number}"]
        fill(
            folder / f"expert_{number}.csv",
            lambda row, question, rows=rows, number=number: opinion(number, rows[row]["about"]),
        )
    done = medtasks("human", "ingest", *folder.glob("*.csv"), "--key", folder / "key.json", "-o", "out")
    assert done.code == 0 and "  read out/items.csv and mend the items\n" in done.err, done.text
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    found = {(row["task"], row["criterion"]): row for row in results["criteria"]}
    answer = found[CHOICE, "answer"]
    assert (answer["items"], answer["met"], answer["met_by_all"]) == (4, 5 / 8, 2 / 4)
    assert answer["low"] <= answer["met"] <= answer["high"]
    assert found["all tasks", "answer"]["met"] == pytest.approx(13 / 16)
    assert found["all tasks", "distractors"]["items"] == 4 and found["all tasks", "rubric"]["items"] == 4
    [kappa] = [
        row["value"]
        for row in results["agreement"]
        if (row["task"], row["criterion"], row["measure"]) == (CHOICE, "answer", "cohen_kappa")
    ]
    assert kappa == pytest.approx(cohen_kappa_score([0, 1, 1, 1], [0, 0, 1, 1]))
    with (tmp_path / "out" / "items.csv").open(newline="") as file:
        outcomes = {(row["task"], row["item"]): row for row in csv.DictReader(file)}
    assert outcomes[CHOICE, failed]["outcome"] == "failed" and outcomes[CHOICE, failed]["not_met"] == "answer"
    assert outcomes[CHOICE, failed]["remarks"] == "'=改为每日一次\n=改为每日一次"  # no formula
    assert outcomes[CHOICE, disputed]["outcome"] == "disputed"
    assert sum(row["outcome"] == "accepted" for row in outcomes.values()) == 8
    assert "10 items: 8 accepted, 1 failed, 1 disputed" in done.out and "SAMPLE" in done.out
    # one expert has signed: synthetic rows are read, and no gold of open data
    signed = yaml.safe_load((tmp_path / "out" / "reviewed.yaml").read_text(encoding="utf-8"))
    assert set(signed) == {CHOICE, OPEN}
    (entry,) = signed[CHOICE]
    assert entry.pop("day") == date.today()
    assert entry == {"by": "Dr. 1", "native": ["zh"], "prompt": True, "rows": {"read": 4, "wrong": 1}}
    assert f"reviewed: {CHOICE}: Dr. 1 (native: zh), " in done.out


def test_an_open_verdict_is_missing_and_an_open_remark_is_not(review, medtasks):
    folder = review("-n", 1, "--experts", 1, tasks=(OPEN,))
    fill(folder / "expert_1.csv", lambda row, question: "")
    table = read(folder / "expert_1.csv")
    for row in table[1:]:
        row[-1] = "" if row[8] == "自由填写" else "Yes"
    next(row for row in table[1:] if row[8] != "自由填写")[-1] = ""
    with (folder / "expert_1.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(table)
    take = ("human", "ingest", folder / "expert_1.csv", "--key", folder / "key.json", "-o", "out")
    done = medtasks(*take)
    assert done.code == 2 and "1 of 9 rows have no answer" in done.err
    assert medtasks(*take, "--partial").code == 0


def test_a_review_needs_tasks_and_rows(medtasks, tmp_path):
    done = medtasks("human", "export", "no_such_task", "--kind", "review", "-o", "forms")
    assert done.code == 2 and "no_such_task" in done.err
    done = medtasks("human", "export", CHOICE, "--kind", "review", "--tasks", CHOICE, "-o", "forms")
    assert done.code == 2 and "is about no run" in done.err
    done = medtasks("human", "export", CHOICE, "--kind", "review", "-o", "forms")
    assert done.code == 2 and not (tmp_path / "forms").exists()
