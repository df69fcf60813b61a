"""Suites that stand apart from the others, and suites whose tasks have no mean."""

import csv
import json

import pytest

from medtasks_ext.registry import registry
from tests.report.made import data_of, write_run

pytestmark = pytest.mark.long

UNLIKE = "medhelm_live"
TASKS = ("medhelm_live_medxpertqa", "medhelm_live_sct_bench")
SCORES = {TASKS[0]: [1.0, 0.0, 0.0, 1.0], TASKS[1]: [0.5, 0.25, 1.0, 1.0], "bridge_mednli": [1.0, 1.0, 0.0]}


def test_names_across_suites_and_names_of_another_suite_hold_none_of_it():
    tasks = registry()
    apart = {item.id for item in tasks.datasets.values() if not item.suite.in_totals}
    assert {*TASKS, "healthbench_full", "healthbench_professional_chats"} <= apart
    across = [name for name in tasks.groups if name.startswith("medtasks_")]
    assert across and not apart & {tasks.tasks[leaf][0].id for name in across for leaf in tasks.leaves(name)}
    leaves = {leaf for members in tasks.resolve(["medhelm_*"]).values() for leaf in members}
    of_medhelm = {item.id for item in tasks.datasets.values() if item.metadata.suite == "medhelm"}
    assert {tasks.tasks[leaf][0].id for leaf in leaves} == of_medhelm and not set(TASKS) & of_medhelm
    assert set(tasks.resolve(["medhelm_live_*"])["medhelm_live_open"]) == set(TASKS)


def test_no_output_has_a_mean_of_them(medtasks, tmp_path):
    for model in ("a", "b"):
        write_run(tmp_path / model, model, SCORES)
    shown = medtasks.done("report", "a", "b", "-o", "report")
    assert "MedHELM live: its tasks are measured unlike each other" in " ".join(shown.out.split())
    table = list(csv.DictReader((tmp_path / "report" / "groups.csv").open(encoding="utf-8")))
    scores = {(row["axis"], row["value"]): row["score"] for row in table if row["suite"] == UNLIKE}
    assert scores["suite", UNLIKE] == scores["language", "en"] == ""
    assert scores["task_type", "multiple_choice"]
    assert [row["tasks_scored"] for row in table if row["axis"] == "all"] == ["1", "1"]
    content = data_of(tmp_path / "report" / "report.html")
    flags = {item["id"]: (not item["in_totals"], item["averaged"]) for item in content["datasets"]}
    assert flags[TASKS[0]] == (True, False) and flags["bridge_mednli"] == (False, True)
    assert flags["healthbench_full"] == (True, True)
    assert not [item for item in content["comparisons"] if item["suite"] == UNLIKE]

    compared = medtasks.done("compare", "a", "b", "--json")
    found = json.loads(compared.out)
    names = {item["name"] for kind in ("tasks", "groups", "asked") for item in found[kind]}
    assert {*TASKS} <= names and not [name for name in names if name.startswith(UNLIKE) and name not in TASKS]

    medtasks.done("card", "a", "-o", "card", "--parts")
    written = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert f"| `{TASKS[0]}` |" in written and "| BRIDGE (partial) |" in written
    assert "| MedHELM live" not in written
    write_run(tmp_path / "alone", "c", {name: SCORES[name] for name in TASKS})
    assert medtasks("card", "alone", "-o", "card_alone", "--parts").code == 0
    for name in ("medical-evaluation.md", "README.md"):
        assert f"| `{TASKS[1]}` |" in (tmp_path / "card_alone" / name).read_text(encoding="utf-8")
    assert f"**{len(TASKS)} tasks measured" in (tmp_path / "card_alone" / "README.md").read_text("utf-8")
