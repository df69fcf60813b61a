"""A suite lists datasets of other suites: tasks keep their names, are scored once, and count in both."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from lm_eval.evaluator import evaluate
from lm_eval.tasks import TaskManager

from medtasks_ext.models import Oracle
from medtasks_ext.registry import Registry, forget, registry
from medtasks_ext.registry.build import build
from medtasks_ext.registry.columns import references
from medtasks_ext.registry.folders import tasks_folder
from tests.conftest import rewrite_answers
from tests.report.made import data_of
from tests.run_files import results_of, samples_file

WARD = {
    "title": "WardBench", "about": "what one ward asks", "citation": "bedi2026medhelm",
    "axes": {"ward": {"values": {"icu": "Intensive care", "er": "Emergency room"}}},
    "groups": {"ward": "", "language": ""}, "partition": ["ward"], "main_axes": ["ward"], "sections": "ward",
    "averaged_over": "ward", "assigned_by": "medtasks",
    "datasets": ["bridge/mednli", "clinicbench/pubmedqa", "falls"],
    "axis_values": {"bridge/mednli": {"ward": "icu"}, "clinicbench/pubmedqa": {"ward": "er"}},
}  # fmt: skip
NLI, QA, FALLS = "bridge_mednli", "clinicbench_pubmedqa", "ward_falls"


def declare(folder: Path, **changes: object) -> None:
    """Write the suite's file; a key that is None is left out."""
    content = {key: value for key, value in {**WARD, **changes}.items() if value is not None}
    (folder / "ward" / "suite.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    forget()


def add_falls(folder: Path) -> None:
    made = folder / "ward" / "falls"
    shutil.copytree(Path(__file__).parents[1] / "own_tasks" / "allergie_farmaci", made)
    text = (made / "task.yaml").read_text(encoding="utf-8")
    text = text.replace("task: allergie_farmaci", f"task: {FALLS}").replace(
        "own/allergie_farmaci", "ward/falls"
    )
    text = text.replace("\n  access: private", "\n  axes: {ward: icu}\n  access: private")
    (made / "task.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def own(tmp_path, monkeypatch, data_dir) -> Path:
    """A folder with a suite of one dataset and two of built-in suites, which the environment names."""
    folder = tmp_path / "mine"
    (folder / "ward").mkdir(parents=True)
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder))
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    add_falls(folder)
    declare(folder)
    yield folder
    forget()


def test_the_suites_groups_hold_what_it_lists(own):
    tasks = registry()
    for suffix in ("", "_cot", "_5shot"):
        held = {
            name: {leaf.removesuffix(suffix) for leaf in tasks.leaves(name + suffix)}
            for name in ("ward", "ward_icu", "ward_er", "ward_en", "ward_open", "ward_private")
        }
        assert held == {
            "ward": {NLI, QA, FALLS}, "ward_icu": {NLI, FALLS}, "ward_er": {QA}, "ward_en": {NLI, QA},
            "ward_open": {QA}, "ward_private": {FALLS},
        }  # fmt: skip
    assert [set(part) for part in tasks.parts("ward")] == [{NLI, FALLS}, {QA}]


def test_groups_of_papers_and_across_suites_stay_as_they_are(own):
    alone, beside = Registry(tasks_folder()), registry()
    for name in alone.groups:
        added = [leaf for leaf in beside.leaves(name) if leaf.startswith(FALLS)]
        assert [leaf for leaf in beside.leaves(name) if leaf not in added] == alone.leaves(name)
        if not name.startswith("medtasks_"):
            assert not added and beside.parts(name) == alone.parts(name)
    new = set(beside.groups) - set(alone.groups) - {"medtasks_it", "medtasks_it_cot", "medtasks_it_5shot"}
    assert all(name.startswith("ward") for name in new)


def test_lists_and_checks_follow_the_suite(own, medtasks):
    listed = {item["id"] for item in json.loads(medtasks("ls", "--json", "suite=ward").out)}
    assert listed == {NLI, QA, FALLS}
    assert {item["id"] for item in json.loads(medtasks("ls", "--json", "ward=icu").out)} == {NLI, FALLS}
    outcome = medtasks("dev", "validate", "ward")
    assert outcome.code == 0 and "3 checked, 0 with problems" in outcome.out
    tasks = registry()
    datasets = tasks.datasets_of(tasks.suites["ward"])
    text = references(datasets, [tasks.suites["ward"]])
    assert "% the suite ward" in text and "% the suite bridge" in text
    assert "% the suite ward" not in references([tasks.datasets[NLI]])
    outcome = medtasks.done("plan", "ORG/Model-8B", "--tasks", "ward", "--json")
    assert {item["task"] for item in json.loads(outcome.out)["tasks"]} == {NLI, QA, FALLS}


