"""Real rows of MedHELM's public open-ended benchmarks through the whole path.

`MEDTASKS_REAL_ROWS` names a folder of such rows in their original schema; without it these tests skip.
"""

import csv
import json
import os
import shutil
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

from medtasks_ext.models.baselines import NearestShot, Oracle
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import STRATEGIES, Dataset
from medtasks_ext.rows.files import read_rows
from tests.conftest import write_jsonl
from tests.test_real_rows import REAL_ROWS, TASKS, metrics, real_rows_only

pytestmark = real_rows_only
#: benchmark -> files as they lie in the folder -> what they become in the data folder
FILES = {
    "aci_bench": {
        "aci_bench/challenge_data/valid.csv": "test.csv",
        "aci_bench/challenge_data/train.csv": "fewshot.csv",
    },
    "medication_qa": {"medicationqa/hf_train.jsonl": "test.jsonl"},
    "mediqa": {"mediqa2019_qa/MEDIQA2019-Task3-QA-ValidationSet.xml": "test.xml"},
}
REPORTS = {"mtsamples": "mtsamples_processed", "mtsamples_procedures": "mtsample_procedure"}


def folder_of(name: str) -> Path:
    return TASKS.datasets[f"medhelm_{name}"].folder


def documents_of(name: str) -> list:
    return load_documents(Dataset(folder_of(name)), cot=False, origin="local")["test"]


@pytest.fixture
def place(data_dir):
    """Put a benchmark's real rows into the data folder."""

    def put(name: str) -> None:
        target = data_dir / "medhelm" / name
        target.mkdir(parents=True)
        for source, file in FILES.get(name, {}).items():
            shutil.copy(REAL_ROWS / source, target / file)
        if name in REPORTS:
            texts = sorted((REAL_ROWS / "mtsamples" / "docs" / REPORTS[name]).glob("*.txt"))
            write_jsonl(
                target / "test.jsonl", [{"file": p.name, "text": p.read_text("utf-8")} for p in texts]
            )

    return put


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", [*FILES, *REPORTS])
def test_an_oracle_repeats_the_reference_and_gets_no_score(place, name, strategy):
    place(name)
    perfect = metrics(TASKS.datasets[f"medhelm_{name}"].task(strategy), Oracle())
    assert perfect["rouge_1"] == perfect["rouge_l"] == perfect["valid"] == 1
    assert perfect["scored"] == 0
    assert not {"score", "SAMPLE_DATA"} & set(perfect)


@pytest.mark.parametrize("name", ["aci_bench", "mediqa"])
def test_another_rows_answer_overlaps_little(place, name):
    place(name)
    assert metrics(f"medhelm_{name}_5shot", NearestShot())["rouge_2"] < 0.5


def test_csv_and_json_of_aci_bench_give_the_same_documents(data_dir):
    documents = []
    for place, source in enumerate(("challenge_data/valid.csv", "challenge_data_json/valid_full.json")):
        target = data_dir / str(place) / "medhelm" / "aci_bench"
        target.mkdir(parents=True)
        shutil.copy(REAL_ROWS / "aci_bench" / source, target / f"test{Path(source).suffix}")
        os.environ["MEDTASKS_DATA_DIR"] = str(data_dir / str(place))
        documents.append([(doc["prompt"], doc["gold"]) for doc in documents_of("aci_bench")])
    assert documents[0] == documents[1] and len(documents[0]) == 20


def test_gold_of_mediqa_is_the_answer_that_experts_ranked_first(place):
    place("mediqa")
    root = ElementTree.parse(REAL_ROWS / "mediqa2019_qa" / "MEDIQA2019-Task3-QA-ValidationSet.xml").getroot()
    best = {
        question.get("QID"): answer.findtext("AnswerText").strip()
        for question in root.iter("Question")
        for answer in question.iter("Answer")
        if answer.get("ReferenceRank") == "1"
    }
    assert {doc["id"]: doc["gold"] for doc in documents_of("mediqa")} == best
    assert len(best) == 25


def test_questions_on_medicines_without_an_answer_are_left_out(place):
    place("medication_qa")
    rows = [
        json.loads(line) for line in (REAL_ROWS / "medicationqa" / "hf_train.jsonl").open(encoding="utf-8")
    ]
    answered = [row for row in rows if (row["Answer"] or "").strip()]
    documents = documents_of("medication_qa")
    assert [doc["question"] for doc in documents] == [row["Question"] for row in answered]


@pytest.mark.parametrize("name", REPORTS)
def test_reports_are_cut_where_helm_cuts_them(place, name):
    place(name)
    cut = ["PLAN:"] if name == "mtsamples" else ["PLAN:", "SUMMARY:", "FINDINGS:"]
    expected = {}
    for path in (REAL_ROWS / "mtsamples" / "docs" / REPORTS[name]).glob("*.txt"):
        text = note = path.read_text("utf-8").strip()
        lines = [text.split(mark)[1].split("\n")[0].strip() for mark in cut_marks(text)]
        gold = next(filter(None, lines), None)
        for mark in cut:
            note = note.split(mark)[0].strip()
        late = name == "mtsamples" and path.name > "Ophthalmology - Letter - 3.txt"
        if gold and not late and "#" not in path.name:
            expected[path.name] = (note, gold)
    documents = documents_of(name)
    assert {doc["id"]: (doc["question"], doc["gold"]) for doc in documents} == expected
    assert len(documents) > 5


def cut_marks(text: str) -> list[str]:
    return [mark for mark in ("PLAN:", "SUMMARY:", "FINDINGS:") if mark in text]


def test_text_files_are_read_from_an_archive_as_rows(tmp_path):
    folder = REAL_ROWS / "mtsamples" / "docs" / "mtsample_procedure"
    with zipfile.ZipFile(tmp_path / "commit.zip", "w") as archive:
        for path in folder.glob("*.txt"):
            archive.write(path, f"benchmarkdata-commit/mtsample_procedure/{path.name}")
        archive.writestr("benchmarkdata-commit/README.md", "nothing")
    rows = read_rows(tmp_path / "commit.zip", "mtsample_procedure/*.txt")
    assert {row["file"]: row["text"] for row in rows} == {
        p.name: p.read_text("utf-8") for p in folder.glob("*.txt")
    }


def test_the_rows_of_aci_bench_hold_whole_conversations(place):
    place("aci_bench")
    with (REAL_ROWS / "aci_bench" / "challenge_data" / "valid.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        dialogues = [row["dialogue"] for row in csv.DictReader(file)]
    assert all(
        dialogue in doc["prompt"] for dialogue, doc in zip(dialogues, documents_of("aci_bench"), strict=True)
    )
