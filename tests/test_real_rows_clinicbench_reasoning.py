"""Real rows of ClinicBench's public reasoning datasets through the whole path.

`MEDTASKS_REAL_ROWS` names a folder of such rows in their original schema; without it these tests skip.
"""

import ast
import csv
import json
import shutil

import pytest

from medtasks_ext.models.baselines import Oracle
from medtasks_ext.registry import STRATEGIES
from medtasks_ext.runner.evaluate import Settings, build_task
from tests.test_real_rows import REAL_ROWS, TASKS, Fixed, metrics, real_rows_only

pytestmark = real_rows_only

DRUG_FILE = "clinicbench_new_tasks/Treatment-Recommendation.csv"
#: dataset -> file in the folder, what it becomes in the data folder
FILES = {
    "medqa": ("medqa_usmle/phrases_no_exclude_test.jsonl", "test.jsonl"),
    "medmcqa": ("medmcqa/train.jsonl", "test.jsonl"),
    "mmlu_med": ("mmlu_medical/hf_test.jsonl", "test.jsonl"),
    "treatment_recommendation": (DRUG_FILE, "test.csv"),
}
LETTERS = [name for name in FILES if name != "treatment_recommendation"]


@pytest.fixture(autouse=True)
def files(data_dir):
    for name, (source, target) in FILES.items():
        folder = data_dir / "clinicbench" / name
        folder.mkdir(parents=True)
        shutil.copy(REAL_ROWS / source, folder / target)


def documents(name: str, strategy: str = "zero_shot") -> list:
    task = TASKS.datasets[f"clinicbench_{name}"].task(strategy)
    return list(build_task(TASKS, task, Settings(data="local")).eval_docs)


def lines(source: str) -> list[dict]:
    return [json.loads(line) for line in (REAL_ROWS / source).read_text(encoding="utf-8").splitlines()]


def are_some_of(found: list, rows: list) -> bool:
    """Whether they are among the rows, in the same order."""
    rest = iter(rows)
    return all(any(item == row for row in rest) for item in found)


def gold_lists() -> list[list[str]]:
    with (REAL_ROWS / DRUG_FILE).open(encoding="utf-8", newline="") as file:
        return [ast.literal_eval(row["commonMedications"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", FILES)
def test_the_gold_answers_are_entirely_right(name, strategy):
    got = metrics(f"clinicbench_{name} {strategy}", Oracle())
    assert got["score"] == got["valid"] == 1


def test_gold_letters_are_those_of_the_rows():
    expected = {
        "medqa": [row["answer_idx"] for row in lines(FILES["medqa"][0])],
        "medmcqa": ["ABCD"[row["cop"]] for row in lines(FILES["medmcqa"][0])],
        # of the file of all subjects the suite takes one
        "mmlu_med": ["ABCD"[row["answer"]] for row in lines(FILES["mmlu_med"][0])
                     if row["subject"] == "professional_medicine"],
    }  # fmt: skip
    for name in LETTERS:
        golds = [document["gold"] for document in documents(name)]
        assert are_some_of(golds, expected[name])
        assert len(golds) == len(expected[name]) - 5  # without a pool, five rows are kept for shots


@pytest.mark.parametrize("name", LETTERS)
def test_a_constant_letter_gets_its_share_and_an_announced_text_of_an_option_is_the_answer(name):
    golds = [document["gold"] for document in documents(name)]
    got = metrics(f"clinicbench_{name} zero_shot", Fixed(lambda document: "The answer is (C)."))
    assert got["acc"] == pytest.approx(golds.count("C") / len(golds))
    assert got["valid"] == 1
    named = Fixed(lambda document: "Answer: " + document["options"]["ABCD".index(document["gold"])])
    assert metrics(f"clinicbench_{name} zero_shot", named)["acc"] == 1


def test_gold_drugs_are_those_of_the_rows_and_the_same_rows_are_scored_with_and_without_shots():
    scored = [document["gold"] for document in documents("treatment_recommendation")]
    assert are_some_of(scored, gold_lists())
    assert len(scored) == len(gold_lists()) - 5
    assert [document["gold"] for document in documents("treatment_recommendation", "five_shot")] == scored


def test_generic_names_or_brands_alone_are_right():
    generic = Fixed(lambda document: "\n".join(drug.split(" (")[0] for drug in document["gold"]))
    got = metrics("clinicbench_treatment_recommendation zero_shot", generic)
    assert got["micro_f1"] == got["micro_f1_substring"] == 1
    brands = Fixed(lambda document: "; ".join(drug.split("(")[-1].strip(")") for drug in document["gold"]))
    got = metrics("clinicbench_treatment_recommendation zero_shot", brands)
    assert got["micro_precision"] == 1
    assert got["micro_recall"] > 0.99  # a brand that two entries share is one name


def test_one_drug_of_each_list_has_full_precision_and_the_recall_of_one():
    golds = [document["gold"] for document in documents("treatment_recommendation")]
    first = Fixed(lambda document: "I think so.\nFinal Answer: " + document["gold"][0])
    got = metrics("clinicbench_treatment_recommendation zero_shot", first)
    assert got["micro_precision"] == got["list_length"] == 1
    assert got["micro_recall"] == pytest.approx(len(golds) / sum(map(len, golds)))
