"""`medtasks study departments`: what replies become."""
# ruff: noqa: F811

from __future__ import annotations

import json

import pytest
import yaml

from medtasks_ext.prompts import load
from tests.conftest import write_jsonl
from tests.judge.conftest import jury, quick_pauses, server  # noqa: F401  (fixtures)
from tests.judge.server import Reply, coded

TASK = "mlb_maguidance"
PEOPLE = ["Cardiology", ["Cardiology", "Oncology"], "Neonatology", "No Department"]


def question(number: int, *, named: bool = True) -> dict:
    row = {
        "id": f"q{number}", "question": f"第{number}题：应当挂哪一科？",
        "options": ["甲", "乙", "丙", "丁", "戊"], "answer": [number % 5],
    }  # fmt: skip
    return {**row, "department": PEOPLE[number % 4]} if named else row


def places(*names: str) -> str:
    named = [*names, "none", "none"][:3]
    return coded(
        {place: {"department": name} for place, name in zip(("first", "second", "third"), named, strict=True)}
    )


def number(asked) -> int:
    return int(asked.texts["question"].partition("题")[0].rpartition("第")[2])


def as_people_but_one(asked, seen):
    """As people do, but q0 is Nephrology."""
    n = number(asked)
    names = ["Nephrology"] if n == 0 else PEOPLE[n % 4]
    return Reply(places(*([names] if isinstance(names, str) else names)))


@pytest.fixture(autouse=True)
def as_most_people(server):
    server.script = as_people_but_one


@pytest.fixture
def rows(data_dir):
    def write(n: int = 8, *, named: bool = True) -> None:
        path = data_dir / "mlb" / "maguidance" / "test.jsonl"
        write_jsonl(path, [question(i, named=named) for i in range(n)])
        load._build.cache_clear()

    return write


def labels(tmp_path) -> dict[str, list[str]]:
    content = json.loads((tmp_path / "departments" / f"{TASK}.json").read_text())
    return {item["id"]: item["department"] for item in content["questions"]}


def test_each_question_is_labelled_once_whatever_its_trials(medtasks, rows, jury, server, tmp_path):
    rows()
    outcome = medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller"))
    assert outcome.code == 0, outcome.text
    assert len(server.asked) == 8 and labels(tmp_path)["q1"] == ["Cardiology", "Oncology"]
    assert labels(tmp_path)["q0"] == ["Nephrology"] and labels(tmp_path)["q3"] == ["No Department"]
    asked = server.asked[0]
    assert "Internal Medicine: Respiratory Medicine; " in asked.system and "Cardiology" not in asked.user
    fields = asked.body["response_format"]["json_schema"]["schema"]["properties"]["first"]["properties"]
    assert len(fields["department"]["enum"]) == 66
    assert medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller")).code == 0
    assert len(server.asked) == 8  # nobody is asked twice


def test_the_labels_give_a_score_by_department(medtasks, rows, jury, server):
    rows(named=False)
    assert medtasks("run", "--model", "oracle", "--tasks", TASK, "--output_path", "run").code == 0
    assert medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller")).code == 0
    outcome = medtasks("report", "run", "--by", "departments", "--published", "none", "--json")
    found = {row["value"]: row for row in json.loads(outcome.out)["labels"]}
    assert found["Internal Medicine, Nephrology"]["documents"] == 3  # three trials of q0
    assert found["No Department"]["documents"] == 6 and found["No Department"]["score"] == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (places("Cardiology", "Cardiology"), "named twice"),
        (places("No Department", "Cardiology"), "stands beside others"),
        (places("none"), "no first department"),
        (places("Internal Medicine"), "is not one of"),
    ],
)
def test_a_reply_that_is_no_label_is_asked_for_again_and_then_missing(
    medtasks, rows, jury, server, tmp_path, reply, reason
):
    rows(2)
    server.script = lambda asked, seen: Reply(reply) if number(asked) == 1 else as_people_but_one(asked, seen)
    outcome = medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller"))
    assert outcome.code == 1 and reason in outcome.err and outcome.err.count("missing:") == 1
    assert len(server.asked) == 4  # once for q0, three times for q1
    content = json.loads((tmp_path / "departments" / f"{TASK}.json").read_text())
    assert content["missing"] == ["q1"] and labels(tmp_path) == {"q0": ["Nephrology"]}
    server.script = as_people_but_one
    assert medtasks("study", "departments", "--tasks", TASK, "--jury", jury("labeller")).code == 0
    assert len(server.asked) == 5 and set(labels(tmp_path)) == {"q0", "q1"}


def test_what_may_not_be_asked_is_one_message_and_nobody_is_asked(medtasks, rows, server, jury, tmp_path):
    rows(2)
    jury("a", "b", file="two.yaml"), jury("a", file="one.yaml")
    judge = {"name": "far", "model": "m", "base_url": "http://labels.example.org/v1"}
    (tmp_path / "far.yaml").write_text(yaml.safe_dump({"judges": [judge]}))
    for task, judges, message in (
        (TASK, "two.yaml", "has several models"),
        ("mlb_nothing", "one.yaml", "mlb_nothing"),
        (TASK, "far.yaml", "labels.example.org"),
    ):
        outcome = medtasks("study", "departments", "--tasks", task, "--jury", judges)
        assert outcome.code == 2 and message in outcome.err and outcome.err.count("medtasks: ") == 1
        assert not outcome.out and not server.asked
