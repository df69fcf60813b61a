"""From files to documents: layouts, instructions, few-shot pools, prompts."""

import hashlib
import json
import tracemalloc

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.suites import bridge
from tests.conftest import edited_json, read_json, sample_rows, sft_row, write_jsonl

pytestmark = pytest.mark.usefixtures("few_rows")

TASKS = registry().datasets
CHIP_CTC = TASKS["bridge_chip_ctc"].folder
HOSPICE = TASKS["medhelm_hospice_referral"].folder
#: Stands for the sentence that asks for the answer alone, whose words are not ours.
SENTENCE = "Say this and no more:"
OFFICIAL = f"Name the category.\n{SENTENCE}\nclinical trial criterion: label"


def test_bridge_official_layout_is_read(chip_ctc):
    splits = load_documents(Dataset(CHIP_CTC), cot=False)
    assert [document["gold"] for document in splits["test"]][:3] == ["年龄", "疾病", "药物"]
    assert len(splits["fewshot"]) == 5
    loaded = splits["test"][0].loaded.record
    assert (loaded["origin"], loaded["instruction"], loaded["n_test"]) == ("local", "own", 8)


def test_the_strategies_differ_in_one_line(chip_ctc):
    direct, cot = (
        load_documents(Dataset(CHIP_CTC), cot=cot)["test"][0]["system"].split("\n") for cot in (False, True)
    )
    assert [line for line in direct if line not in cot] == [
        "Reply with nothing but the answer, in exactly this format:"
    ]
    assert "Result:" in cot and "Result:" not in direct


def test_an_official_instruction_is_used_as_it_stands_and_swapped_for_cot(chip_ctc, monkeypatch):
    digest = hashlib.sha256(SENTENCE.encode()).hexdigest()
    monkeypatch.setattr(bridge, "DIRECT_SENTENCE", (len(SENTENCE), digest))
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    rows = [{**row, "instruction": OFFICIAL} for row in read_json(path)]
    path.write_text(json.dumps(rows))
    direct, cot = (load_documents(Dataset(CHIP_CTC), cot=cot)["test"][0] for cot in (False, True))
    assert direct["system"] == OFFICIAL
    assert direct.loaded.record["instruction"] == "official"
    before, _, after = OFFICIAL.partition(SENTENCE)
    assert cot["system"].startswith(before) and cot["system"].endswith("Result:" + after)
    assert cot.loaded.record["instruction"] == "official, own strategy line"


def test_an_official_instruction_without_the_sentence_keeps_its_prompt_under_cot(chip_ctc):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    rows = [{**row, "instruction": "Name the category."} for row in read_json(path)]
    path.write_text(json.dumps(rows))
    assert load_documents(Dataset(CHIP_CTC), cot=True)["test"][0]["system"] == "Name the category."


def test_rows_without_gold_are_predicted_and_not_scored(chip_ctc):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    path.write_text(json.dumps([{**row, "output": ""} for row in read_json(path)]))
    documents = load_documents(Dataset(CHIP_CTC), cot=False)["test"]
    assert {document["gold"] for document in documents} == {None}
    assert documents[0].loaded.record["n_without_gold"] == 8


def test_single_rows_with_blank_gold_are_left_out_as_officially_done(chip_ctc):
    with edited_json(chip_ctc / "bridge" / "CHIP-CTC.SFT.json") as rows:
        rows[0]["output"] = "  "
    loaded = load_documents(Dataset(CHIP_CTC), cot=False)["test"][0].loaded.record
    assert (loaded["n_test"], loaded["n_dropped"]) == (7, 1)


def test_rows_of_other_splits_are_no_test_rows(chip_ctc):
    with edited_json(chip_ctc / "bridge" / "CHIP-CTC.SFT.json") as rows:
        rows[1]["split"] = "dev"
    assert len(load_documents(Dataset(CHIP_CTC), cot=False)["test"]) == 7


