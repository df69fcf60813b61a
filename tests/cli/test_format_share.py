"""A run's end and a report say how much of a score is format."""

from __future__ import annotations

import csv

from medtasks_ext.cli.tables import remarks

SAID = "readable 50.0% as scored, 100.0% by the repaired reading; score 0.4000, 0.8000 by that reading"


def task(name="bridge_mie", **metrics):
    return {"metrics": metrics, "cut": {}, "loaded": {"n_held_out": 0, "rebuilt": False, "task": name}}


def test_the_end_of_a_run_says_both_readings_of_all_its_tasks():
    read = task(valid=1.0, readable_repaired=1.0, score=0.8, score_repaired=0.8)
    unread = task(valid=0.0, readable_repaired=1.0, score=0.0, score_repaired=0.8)
    judged = task(valid=1.0, readable_repaired=1.0)  # has no score yet
    [line] = remarks({"a": read, "b": unread, "c": judged})
    assert line == f"{SAID} (means of 2 tasks)"
    assert remarks({"c": judged}) == []


def test_scores_of_several_suites_or_strategies_have_no_mean_and_sample_scores_are_marked():
    figures = {"valid": 0.5, "readable_repaired": 1.0, "score": 0.4, "score_repaired": 0.8}
    for other in ("mlb_maexam", "bridge_mie_cot"):
        [line] = remarks({"a": task(**figures), "b": task(other, **figures)})
        assert line == "readable 50.0% as scored, 100.0% by the repaired reading (means of 2 tasks)"
    [line] = remarks({"a": task(**figures, SAMPLE_DATA=1.0)})
    assert "; SAMPLE score 0.4000, 0.8000 by that" in line


def test_a_report_says_it_for_each_suite_and_its_table_has_the_figures(medtasks, tmp_path):
    run = ["--model", "oracle", "--data", "sample", "--limit", "3", "--output_path", str(tmp_path / "run")]
    assert "100.0% by the repaired reading" in medtasks("run", "--tasks", "bridge_mie,mlb_maexam", *run).out
    out = medtasks("report", str(tmp_path / "run"), "-o", str(tmp_path / "report")).out
    assert "how much of a score is format" in out
    assert "BRIDGE, zero-shot: readable 100.0% as scored, 100.0% by the repaired reading" in " ".join(
        out.split()
    )
    [groups] = (tmp_path / "report").rglob("groups.csv")
    with groups.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["axis"] == "suite"]
    assert {(row["readable_repaired"], row["score_if_readable"]) for row in rows} == {("1.0", "1.0")}
