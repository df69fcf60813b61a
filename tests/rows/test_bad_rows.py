"""Rows that are not as they should be: one message with place and remedy."""

import json

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from tests.conftest import edited_json, read_json, sft_row, write_jsonl

TASKS = registry().datasets
CHIP_CTC = TASKS["bridge_chip_ctc"].folder
HOSPICE = TASKS["medhelm_hospice_referral"].folder


def fails(folder, *, cot=False, shots=0) -> MedtasksError:
    with pytest.raises(MedtasksError) as error:
        load_documents(Dataset(folder), cot=cot, shots=shots)
    assert error.value.remedy
    return error.value


def edit(chip_ctc, change):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    with edited_json(path) as rows:
        change(rows)
    return path


def test_a_gold_label_outside_the_closed_list_names_row_and_format(chip_ctc):
    path = edit(chip_ctc, lambda rows: rows[2].update(output="clinical trial criterion: 天气"))
    error = fails(CHIP_CTC)
    assert str(path) in str(error) and "test row 3 (id test-2)" in str(error)
    assert "clinical trial criterion: <one of 43 labels>" in str(error)


def test_an_empty_test_split_is_refused(chip_ctc):
    edit(chip_ctc, lambda rows: [row.update(split="train") for row in rows])
    assert "no test row is left" in str(fails(CHIP_CTC))


def test_an_unknown_data_origin_lists_the_known_ones():
    with pytest.raises(MedtasksError, match="local, hub, release or sample"):
        load_documents(Dataset(HOSPICE), cot=False, origin="cloud")


def test_too_few_rows_to_hold_any_out(data_dir):
    rows = [{"prompt": "Q", "context": str(i), "label": "A"} for i in range(4)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    assert "4 test rows are too few" in str(fails(HOSPICE, shots=5))


def test_a_value_of_gold_outside_a_closed_list_is_named(data_dir):
    rows = [sft_row(1, "医生：做个心电图", "entity: 心电图, type: exam, status: 未知;", task="MIE")]
    write_jsonl(data_dir / "bridge" / "mie" / "test.jsonl", rows)
    assert "type 'exam' is not one of: symptom" in str(fails(TASKS["bridge_mie"].folder))


def test_values_of_an_official_row_are_accepted_as_the_official_scorer_does(data_dir, caplog):
    gold, more = "entity: 心电图, type: 检查, status: 未知;", {"task": "MIE", "instruction": "List."}
    rows = [sft_row(i, f"医生：做个心电图{i}", gold, **more) for i in range(6)]
    write_jsonl(data_dir / "bridge" / "mie" / "test.jsonl", rows)
    documents = load_documents(TASKS["bridge_mie"], cot=False)["test"]
    assert documents[0]["gold"] == [["心电图", "检查", "未知"]]
    assert "type '检查' is not one of: symptom" in caplog.text


def test_an_example_file_with_too_few_rows_is_named_where_shots_are_needed(chip_ctc):
    path = chip_ctc / "bridge" / "example" / "CHIP-CTC.example.json"
    path.write_text(json.dumps(read_json(path)[:3]))
    error = fails(CHIP_CTC, shots=5)
    assert str(path) in str(error) and "5 shots asked for, the few-shot pool has 3 rows" in str(error)
    assert load_documents(Dataset(CHIP_CTC), cot=False)["test"]


def test_a_file_of_another_language_is_named_with_its_row(chip_ctc):
    path = edit(chip_ctc, lambda rows: rows[1].update(language="es"))
    error = fails(CHIP_CTC)
    assert str(path) in str(error) and "test row 2 is in language 'es', the task in 'zh'" in str(error)


@pytest.mark.parametrize("code", ["cn", "zh", "", "Chinese"])
def test_other_codes_of_the_language_are_accepted(chip_ctc, code):
    edit(chip_ctc, lambda rows: [row.update(language=code) for row in rows])
    assert load_documents(Dataset(CHIP_CTC), cot=False)["test"]


def test_faulty_files_do_not_stop_the_other_tasks(medtasks, chip_ctc):
    (chip_ctc / "bridge" / "MIE.SFT.json").write_text('[{"task": "MIE", "split": "test", "output": "x"}]')
    (chip_ctc / "bridge" / "MEDDG.SFT.json").write_bytes('[{"task": "médico"}]'.encode("latin-1"))
    outcome = medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc,bridge_mie,bridge_meddg")
    assert outcome.code == 1 and "bridge_chip_ctc" in outcome.out
    assert "MIE.SFT.json" in outcome.err and "column input" in outcome.err
    assert "MEDDG.SFT.json" in outcome.err and "not UTF-8 text" in outcome.err
