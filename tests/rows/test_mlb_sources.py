"""MLB's extraction sets: CBLUE's own files, rows of private data, and the templates for their owners."""

import json

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.filters import json_objects
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


def test_the_first_version_of_cmeee_is_read_where_the_second_is_not_there(data_dir, tmp_path, monkeypatch):
    _, row = CBLUE["cmeee"]
    for root, versions in ((data_dir, ["CMeEE"]), (tmp_path / "both", ["CMeEE", "CMeEE-V2"])):
        for version in versions:
            folder = root / "mlb" / "cmeee" / "original"
            write(folder / f"{version}_dev.json", [numbered(row, f"({version})")])
            write(folder / f"{version}_train.json", [numbered(row, f"训练{i}") for i in range(9)])
        monkeypatch.setenv("MEDTASKS_DATA_DIR", str(root))
        prompt = load_documents(TASKS["mlb_cmeee"], cot=False)["test"][0]["prompt"]
        assert f"肺炎({versions[-1]})" in prompt


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


def test_the_template_for_the_owner_lists_required_and_optional_columns(medtasks, tmp_path):
    outcome = medtasks("data", "template", "mlb_maeesymp", "-o", tmp_path)
    readme = (tmp_path / "mlb" / "maeesymp" / "README.md").read_text(encoding="utf-8")
    assert outcome.code == 0
    assert "| `entities` | a list of objects |" in readme
    assert "| `department` | text or a list of texts |" in readme and "(optional)" in readme


def test_objects_are_written_one_a_line_with_the_named_fields_in_their_order():
    items = [{"b": "二", "a": 1, "c": 3}, {"a": 1, "b": "二", "c": 4}, {"a": None}, {"b": {"x": '引"号'}}]
    assert json_objects(items[:2], ["a", "b"]) == '[\n{"a": 1, "b": "二"}\n]'  # alike in these fields
    assert json.loads(json_objects(items, {"a": "a", "深": "b.x"})) == [{"a": 1}, {}, {"深": '引"号'}]
    assert json_objects([], ["a"]) == "[]"
    for wrong in ("text", [1], None, {"a": 1}):
        with pytest.raises(ValueError, match="no list of objects"):
            json_objects(wrong, ["a"])
