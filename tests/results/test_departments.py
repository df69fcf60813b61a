"""Labels that rows have: the departments of MLB, levels of difficulty."""

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.registry.blocks import RowLabel
from tests.conftest import write_jsonl

TASKS = registry()
DEPARTMENTS = TASKS.suites["mlb"].labels["department"]
NO_DEPARTMENT = "No Department"
OPTIONS = ["甲", "乙", "丙", "丁", "戊"]


def test_there_are_9_primary_and_64_secondary_departments():
    secondary = [name for parts in DEPARTMENTS.values.values() for name in parts]
    assert len(DEPARTMENTS.values) == 9
    assert len(secondary) == len(set(secondary)) == 64
    chinese = [other for parts in DEPARTMENTS.values.values() for other in parts.values() if other]
    assert len(chinese) == len(set(chinese)) and not set(chinese) & set(secondary)


def test_a_label_is_shown_with_what_it_lies_within_once():
    shown = DEPARTMENTS.shown(["Cardiology", "Neurology", "General Practice Dept."])
    assert shown == (
        "Internal Medicine",
        "Internal Medicine, Cardiology",
        "Internal Medicine, Neurology",
        "General Practice Dept.",
    )
    assert [value for value in DEPARTMENTS.order if value in shown] == sorted(
        shown, key=DEPARTMENTS.order.index
    )
    assert DEPARTMENTS.order[-1] == NO_DEPARTMENT and set(shown) < set(DEPARTMENTS.order)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least 1 item"),
        ({"wards": {"north": None}, "clinics": {"north": None}}, "'north' stands twice"),
        ({"wards, clinics": {}}, "without a comma"),
    ],
)
def test_a_label_whose_values_could_be_confused_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        RowLabel(values=values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Cardiology", ["Cardiology"]), ("心血管内科", ["Cardiology"]),
        (["Pediatric Urology", "眼科"], ["Pediatric Urology", "Ophthalmology"]),
        ("Women's Health", ["Women’s Health"]), (" Oncology ", ["Oncology"]),
        ("No Department", [NO_DEPARTMENT]),
    ],
)  # fmt: skip
def test_departments_are_named_in_english_or_chinese(value, expected):
    assert DEPARTMENTS.read(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Internal Medicine", "no value of it"),  # a primary one
        ("心内", "no value of it"),
        (["Cardiology", "Oncology", "Neurology", "Nephrology"], "4 values; a row has one to 3"),
        ([], "0 values"),
        (["Cardiology", "心血管内科"], "named twice"),
        (["Cardiology", "No Department"], "stands beside others"),
        (3, "no value of it"),
    ],
)
def test_other_names_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        DEPARTMENTS.read(value)


def write(data_dir, labels: list, name: str = "maguidance"):
    rows = [
        {"id": str(i), "question": f"题{i}", "options": OPTIONS, "answer": [0], "department": label}
        for i, label in enumerate(labels)
    ]
    for row in (row for row in rows if row["department"] is None):
        del row["department"]
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
    assert str(path) in str(error.value) and "row_labels.department of mlb/suite.yaml" in error.value.remedy