def test_a_run_of_the_suite_rolls_up_into_all_suites(own, medtasks, tmp_path):
    asked = ("run", "--model", "oracle", "--tasks", "ward", "--data", "sample", "--output_path", "run")
    outcome = medtasks(*asked)
    assert outcome.code == 0 and re.search(r"\bward\b.*1\.0000", outcome.out), outcome.text
    run = tmp_path / "run"
    assert results_of(run)["configs"].keys() == {NLI, QA, FALLS}
    ids = [json.loads(line)["doc"]["id"] for line in samples_file(run, QA).open(encoding="utf-8")]
    rewrite_answers(run, QA, dict.fromkeys(ids, "I do not know."))
    assert medtasks("rescore", "run").code == 0
    groups = results_of(run)["medtasks"]["groups"]
    assert groups["ward"]["score"] == 0.5  # each ward counts once: (1 + 1) / 2 and 0
    assert groups["ward_icu"]["score"] == 1 and groups["ward_er"]["score"] == 0

    outcome = medtasks("report", "run", "-o", "out")
    table = list(csv.DictReader((tmp_path / "out" / "groups.csv").open(encoding="utf-8")))
    assert outcome.code == 0 and {"WardBench", "Intensive care"} <= {row["title"] for row in table}
    rows = {(row["suite"], row["axis"], row["value"]): row for row in table}
    assert float(rows["ward", "suite", "ward"]["score"]) == 0.5
    assert rows["ward", "suite", "ward"]["tasks_scored"] == "3"
    assert rows["ward", "ward", "icu"]["tasks"] == "2"
    assert rows["bridge", "suite", "bridge"]["tasks_scored"] == "1"
    assert rows["bridge", "suite", "bridge"]["tasks"] == "87"
    assert rows["", "all", "all"]["tasks_scored"] == "3"
    results = list(csv.DictReader((tmp_path / "out" / "results.csv").open(encoding="utf-8")))
    scores = {row["dataset"]: row for row in results if row["metric"] == "score"}
    assert len(scores) == 3 and scores[NLI]["suite"] == "bridge" and scores[NLI]["ward"] == "icu"

    datasets = {item["id"]: item for item in data_of(tmp_path / "out" / "report.html")["datasets"]}
    assert datasets[NLI]["suite"] == ["bridge", "ward"] and datasets[FALLS]["suite"] == "ward"
    assert datasets[NLI]["ward"] == "icu"

    medtasks.done("card", "run", "-o", "card", "--parts")
    card = (tmp_path / "card" / "medical-evaluation.md").read_text(encoding="utf-8")
    assert re.search(r"\| WardBench \| zero-shot \| 0\.5000 .*\| 3/3 \|", card)
    assert re.search(r"\| BRIDGE \(partial\) \| zero-shot \| 1\.0000 .*\| 1/87 \|", card)


def test_plain_lm_eval_runs_the_suite(own, medtasks, tmp_path):
    built_in = tmp_path / "built_in"
    build(Registry(tasks_folder()), built_in)
    outcome = medtasks.done("dev", "build")
    manager = TaskManager(
        include_defaults=False, include_path=[str(built_in), outcome.out.strip()], metadata={"data": "sample"}
    )
    loaded = manager.load(["ward"])
    assert set(loaded["tasks"]) == {NLI, QA, FALLS}
    found = evaluate(lm=Oracle(), task_dict=manager.load(["ward_icu"]), bootstrap_iters=0)
    assert found["results"]["ward_icu"]["score,answer"] == 1
    assert set(manager.load(["ward_5shot"])["tasks"]) == {f"{NLI}_5shot", f"{QA}_5shot", f"{FALLS}_5shot"}
    assert FALLS not in manager.load(["bridge_en"])["tasks"]


BAD = yaml.safe_load(Path(__file__).with_name("listed_faults.yaml").read_text(encoding="utf-8"))
#: the built-in datasets that the faults name; the last is in another form, and counts in no suite
NAMED = ("bridge/mednli", "bridge/medsts", "clinicbench/pubmedqa", "clinicbench/pharmacology_qa")
CONTROL = "clinicbench/pharmacology_qa_shuffled"


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_is_one_message_with_file_key_and_remedy(own, tasks_of, medtasks, tmp_path, fault):
    tasks_of(*NAMED, CONTROL)
    changes = json.loads(json.dumps(BAD[fault]).replace("CONTROL", CONTROL))
    message = changes.pop("said")
    declare(own, **changes)
    run = ("run", "--model", "oracle", "--tasks", "ward", "--data", "sample", "-o", "run")
    for command in (("dev", "build"), run):
        outcome = medtasks(*command)
        assert outcome.code == 2, outcome.text
        first, *rest = outcome.err.splitlines()
        assert f"{own}/ward/suite.yaml: " in first and message in first
        assert len(rest) == 1 and rest[0].startswith("  → ")
        assert not (tmp_path / "run").exists()
    outcome = medtasks("dev", "validate", "ward")
    assert outcome.code == 1 and message in outcome.out
    assert message in medtasks("ls", "suite=ward").err
