"""A native speaker signs prompt, sample rows and golds of open data; the signed form becomes `reviewed`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from medtasks_ext.registry import forget
from tests.conftest import write_jsonl
from tests.human.conftest import fill, key_of

TASK = "commons_crade"


@pytest.fixture
def rows(tmp_path, monkeypatch, tasks_of) -> Path:
    """Twelve invented rows in place of the public ones, and the dataset's folder."""
    folder = tasks_of("commons/crade") / "commons" / "crade"
    sample = [json.loads(line) for line in (folder / "sample.jsonl").read_text("utf-8").splitlines()]
    made = [
        {**row, "_split": "test", "id": f"r{n}", "question": f"{row['question']} {n}"}
        for n, row in enumerate(sample)
    ]
    place = tmp_path / "data" / "commons" / "crade"
    place.mkdir(parents=True)
    for row in made:
        row.pop("_split")
    write_jsonl(place / "test.jsonl", made)
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("MEDTASKS_DATA", raising=False)
    forget()
    return folder


def answers(key: dict, *, native: str = "ja"):
    def answer(row: str, question: str) -> str:
        about = key[row]["about"]
        if about["criterion"] in ("signed", "native", "remark"):
            return {"signed": "A. Example, physician", "native": native, "remark": ""}[about["criterion"]]
        wrong_gold = about["criterion"] == "answer" and not about["item"].startswith("sample ")
        return "no" if wrong_gold and about["item"] == first_of(key) else "yes"

    return answer


def first_of(key: dict) -> str:
    items = {row["about"]["item"] for row in key.values()}
    return min(item for item in items if item != "prompt" and not item.startswith("sample "))


def test_a_signed_form_becomes_reviewed_with_the_golds_error_rate(rows, medtasks, tmp_path):
    done = medtasks("human", "export", TASK, "--kind", "review", "-n", 5, "--experts", 1, "-o", "forms")
    assert done.code == 0, done.text
    key = key_of(tmp_path / "forms")["forms"]["expert_1"]
    items = {row["about"]["item"] for row in key.values()}
    assert "prompt" in items and sum(item.startswith("sample ") for item in items) == 6 and len(items) == 12
    fill(tmp_path / "forms" / "expert_1.csv", answers(key))
    done = medtasks("human", "ingest", "forms/expert_1.csv", "--key", "forms/key.json", "-o", "out")
    assert done.code == 0, done.text
    signed = yaml.safe_load((tmp_path / "out" / "reviewed.yaml").read_text("utf-8"))
    (entry,) = signed[TASK]
    assert entry["gold"] == {"read": 5, "wrong": 1} and entry["rows"] == {"read": 6, "wrong": 0}
    # as the card takes it, and as commands show it: 1 of 5, Wilson
    card = rows / "card.yaml"
    card.write_text(card.read_text("utf-8") + yaml.safe_dump({"reviewed": signed[TASK]}), "utf-8")
    forget()
    said = "gold answers wrong: 1 of 5, 20.0 % [3.6, 62.4]"
    for command in (("ls", TASK), ("preview", TASK, "--data", "sample", "--strategy", "zero_shot")):
        shown = medtasks(*command)
        assert shown.code == 0 and said in shown.text, shown.text
    (listed,) = json.loads(medtasks("ls", "--json", TASK).out)
    assert listed["reviewed"][0]["gold"] == {"read": 5, "wrong": 1}
    assert medtasks("dev", "validate", TASK).code == 0


def test_what_nobody_has_read_says_none(medtasks):
    assert "reviewed: none" in medtasks("preview", "commons_mmlu_clinical_am", "--data", "sample").out
    assert "reviewed: commons_mmlu_clinical_zu: none" in medtasks("ls", "commons_mmlu_clinical_zu").out


def test_an_unsigned_form_writes_no_entry_and_a_wrong_language_is_named(rows, medtasks, tmp_path):
    medtasks("human", "export", TASK, "--kind", "review", "-n", 2, "--experts", 1, "-o", "forms")
    key = key_of(tmp_path / "forms")["forms"]["expert_1"]
    form = tmp_path / "forms" / "expert_1.csv"
    take = ("human", "ingest", form, "--key", "forms/key.json", "-o")
    fill(form, answers(key, native=""))
    assert medtasks(*take, "unsigned").code == 0 and not (tmp_path / "unsigned" / "reviewed.yaml").exists()
    fill(form, answers(key, native="japanese"))
    done = medtasks(*take, "wrong")
    assert done.code == 2 and "'japanese'" in done.err and "Traceback" not in done.text, done.text


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"by": "A", "native": ["xx1"], "day": "2026-11-27"}, "is no code of ISO 639"),
        (
            {"by": "A", "native": ["ja"], "day": "2026-11-27", "gold": {"read": 3, "wrong": 4}},
            "count each row once",
        ),
        ({"by": "A", "native": [], "day": "2026-11-27"}, "reviewed.0.native"),
        ({"native": ["ja"], "day": "soon"}, "reviewed.0.by"),
    ],
)
def test_a_wrong_entry_is_named_by_validate(tasks_of, medtasks, entry, said):
    folder = tasks_of("commons/crade") / "commons" / "crade"
    card = folder / "card.yaml"
    card.write_text(card.read_text("utf-8") + yaml.safe_dump({"reviewed": [entry]}), "utf-8")
    done = medtasks("dev", "validate", folder)
    assert done.code == 1 and said in done.text, done.text
