"""Roll-ups reproduce the published averages from the published per-task scores."""

import csv
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from medtasks_ext.registry import registry, vocabulary
from medtasks_ext.results.rollup import Members, Row, roll_up_one

REFERENCE = Path(__file__).resolve().parents[1] / "results" / "reference"


def roll_up(name, tasks, metrics, sizes, parts=None) -> Row:
    finished = {
        task: SimpleNamespace(metrics=item, intervals={}, n=sizes.get(task, 0), estimate=None)
        for task, item in metrics.items()
    }
    return roll_up_one(Members(name, tuple(tasks), tuple(map(tuple, parts or [tasks]))), finished)


def read(name: str) -> list[dict[str, str]]:
    with (REFERENCE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("strategy", ["zero_shot", "cot", "five_shot"])
def test_bridge_overall_is_the_plain_mean_over_its_tasks(strategy):
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for row in read("bridge_leaderboard.csv"):
        if row["strategy"] == strategy:
            scores[row["model"]][row["task"]] = {"score": float(row["score"]) / 100}
    compared = 0
    for row in read("bridge_overall.csv"):
        tasks = scores[row["model"]]
        rolled = roll_up("bridge", list(tasks), tasks, {})
        assert (rolled.n_scored, rolled.partial) == (87, False)
        assert rolled.score * 100 == pytest.approx(float(row[strategy]), abs=0.051)
        compared += 1
    assert compared == 95


AXES = {"task_type": "task_type", "language": "language", "specialty": "specialties", "stage": "stage"}
OTHER = {"nephrology", "dermatology", "psychology"}  # one task each: together the paper's "Other"


def members(dimension: str, group: str) -> set[str]:
    """The tasks of a published sub-group, by this registry's metadata."""
    value = group.lower().replace(" ", "_")
    if dimension == "language":
        value = next(key for key, title in vocabulary()["languages"].items() if title == group)
    wanted = OTHER if (dimension, group) == ("specialty", "Other") else {value}
    records = [item.metadata for item in registry().datasets.values() if item.metadata.suite == "bridge"]
    return {record.name for record in records if wanted & set(record.axis(AXES[dimension]))}


def test_bridge_sub_groups_follow_from_the_metadata_of_the_tasks():
    """Tables S4 to S7: a task with several specialties counts fully in each."""
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for row in read("bridge_leaderboard.csv"):
        if row["strategy"] == "zero_shot":
            scores[row["model"]][row["task"]] = {"score": float(row["score"])}
    groups = {(row["dimension"], row["group"]) for row in read("bridge_subgroups.csv")}
    tasks = {
        (dimension, group): members(dimension, group) for dimension, group in groups if group != "Average"
    }
    assert len(tasks) == 35
    for row in read("bridge_subgroups.csv"):
        if row["group"] != "Average":
            chosen = sorted(tasks[row["dimension"], row["group"]])
            rolled = roll_up(row["group"], chosen, scores[row["model"]], {})
            assert rolled.n_scored == len(chosen), row
            assert rolled.score == pytest.approx(float(row["score"]), abs=0.051), row


def test_mlb_average_is_the_plain_mean_of_its_dimensions():
    rows = read("mlb_overall.csv")
    dimensions = ["MedKQA", "MedSE", "MedRU", "SmartServ", "SmartCare"]
    for row in rows:
        scores = {name: {"score": float(row[name])} for name in dimensions}
        assert roll_up("mlb", dimensions, scores, {}).score == pytest.approx(float(row["average"]), abs=1e-9)


def test_a_group_with_missing_tasks_is_partial_and_one_without_scores_has_none():
    metrics = {"a": {"score": 0.5, "valid": 1.0}, "b": {"valid": 0.5}}
    row = roll_up("g", ["a", "b", "c"], metrics, {"a": 4, "b": 6})
    assert (row.score, row.n_scored, row.n_tasks, row.n_documents, row.partial) == (0.5, 1, 3, 10, True)
    assert row.valid == 0.75
    assert roll_up("g", ["b"], metrics, {}).score is None


def test_sample_rows_mark_every_group_that_holds_them():
    metrics = {"a": {"score": 1.0, "SAMPLE_DATA": 1.0}, "b": {"score": 1.0}}
    assert roll_up("g", ["a", "b"], metrics, {}).sample
    assert not roll_up("g", ["b"], metrics, {}).sample


def test_a_mean_over_parts_counts_each_part_once_whatever_its_size():
    metrics = {"a": {"score": 1.0}, "b": {"score": 0.5}, "c": {"score": 0.0}, "d": {"valid": 1.0}}
    row = roll_up("g", list("abcd"), metrics, {}, parts=[["a"], ["b", "c"], ["d"]])
    assert (row.score, row.n_scored, row.n_tasks, row.partial) == ((1.0 + 0.25) / 2, 3, 4, True)


def test_tasks_outside_the_parts_are_run_without_counting():
    metrics = {"a": {"score": 1.0}, "b": {"score": 0.0}}
    row = roll_up("g", ["a", "b"], metrics, {"a": 2, "b": 3}, parts=[["a"]])
    assert (row.score, row.n_scored, row.n_tasks, row.n_documents) == (1.0, 1, 1, 5)


#: Table 5's base row is LLaMA-2-7B without instruction tuning.
SCENARIOS = {"Reasoning": 41.2, "Generation": 10.5, "Understanding": 42.2}
LONG_DOCUMENTS = {"Hospitalization Summarization", "Patient Education"}


def test_clinicbench_scenario_averages_are_those_of_table_5():
    rows = [row for row in read("clinicbench_zero_shot.csv") if row["model"] == "LLaMA-2-7B"]
    assert len(rows) == 17
    for scenario, published in SCENARIOS.items():
        scores = {
            row["dataset"]: {"score": float(row["score"])}
            for row in rows
            if row["scenario"].lower().endswith(scenario.lower())
        }
        counted = [name for name in scores if name not in LONG_DOCUMENTS]
        assert roll_up(scenario, list(scores), scores, {}, parts=[counted]).score == pytest.approx(
            published, abs=0.051
        )
