"""Odd rows of a pinned download: left out and counted, or read by rule; local rows stay strict."""

import csv
import json

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Dataset, forget, registry
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.sources import source_of

CMEXAM = registry().datasets["mlb_cmexam"]
FIVE = "A 甲\nB 乙\nC 丙\nD 丁\nE 戊"
GOOD = [{"Question": f"题{i}", "Options": FIVE, "Answer": "ABCDE"[i % 5]} for i in range(8)]


@pytest.fixture
def download(tmp_path, monkeypatch):
    """Write rows where the pinned files of CMExam lie after `data fetch --to`."""
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path))

    def written(test: list[dict], pool: list[dict] | None = None, dataset: Dataset = CMEXAM) -> None:
        for file, rows in zip(remote_files(source_of(dataset)), (test, pool or GOOD[:5]), strict=True):
            path = tmp_path / "fetched" / file.carried
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, ["Question", "Options", "Answer"])
                writer.writeheader()
                writer.writerows(rows)

    return written


def odd(**change) -> dict:
    return {**GOOD[0], "Question": "另一题", **change}


def asked(shots: int = 0):
    return load_documents(CMEXAM, cot=False, shots=shots)


def test_rows_without_an_answer_are_left_out_and_counted(download):
    download([*GOOD, odd(Answer="nan"), odd(Question="又一题", Answer="")], [odd(Question="例")])
    loaded = asked()["test"][0].loaded
    assert loaded.record["n_test"] == 3 * len(GOOD)
    assert loaded.exclusions == "8 of 10 rows (2 excluded: the source gives no right answer)"
    assert loaded.record["excluded"] == {"the source gives no right answer": 2}


@pytest.mark.parametrize(
    ("options", "answer", "texts", "gold"),
    [
        ("B 乙\nC 丙\nD 丁", "C", {"乙", "丙", "丁"}, {"丙"}),
        ("A 甲\nB 乙\nD 丁", "AD", {"甲", "乙", "丁"}, {"甲", "丁"}),
        ("A 甲\nB 乙\nC 甲\nD 丁", "C", {"甲", "乙", "丁"}, {"甲"}),
        ("B 乙\nA 甲\nC 丙", "A", {"甲", "乙", "丙"}, {"甲"}),
    ],
)
def test_options_are_read_by_their_letters_and_alike_ones_are_one(download, options, answer, texts, gold):
    download([*GOOD, odd(Options=options, Answer=answer)], [odd(Question="例")])
    trials = [document for document in asked()["test"] if document["item"] == "9"]
    assert [set(document["options"]) for document in trials] == [texts] * 3
    assert [set(document["gold"]) for document in trials] == [gold] * 3
    assert asked()["test"][0].loaded.exclusions is None


def test_an_answer_among_the_missing_options_is_still_a_fault(download):
    download([*GOOD, odd(Options="B 乙\nC 丙", Answer="A")])
    assert [str(fault.what) for fault in check_rows(CMEXAM).faults] == ["test row 9 (id 9) has no option A"]


def test_a_row_of_the_pool_that_is_a_test_row_leaves_the_pool(download):
    download(GOOD, [GOOD[3], *(odd(Question=f"例{i}") for i in range(5))])
    assert [document["id"] for document in asked(shots=5)["fewshot"]] == ["2", "3", "4", "5", "6"]


def test_local_rows_stay_strict(data_dir):
    path = data_dir / "mlb" / "cmexam" / "test.jsonl"
    path.parent.mkdir(parents=True)
    for change in ({"Answer": "nan"}, {"Options": "B 乙\nC 丙"}, {"Options": "A 甲\nB 甲"}):
        path.write_text(json.dumps(odd(**change)), encoding="utf-8")
        with pytest.raises(MedtasksError, match="test row 1"):
            asked()


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("- {when: \"Question == '题2'\", most: 1, reason: odd}", "7 of 8 rows (1 excluded: odd)"),
        ("- {when: \"Answer == 'A'\", most: 1, reason: odd}",
         "2 test rows are excluded (odd), 1 were expected"),
    ],
)  # fmt: skip
def test_no_more_rows_are_left_out_than_were_declared(download, tasks_of, block, found):
    file = tasks_of("mlb/cmexam") / "mlb" / "cmexam" / "task.yaml"
    before, _, rest = file.read_text(encoding="utf-8").partition("  exclude:\n")
    after = rest.partition("  identity: Question")[2]
    file.write_text(f"{before}  exclude:\n    {block}\n  identity: Question{after}", encoding="utf-8")
    forget()
    dataset = registry().datasets["mlb_cmexam"]
    download(GOOD, [odd()], dataset)
    check = check_rows(dataset)
    assert found in (check.test[0].loaded.exclusions if check.test else str(check.faults[0]))
