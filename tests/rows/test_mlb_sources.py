"""MLB's extraction sets: CBLUE's own files, rows of private data, and the templates for their owners."""

import csv
import json

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Dataset, forget, registry
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.sources import source_of
from tests.conftest import write_jsonl

TASKS = registry().datasets


def entity(text: str, kind: str, start: int) -> dict:
    return {"start_idx": start, "end_idx": start + len(text) - 1, "type": kind, "entity": text}


def relation(subject: str, predicate: str, value: str, kind: str) -> dict:
    return {
        "Combined": True, "predicate": predicate, "subject": subject, "subject_type": "疾病",
        "object": {"@value": value}, "object_type": {"@value": kind},
    }  # fmt: skip


#: dataset -> stem of CBLUE's files, and a row as they hold it
CBLUE = {
    "chip_cdn": ("CHIP-CDN_{}.json", {"text": "高血压{}", "normalized_result": "高血压病##2型糖尿病"}),
    "cmeee": (
        "CMeEE-V2_{}.json",
        {"text": "肺炎{}", "entities": [entity("肺炎", "dis", 0), entity("肺", "bod", 0)]},
    ),
    "chip_cdee": (
        "CHIP-CDEE_{}.json",
        {
            "id": "7",
            "text": "无发热{}",
            "event": [
                {"core_name": "发热", "tendency": "否定 ", "character": [], "anatomy_list": []},
                {"core_name": "发热", "tendency": "否定", "character": [], "anatomy_list": []},
            ],
        },
    ),
    "cmeie": (
        "CMeIE_{}.jsonl",
        {"text": "肺炎@咳嗽{}", "spo_list": [relation("肺炎", "临床表现", "咳嗽", "症状")]},
    ),
}


def numbered(row: dict, number: str) -> dict:
    return {**row, "text": row["text"].format(number), **({"id": number} if "id" in row else {})}


def write(path, rows: list[dict]) -> None:
    if path.suffix == ".jsonl":
        write_jsonl(path, rows)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")


@pytest.mark.parametrize("name", CBLUE)
def test_the_files_of_cblue_are_read_as_they_are_distributed(data_dir, name):
    pattern, row = CBLUE[name]
    folder = data_dir / "mlb" / name / "original" / "CBLUEDatasets"
    write(folder / pattern.format("dev"), [numbered(row, f"第{i}例") for i in range(4)])
    write(folder / pattern.format("train"), [numbered(row, f"训练{i}") for i in range(9)])
    write(folder / pattern.format("test"), [{"text": "没有标注"}])
    splits = load_documents(TASKS[f"mlb_{name}"], cot=False, shots=5)
    assert len(splits["test"]) == 4 and len(splits["fewshot"]) == 5
    document = splits["test"][2]
    assert "第2例" in document["prompt"] and "训练" in splits["fewshot"][0]["prompt"]
    assert (
        document["gold"]["tuples"]
        == {
            "chip_cdn": [["2型糖尿病"], ["高血压病"]],
            "cmeee": [["肺", "bod"], ["肺炎", "dis"]],
            "chip_cdee": [["发热", "否定", [], []]],  # repeated in the source, a blank behind its status
            "cmeie": [["肺炎", "临床表现", "咳嗽"]],
        }[name]
    )
    assert (document.loaded.record["origin"], document.loaded.record["rebuilt"]) == ("local", False)


def symptoms(*entities: dict) -> list[dict]:
    return [{"text": f"病历{i}", "entities": [item]} for i, item in enumerate(entities)]


def test_attributes_are_optional_and_other_keys_do_not_show(data_dir):
    rows = symptoms({"name": "咳嗽", "id": 5}, {"name": "发热", "status": "阴性", "severity": None})
    write_jsonl(data_dir / "mlb" / "maeesymp" / "test.jsonl", rows)
    found = load_documents(TASKS["mlb_maeesymp"], cot=False)["test"]
    assert [document["target"] for document in found] == [
        '[\n{"name": "咳嗽"}\n]',
        '[\n{"name": "发热", "status": "阴性"}\n]',
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a", "entities": "咳嗽"}, "column entities holds '咳嗽', expected a list of objects"),
        ({"text": "a", "entities": [{"status": "阳性"}]}, "a record has no name"),
        ({"text": "a", "entities": [{"name": "咳嗽", "status": "有"}]}, "status '有' is not one of"),
        ({"text": "a"}, "column entities is missing"),
    ],
)
def test_a_row_that_does_not_fit_is_named(data_dir, row, message):
    path = write_jsonl(data_dir / "mlb" / "maeesymp" / "test.jsonl", [row])
    with pytest.raises(MedtasksError, match=message) as error:
        load_documents(TASKS["mlb_maeesymp"], cot=False)
    assert str(path) in str(error.value) and error.value.remedy


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
        ("A 甲\nB 乙\nC 甲\nD 丁", "C", {"甲", "乙", "丁"}, {"甲"}),
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
