"""Real rows of MedHELM's public closed-ended benchmarks through the whole path.

`MEDTASKS_REAL_ROWS` names a folder of such rows in their original schema; without it these tests skip.
"""

import csv
import shutil
from pathlib import Path

import pytest

from medtasks_ext.models.baselines import Oracle
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import STRATEGIES, Dataset
from tests.conftest import read_json
from tests.test_real_rows import REAL_ROWS, TASKS, Fixed, metrics, real_rows_only

pytestmark = real_rows_only

MEDEC_FILE = "medec/MEDEC-MS-ValidationSet-with-GroundTruth-and-ErrorType.csv"
#: benchmark -> file in the folder, what it becomes in the data folder, documents in it
FILES = {
    "head_qa": ("headqa/HEAD_EN/test_HEAD_EN.json", "test.json", 28),  # of 30, two with an image
    "medbullets": ("medbullets/medbullets_op5.csv", "test.csv", 30),
    "medmcqa": ("medmcqa/train.jsonl", "test.jsonl", 60),
    "pubmedqa": ("pubmedqa/ori_pqal.json", "test.json", 60),
    "medhallu": ("medhallu/pqa_labeled.jsonl", "test.jsonl", 120),
    "medcalc_bench": ("medcalc_bench/test_data.csv", "test.csv", 47),
    "medec": (MEDEC_FILE, "test.csv", 60),
}


def put(data_dir: Path, name: str, source: str, target: str) -> Path:
    folder = data_dir / "medhelm" / name
    folder.mkdir(parents=True)
    shutil.copy(REAL_ROWS / source, folder / target)
    return TASKS.datasets[f"medhelm_{name}"].folder


@pytest.fixture(params=FILES)
def real(request, data_dir) -> str:
    source, target, _ = FILES[request.param]
    put(data_dir, request.param, source, target)
    return request.param


def rows(source: str) -> list[dict]:
    with (REAL_ROWS / source).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if any(row.values())]


def ceiling(name: str, documents: list) -> float:
    """1, but for categories that HELM's MedCalc metric does not know."""
    if name != "medcalc_bench":
        return 1
    unknown = {
        row["Row Number"] for row in rows(FILES[name][0]) if row["Category"] in ("lab", "lab test", "dosage")
    }
    return sum(document["id"] not in unknown for document in documents) / len(documents)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_oracle_reaches_its_ceiling(real, strategy):
    folder = TASKS.datasets[f"medhelm_{real}"].folder
    shots = 5 if strategy == "five_shot" else 0
    documents = load_documents(Dataset(folder), cot=False, origin="local", shots=shots)["test"]
    assert strategy == "five_shot" or len(documents) == FILES[real][2]
    perfect = metrics(f"medhelm_{real} {strategy}", Oracle())
    assert perfect["score"] == pytest.approx(ceiling(real, documents))
    assert perfect["valid"] == 1 and "SAMPLE_DATA" not in perfect


def test_one_letter_for_all_gets_its_share_of_the_gold(real):
    documents = load_documents(TASKS.datasets[f"medhelm_{real}"], cot=False, origin="local")["test"]
    targets = [document["target"] for document in documents]
    text = "CORRECT" if real == "medec" else "1" if real in ("medhallu", "medcalc_bench") else "B"
    got = metrics(f"medhelm_{real} zero_shot", Fixed(lambda document: text))["score"]
    if real != "medcalc_bench":  # there a value within the limits is right, too
        assert got == pytest.approx(targets.count(text) / len(targets))
    assert got < 0.7


def test_medcalc_accuracies_of_categories_are_complete(data_dir):
    put(data_dir, "medcalc_bench", *FILES["medcalc_bench"][:2])
    perfect = metrics("medhelm_medcalc_bench", Oracle())
    found = {row["Category"] for row in rows(FILES["medcalc_bench"][0])}
    assert all(perfect[f"accuracy_{name}"] == 1 for name in found)


def test_medec_sentences_with_an_error_never_score(data_dir):
    put(data_dir, "medec", *FILES["medec"][:2])
    perfect = metrics("medhelm_medec", Oracle())
    right = sum(row["Error Flag"] == "0" for row in rows(MEDEC_FILE)) / len(rows(MEDEC_FILE))
    assert perfect["medec_error_sentence_accuracy"] == pytest.approx(right)
    assert perfect["correction_rouge_avg"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "other", "with_image"),
    [("head_qa", "headqa/hf_en_test.jsonl", 2), ("pubmedqa", "pubmedqa/hf_pqa_labeled.jsonl", 0)],
)
def test_both_schemas_of_a_source_give_the_same_documents(name, other, with_image, data_dir, monkeypatch):
    found = []
    for place, files in (("authors", FILES[name][:2]), ("hub", (other, "test.jsonl"))):
        folder = put(data_dir / place, name, *files)
        monkeypatch.setenv("MEDTASKS_DATA_DIR", str(data_dir / place))
        documents = load_documents(Dataset(folder), cot=False)["test"]
        found.append({(document["prompt"], document["gold"]) for document in documents})
    authors, hub = found  # this copy of the hub's rows lacks the image column
    assert authors <= hub and len(hub - authors) == with_image


def test_questions_of_older_booklets_have_five_options(data_dir):
    folder = put(data_dir, "head_qa", "headqa/HEAD_EN/train_HEAD_EN.json", "test.json")
    exams = read_json(REAL_ROWS / "headqa/HEAD_EN/train_HEAD_EN.json")["exams"].values()
    wanted = ["ABCDE"[int(row["ra"]) - 1] for exam in exams for row in exam["data"] if not row["image"]]
    documents = load_documents(Dataset(folder), cot=False)["test"]
    assert [document["gold"] for document in documents] == wanted
    assert any(len(document["options"]) == 5 for document in documents)