def test_without_a_pool_five_rows_are_held_out_of_the_five_shot_task_alone(data_dir):
    rows = [{"prompt": "Q", "context": f"note {i}", "label": "AB"[i % 2]} for i in range(20)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    zero = load_documents(Dataset(HOSPICE), cot=False, shots=0)
    five = load_documents(Dataset(HOSPICE), cot=False, shots=5)
    assert (len(zero["test"]), len(zero["fewshot"])) == (20, 0)
    assert (len(five["test"]), len(five["fewshot"])) == (15, 5)
    assert five["test"][0].loaded.record["n_held_out"] == 5
    test, pool = ({document["prompt"] for document in five[split]} for split in ("test", "fewshot"))
    assert not test & pool and test | pool == {document["prompt"] for document in zero["test"]}


def test_rows_that_read_like_one_held_out_are_no_test_rows(data_dir):
    """Each note stands there twice, with other white space: none is both a shot and a test row."""
    rows = [
        {"prompt": "Q", "context": text, "label": label}
        for i in range(10)
        for text, label in ((f"note  {i}", "A"), (f"note {i} \n", "B"))
    ]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    five = load_documents(Dataset(HOSPICE), cot=False, shots=5)
    test, pool = ({" ".join(item["prompt"].split()) for item in five[split]} for split in ("test", "fewshot"))
    assert len(five["fewshot"]) == 5 and not test & pool
    assert len(five["test"]) == 2 * (10 - len(pool)) and len(test | pool) == 10


@pytest.mark.parametrize("shown", ["note 3", "  note\n3 "], ids=["to the letter", "with other white space"])
def test_an_example_that_is_also_a_test_row_is_refused(data_dir, shown):
    folder = data_dir / "medhelm" / "hospice_referral"
    shots = ["example 0", "example 1", "example 2", "example 3", shown]
    for name, notes in (("test", [f"note {i}" for i in range(6)]), ("fewshot", shots)):
        rows = [{"prompt": "Q", "context": note, "label": "A"} for note in notes]
        write_jsonl(folder / f"{name}.jsonl", rows)
    with pytest.raises(MedtasksError, match="few-shot row 5 is also test row 4: an example must not be"):
        load_documents(Dataset(HOSPICE), cot=False, shots=5)


def test_helm_draws_its_thousand_rows_by_numpy_seed_0(data_dir):
    import numpy as np

    rows = [{"prompt": "Q", "context": f"note {i}", "label": "A", "id": str(i)} for i in range(1200)]
    write_jsonl(data_dir / "medhelm" / "hospice_referral" / "test.jsonl", rows)
    documents = load_documents(Dataset(HOSPICE), cot=False)["test"]
    np.random.seed(0)
    expected = np.random.choice([row["id"] for row in rows], 1000, replace=False)
    assert [document["id"] for document in documents] == list(expected)


def test_without_a_system_role_the_first_user_turn_carries_the_instruction(chip_ctc):
    with_role = load_documents(Dataset(CHIP_CTC), cot=False)["test"][0]
    alone = load_documents(Dataset(CHIP_CTC), cot=False, system_role=False)["test"][0]
    assert alone["system"] == ""
    assert alone["prompt"] == f"{with_role['system']}\n\nInput:\n{with_role['prompt']}"
    shots = load_documents(Dataset(CHIP_CTC), cot=False, shots=5, system_role=False)
    assert shots["fewshot"][0]["prompt"].startswith(with_role["system"])
    assert shots["fewshot"][1]["prompt"] == "Input:\n示例1"
    assert shots["test"][0]["prompt"] == f"Input:\n{with_role['prompt']}"


def test_sample_rows_are_used_only_when_asked_for(data_dir):
    with pytest.raises(MedtasksError, match="not at hand"):
        load_documents(Dataset(CHIP_CTC), cot=False)
    assert load_documents(Dataset(CHIP_CTC), cot=False, origin="sample")["test"][0]["data"] == "sample"


def test_the_error_for_missing_data_names_every_missing_dataset_of_the_suite_and_what_runs(chip_ctc):
    with pytest.raises(MedtasksError) as error:
        load_documents(TASKS["bridge_brateca_mortality"], cot=False)
    text = str(error.value)
    assert "bridge_cares_area" in text and "bridge/Brateca-Mortality.SFT.json" in text
    assert "bridge_chip_ctc" not in text and text.count("bridge_brateca_mortality") == 3
    assert "`medtasks run` with the same --tasks runs what is there" in text
    assert "`medtasks data status bridge_brateca_mortality`" in text


def test_rows_may_have_several_references(data_dir):
    both = ["医生: 多休息", "医生: 多喝水"]
    more = {"task": "EHRQA-QA", "output_list": both}
    rows = [sft_row(i, f"患者：头疼{i}天", "医生: 多休息", **more) for i in range(6)]
    write_jsonl(data_dir / "bridge" / "ehrqa_qa" / "test.jsonl", rows)
    assert load_documents(TASKS["bridge_ehrqa_qa"], cot=False)["test"][0]["gold"] == both


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_text_with_unusual_line_separators_stays_in_one_row(data_dir, suffix):
    note = "first\u2028second\u0085third"
    path = data_dir / "medhelm" / "hospice_referral" / f"test.{suffix}"
    rows = [{"prompt": "Q", "context": f"{note} {i}", "label": "A"} for i in range(3)]
    if suffix == "jsonl":
        write_jsonl(path, rows)
    else:
        path.parent.mkdir(parents=True)
        path.write_text("prompt,context,label\n" + "".join(f"Q,{row['context']},A\n" for row in rows))
    documents = load_documents(Dataset(HOSPICE), cot=False)["test"]
    assert len(documents) == 3 and note in documents[0]["prompt"]


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("bridge_cantemist_ner", "Cantemist-NER"),
        ("bridge_cares_icd10_subblock", "CARES-ICD10 Sub-Block"),
        ("bridge_ifmir_ner_factuality", "IFMIR - NER&factuality"),
    ],
)
def test_official_files_are_found_under_other_spellings_of_their_name(data_dir, task, name):
    dataset = TASKS[task]
    rows = sample_rows(task)
    (data_dir / "bridge").mkdir()
    (data_dir / "bridge" / f"{name}.SFT.json").write_text(json.dumps(rows))
    assert len(load_documents(dataset, cot=False)["test"]) == len(rows)


def test_rows_leave_memory_once_their_documents_are_made_and_these_hold_each_text_once(data_dir):
    n, length = 200, 9000
    (data_dir / "bridge").mkdir(parents=True)
    rows = [sft_row(i, f"{i} note. " * (length // 9), "clinical trial criterion: 年龄") for i in range(n)]
    file = data_dir / "bridge" / "CHIP-CTC.SFT.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    n_bytes = sum(len(row["input"]) for row in rows)
    load_documents(Dataset(CHIP_CTC), cot=False, origin="sample")  # what all loads share
    tracemalloc.start()
    try:
        documents = load_documents(Dataset(CHIP_CTC), cot=False)["test"]
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert documents[3].input == rows[3]["input"] and documents[3].input in documents[3]["prompt"]
    assert held < 1.4 * n_bytes and most < 2.5 * n_bytes
