"""From files to documents: layouts, instructions, few-shot pools, prompts."""

import csv
import hashlib
import json
from pathlib import Path

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import Dataset, registry
from medtasks_ext.rows.originals.build import count_words
from medtasks_ext.suites import bridge
from tests.conftest import edited_json, read_json, sample_rows, sft_row, write_jsonl

pytestmark = pytest.mark.usefixtures("few_rows")

TASKS = registry().datasets
CHIP_CTC = TASKS["bridge_chip_ctc"].folder
HOSPICE = TASKS["medhelm_hospice_referral"].folder
#: Stands for the sentence that asks for the answer alone, whose words are not ours.
SENTENCE = "Say this and no more:"
OFFICIAL = f"Name the category.\n{SENTENCE}\nclinical trial criterion: label"


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


def test_rows_without_gold_are_predicted_and_not_scored(chip_ctc):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    path.write_text(json.dumps([{**row, "output": ""} for row in read_json(path)]))
    documents = load_documents(Dataset(CHIP_CTC), cot=False)["test"]
    assert {document["gold"] for document in documents} == {None}
    assert documents[0].loaded.record["n_without_gold"] == 8


def test_of_a_release_rows_with_blank_gold_and_of_other_splits_are_left_out(chip_ctc):
    with edited_json(chip_ctc / "bridge" / "CHIP-CTC.SFT.json") as rows:
        rows[0]["output"], rows[1]["split"] = "  ", "dev"
    splits = load_documents(Dataset(CHIP_CTC), cot=False)
    assert [document["gold"] for document in splits["test"]][:1] == ["药物"] and len(splits["fewshot"]) == 5
    loaded = splits["test"][0].loaded.record
    assert (loaded["origin"], loaded["n_test"], loaded["n_dropped"]) == ("local", 6, 1)


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


@pytest.mark.parametrize(
    ("task", "name"),
    [("bridge_cantemist_ner", "Cantemist-NER"), ("bridge_ifmir_ner_factuality", "IFMIR - NER&factuality")],
)
def test_official_files_are_found_under_other_spellings_of_their_name(data_dir, task, name):
    dataset = TASKS[task]
    rows = sample_rows(task)
    (data_dir / "bridge").mkdir()
    (data_dir / "bridge" / f"{name}.SFT.json").write_text(json.dumps(rows))
    assert len(load_documents(dataset, cot=False)["test"]) == len(rows)


def fails(folder, **options) -> MedtasksError:
    with pytest.raises(MedtasksError) as error:
        load_documents(Dataset(folder), cot=False, **options)
    assert error.value.remedy
    return error.value


def edit(chip_ctc, change):
    path = chip_ctc / "bridge" / "CHIP-CTC.SFT.json"
    with edited_json(path) as rows:
        change(rows)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[2].update(output="clinical trial criterion: 天气"),
         ["test row 3 (id test-2)", "clinical trial criterion: <one of 43 labels>"]),
        (lambda rows: [row.update(split="train") for row in rows], ["no test row is left"]),
        (lambda rows: rows[1].update(language="es"), ["test row 2 is in language 'es', the task in 'zh'"]),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_with_its_file(chip_ctc, change, said):
    path = edit(chip_ctc, change)
    error = str(fails(CHIP_CTC))
    assert str(path) in error and all(part in error for part in said)


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


def test_faulty_files_do_not_stop_the_other_tasks(medtasks, chip_ctc):
    (chip_ctc / "bridge" / "MIE.SFT.json").write_text('[{"task": "MIE", "split": "test", "output": "x"}]')
    (chip_ctc / "bridge" / "MEDDG.SFT.json").write_bytes('[{"task": "médico"}]'.encode("latin-1"))
    outcome = medtasks("run", "--model", "oracle", "--tasks", "bridge_chip_ctc,bridge_mie,bridge_meddg")
    assert outcome.code == 1 and "bridge_chip_ctc" in outcome.out
    assert "MIE.SFT.json" in outcome.err and "column input" in outcome.err
    assert "MEDDG.SFT.json" in outcome.err and "not UTF-8 text" in outcome.err


OWN = [name for name, item in TASKS.items() if item.suite.id in ("medhelm", "clinicbench", "mlb")]


def prompt(name, *, cot):
    document = load_documents(TASKS[name], cot=cot, origin="sample")["test"][0]
    return document["prompt"]


@pytest.mark.parametrize("name", OWN)
def test_a_prompt_that_asks_to_reason_first_is_the_direct_one_without_its_cue(name):
    block = TASKS[name].blocks["prompt"]
    direct, reasoned = prompt(name, cot=False), prompt(name, cot=True)
    assert direct != reasoned
    assert direct == direct.rstrip() and "\n\n\n\n" not in direct  # nothing is left where a line is empty
    if cue := block.get("cue", "").strip().split("\n")[-1]:
        if "{" not in cue:
            assert direct.endswith(cue) and not reasoned.rstrip().endswith(cue)
    else:
        assert direct.split("\n")[-1] == reasoned.split("\n")[-1]


#: datasets whose published inputs have more than 250 words, some 1,500 characters, and how many on average
LONG = {
    row["id"]: float(row["input"])
    for row in csv.DictReader(Path(__file__).with_name("published_lengths.csv").open(encoding="utf-8"))
    if row["unit"] == "words" and float(row["input"]) > 250
}


@pytest.mark.parametrize("name", LONG)
def test_long_sample_rows_are_as_long_as_real_ones_and_not_filled_up(name):
    texts = [item.input for item in load_documents(TASKS[name], cot=False, origin="sample")["test"]]
    words = sorted(map(count_words, texts), reverse=True)
    assert words[2] >= 0.7 * LONG[name] and words[0] >= 1.15 * LONG[name], words[:3]
    assert len(set(texts)) == len(texts)
    for text in texts:
        lines = [line.strip() for line in text.splitlines() if count_words(line) > 20]
        assert len(set(lines)) == len(lines)
