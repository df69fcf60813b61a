"""Departments: their vocabulary, the labels of documents, and scores by department."""

from __future__ import annotations

import json
import random
from collections import defaultdict

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.models.baselines import Baseline
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.registry.departments import NO_DEPARTMENT, departments, primary_of, read_departments
from medtasks_ext.results.departments import score_by_department
from medtasks_ext.runner.evaluate import Settings, build_task, evaluate_task
from tests.conftest import write_jsonl

TASKS = registry()
OPTIONS = ["甲", "乙", "丙", "丁", "戊"]


# ---------------------------------------------------------------- vocabulary


def test_there_are_9_primary_and_64_secondary_departments():
    secondary = [name for primary in departments().values() for name in primary["secondary"]]
    assert len(departments()) == 9
    assert len(secondary) == len(set(secondary)) == 64
    chinese = [zh for primary in departments().values() for zh in primary["secondary"].values() if zh]
    assert len(chinese) == len(set(chinese)) and not set(chinese) & set(secondary)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Cardiology", ["Cardiology"]),
        ("心血管内科", ["Cardiology"]),
        (["Pediatric Urology", "眼科"], ["Pediatric Urology", "Ophthalmology"]),
        ("Women's Health", ["Women’s Health"]),
        (" Oncology ", ["Oncology"]),
        ("No Department", [NO_DEPARTMENT]),
    ],
)
def test_departments_are_named_in_english_or_chinese(value, expected):
    assert read_departments(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Internal Medicine", "no secondary department"),  # a primary one
        ("心内", "no secondary department"),
        (["Cardiology", "Oncology", "Neurology", "Nephrology"], "4 departments"),
        ([], "0 departments"),
        (["Cardiology", "心血管内科"], "named twice"),
        (["Cardiology", "No Department"], "stands beside others"),
        (3, "no secondary department"),
    ],
)
def test_other_names_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        read_departments(value)


# ---------------------------------------------------------------- documents


def write(data_dir, labels: list, name: str = "maguidance"):
    rows = [
        {
            "id": str(i),
            "question": f"题{i}",
            "options": OPTIONS,
            "answer": [0],
            **({} if label is None else {"department": label}),
        }
        for i, label in enumerate(labels)
    ]
    return write_jsonl(data_dir / "mlb" / name / "test.jsonl", rows)


def test_documents_carry_the_departments_of_their_rows(data_dir):
    write(data_dir, ["Cardiology", None, "", ["眼科", "Oncology"], "No Department"])
    found = load_documents(TASKS.datasets["mlb_maguidance"], cot=False)["test"]
    assert [document.get("department") for document in found][::3] == [
        ["Cardiology"], None, None, ["Ophthalmology", "Oncology"], [NO_DEPARTMENT],
    ]  # fmt: skip


def test_an_unknown_department_names_file_row_and_remedy(data_dir):
    path = write(data_dir, ["Cardiology", "Astrology"])
    with pytest.raises(MedtasksError, match=r"test row 2 \(id 1\): department: 'Astrology'") as error:
        load_documents(TASKS.datasets["mlb_maguidance"], cot=False)
    assert str(path) in str(error.value) and "departments.yaml" in error.value.remedy


# ---------------------------------------------------------------- scores


class Sometimes(Baseline):
    """Right in nine of ten trials, by question and trial."""

    def answer(self, request, requests):
        right = random.Random(f"{request.doc['id']} {request.doc['trial']}").random() < 0.9
        return request.doc["target"] if right else "答案：？"


def run(name: str) -> tuple:
    settings = Settings(data="local")
    task = build_task(TASKS, name, settings)
    return evaluate_task(Sometimes(), task, settings).samples, task.aggregation()


def test_scores_are_those_of_a_plain_count(data_dir):
    rng = random.Random(1)
    names = ["Cardiology", "Neurology", "Oncology", "Pediatric Urology", "General Practice Dept."]
    labels = [
        rng.choice([rng.sample(names, rng.choice([1, 1, 2, 3])), None, NO_DEPARTMENT]) for _ in range(60)
    ]
    for name in ("maguidance", "maknowledge"):
        write(data_dir, labels, name)
    tasks = {name: run(name) for name in ("mlb_maguidance", "mlb_maknowledge")}
    expected = defaultdict(list)
    for samples, _ in tasks.values():
        trials = defaultdict(list)
        for sample in samples:
            trials[sample["doc"]["item"]].append(sample["mean_trial_accuracy"])
        places = defaultdict(list)
        for item, right in trials.items():
            found = labels[int(item)] or []
            found = [found] if isinstance(found, str) else found
            for name in {*found, *(f"primary {primary_of(name)}" for name in found)}:
                places[name].append(float(all(right)))
        for place, values in places.items():
            expected[place].append(sum(values) / len(values))
    got = score_by_department(tasks)
    for line in got:
        place = line.name if line.primary else f"primary {line.name}"
        assert line.score == pytest.approx(sum(expected[place]) / len(expected[place]))
        assert line.n_tasks == 2
    secondary = {line.name: line.n_documents for line in got if line.primary}
    assert secondary == {
        name: 2 * sum(name in (label or []) for label in labels if isinstance(label, list)) for name in names
    }
    assert got[-1].name == NO_DEPARTMENT and got[-1].n_documents == 2 * labels.count(NO_DEPARTMENT)
    assert len({line.score for line in got}) > 2


def test_a_primary_department_counts_a_document_once_and_comes_before_its_secondary_ones(data_dir):
    write(data_dir, [["Cardiology", "Neurology"], "Cardiology", "骨科", None])
    found = [
        (line.primary, line.name, line.n_documents)
        for line in score_by_department({"t": run("mlb_maguidance")})
    ]
    assert found == [
        (None, "Internal Medicine", 2),
        ("Internal Medicine", "Neurology", 1),
        ("Internal Medicine", "Cardiology", 2),
        (None, "Surgery", 1),
        ("Surgery", "Orthopedic Surgery", 1),
    ]


def test_samples_read_from_a_file_give_the_same_and_any_metric_can_be_asked_for(data_dir):
    write(data_dir, ["Cardiology", "骨科", "眼科"] * 4)
    samples, aggregations = run("mlb_maguidance")
    stored = [json.loads(json.dumps(sample, default=str)) for sample in reversed(samples)]
    for metric in ("score", "mean_trial_accuracy", "position_bias"):
        assert score_by_department({"t": (stored, aggregations)}, metric) == score_by_department(
            {"t": (samples, aggregations)}, metric
        )


def test_without_labels_there_is_nothing_to_report(data_dir):
    write(data_dir, [None] * 3)
    assert score_by_department({"t": run("mlb_maguidance")}) == []
    assert score_by_department({"t": run("mlb_maguidance")}, "no_such_metric") == []
