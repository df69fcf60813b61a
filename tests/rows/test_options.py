"""Permuted options: orders, their seeds, and options that cannot be asked."""

import json
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.filters import as_letters, permuted
from tests.conftest import write_jsonl

TASKS = registry().datasets
MAEXAM, CMEXAM = TASKS["mlb_maexam"].folder, TASKS["mlb_cmexam"].folder
FIVE = ["甲", "乙", "丙", "丁", "戊"]


def row(number: object, *, options: list[str] = FIVE, answer: str = "A") -> dict:
    return {"id": str(number), "options": options, "answer": answer}


OPTIONS = st.lists(st.text("甲乙丙丁戊己", min_size=1, max_size=3), min_size=2, max_size=6, unique=True)


@given(OPTIONS, st.data(), st.integers())
def test_every_trial_asks_the_same_question_with_the_same_right_content(options, data, number):
    right = sorted(data.draw(st.sets(st.integers(0, len(options) - 1), min_size=1)))
    trials = permuted(row(number, options=options, answer=as_letters(right)), 3)
    assert [trial["trial"] for trial in trials] == [0, 1, 2]
    for trial in trials:
        assert sorted(trial["options"]) == sorted(options)
        assert {trial["options"]["ABCDEF".index(letter)] for letter in trial["answer"]} == {
            options[place] for place in right
        }
    orders = {tuple(trial["options"]) for trial in trials}
    assert len(orders) == (2 if len(options) == 2 else 3)  # never the same order three times


def test_all_orders_and_all_places_of_the_right_answer_are_equally_frequent():
    asked = [permuted(row(number), 3) for number in range(10_000)]
    for trial in range(3):
        places = Counter(trials[trial]["answer"] for trials in asked)
        assert chisquare([places[letter] for letter in "ABCDE"]).pvalue > 0.001
    orders = Counter(tuple(trial["options"]) for trials in asked for trial in trials)
    assert chisquare([orders[order] for order in permutations(FIVE)]).pvalue > 0.001


def test_the_trials_of_a_question_do_not_depend_on_each_other():
    pairs = Counter(tuple(trial["answer"] for trial in permuted(row(number), 2)) for number in range(10_000))
    # both orders differ: of 120 x 119 pairs 24 x 23 have the right answer at the same place
    same, other = 24 * 23 / (120 * 119), 24 * 24 / (120 * 119)
    letters = "ABCDE"
    found = [pairs[a, b] for a in letters for b in letters]
    expected = [10_000 * (same if a == b else other) for a in letters for b in letters]
    assert chisquare(found, expected).pvalue > 0.001


GOLDEN = {
    "1": ["丁乙戊丙甲", "乙甲戊丁丙", "丙甲戊乙丁"],
    "s1": ["乙丁甲丙戊", "丙甲乙丁戊", "丙甲丁乙戊"],
    "试题-7": ["丙丁乙戊甲", "丁甲戊丙乙", "乙甲戊丁丙"],
}


def test_orders_are_these_on_every_machine():
    assert {
        number: ["".join(trial["options"]) for trial in permuted(row(number), 3)] for number in GOLDEN
    } == GOLDEN


def question(number: int, **change) -> dict:
    return {"id": f"q{number}", "question": f"题{number}", "options": FIVE, "answer": [number % 5], **change}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": ["甲", "乙", "甲", "丁", "戊"]}, "has the option '甲' more than once"),
        ({"options": ["甲", "乙 ", "丙", " 乙", "戊"]}, "has the option '乙' more than once"),
        ({"options": FIVE[:3], "answer": [3]}, "has the answer 'D', which is none of its 3 options"),
        ({"options": ["甲"], "answer": [0]}, "has 1 options"),
        ({"answer": []}, "no list of indices"),
        ({"answer": [-1]}, "-1 is no index into the options"),
        ({"answer": ["A"]}, "(a list with other items than integers), expected a list of integers"),
        ({"answer": "A"}, "column answer holds 'A', expected a list of integers"),
    ],
)
@pytest.mark.parametrize("split", ["test", "fewshot"])
def test_a_question_that_cannot_be_asked_names_file_row_and_remedy(data_dir, split, change, message):
    folder = data_dir / "mlb" / "maexam"
    rows = {
        name: [question(i) for i in range(first, first + 6)] for name, first in (("test", 0), ("fewshot", 9))
    }
    rows[split][2] = {**rows[split][2], **change}
    for name, content in rows.items():
        write_jsonl(folder / f"{name}.jsonl", content)
    with pytest.raises(MedtasksError) as error:
        load_documents(Dataset(MAEXAM), cot=False, shots=5)
    text, split_name = str(error.value), {"test": "test", "fewshot": "few-shot"}[split]
    assert f"{split_name} row 3" in text and message in text and str(folder) in text
    assert error.value.remedy


def test_a_letter_beyond_the_options_of_the_public_set_is_named_too(data_dir):
    rows = [
        {"Question": f"题{i}", "Options": "A 甲\nB 乙\nC 丙", "Answer": "ABD" if i == 1 else "A"}
        for i in range(3)
    ]
    path = write_jsonl(data_dir / "mlb" / "cmexam" / "test.jsonl", rows)
    with pytest.raises(MedtasksError, match=r"test row 2 .*'ABD', which is none of its 3 options") as error:
        load_documents(Dataset(CMEXAM), cot=False)
    assert str(path) in str(error.value)


def test_several_right_options_are_one_set_in_every_trial(data_dir):
    rows = [question(i, answer=[0, 3]) for i in range(3)]
    write_jsonl(data_dir / "mlb" / "maexam" / "test.jsonl", rows)
    for document in load_documents(Dataset(MAEXAM), cot=False)["test"]:
        assert document["gold"] == sorted(["甲", "丁"])
        shown = [document["options"]["ABCDE".index(letter)] for letter in document["target"].split("：")[1]]
        assert sorted(shown) == document["gold"]


def test_a_shuffled_question_whose_answer_is_no_letter_is_a_named_fault(data_dir):
    dataset = TASKS["clinicbench_pharmacology_qa_shuffled"]
    lines = (dataset.folder / "sample.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if '"test"' in line]
    rows[1]["answer"] = "the second"
    write_jsonl(data_dir / "clinicbench" / dataset.folder.name / "test.jsonl", rows)
    with pytest.raises(MedtasksError, match="test row 2"):
        load_documents(dataset, cot=False)
