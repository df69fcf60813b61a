"""What `data check` finds in rows that can be read and are wrong, and that it finds nothing in right ones."""

import json
import os
from copy import deepcopy
from pathlib import Path

import pytest

from medtasks_ext.answers.filter import ParseAnswer
from medtasks_ext.data.check import check_dataset
from medtasks_ext.data.content import ContentCheck, oracle_of
from medtasks_ext.data.rowlock import lock_of_rows
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.registry.datalock import DataLock, Seen
from medtasks_ext.registry.functions import function_named
from medtasks_ext.rows.places import data_folder
from tests.conftest import sample_rows, series, write_jsonl
from tests.data.corruptions import CORRUPTIONS, Corruption

TASKS = registry()


def sample(dataset: str, split: str) -> list[dict]:
    return sample_rows(TASKS.dataset(dataset).id, split)


def put(root: Path, dataset: str, test: list[dict]):
    write_jsonl(root / dataset / "fewshot.jsonl", sample(dataset, "fewshot"))
    write_jsonl(root / dataset / "test.jsonl", test)
    return check_dataset(TASKS.dataset(dataset), root)


def named(item: Corruption) -> str:
    return f"{item.dataset}: {item.name}"


@pytest.mark.usefixtures("made_rows")
@pytest.mark.parametrize("item", CORRUPTIONS, ids=named)
def test_a_corrupted_file_is_a_fault(tmp_path, item):
    found = put(tmp_path, item.dataset, item.damage(deepcopy(sample(item.dataset, "test"))))
    assert found.faults


@pytest.mark.parametrize("name", TASKS.datasets)
def test_bundled_rows_have_no_fault(name):
    dataset = TASKS.datasets[name]
    content = ContentCheck(dataset)
    found = check_rows(dataset, "sample", None, content.look)
    assert not found.faults and not content.faults()


@pytest.mark.parametrize("dataset", ["bridge/bronco150_ner_status", "medhelm/medbullets", "bridge/barr2"])
def test_a_fault_names_rows_and_no_text(tmp_path, medtasks, monkeypatch, dataset):
    monkeypatch.setenv("MEDTASKS_SHOW_TEXT", "0")
    rows = [
        {**row, **{k: "Zyx" * 9 for k in ("input", "opa", "opb") if k in row}}
        for row in sample(dataset, "test")
    ]
    put(tmp_path, dataset, rows)
    outcome = medtasks("data", "check", tmp_path)
    assert outcome.code == 1 and "test rows 1, 2" in outcome.out and "Zyx" not in outcome.out


@pytest.mark.usefixtures("made_rows")
def test_one_odd_row_in_many_is_a_note(tmp_path):
    rows = [
        {**row, "id": f"{number}-{row['id']}", "question": f"{number}. {row['question']}"}
        for number in range(40)
        for row in sample("clinicbench/medqa", "test")
    ]
    assert not put(tmp_path, "clinicbench/medqa", rows).faults
    odd = {**rows[3], "options": {**rows[3]["options"], "A": rows[3]["options"]["B"]}}
    found = put(tmp_path, "clinicbench/medqa", [*rows[:3], odd, *rows[4:]])
    assert not found.faults
    assert "1 row has the same option twice" in found.notes


REAL = Path(os.environ.get("MEDTASKS_REAL_ROWS", ""))


@pytest.mark.skipif(not os.environ.get("MEDTASKS_REAL_ROWS"), reason="MEDTASKS_REAL_ROWS is not set")
@pytest.mark.parametrize(
    ("dataset", "source", "name"),
    [
        ("medhelm/head_qa", "headqa/HEAD_EN/test_HEAD_EN.json", "test.json"),
        ("medhelm/medbullets", "medbullets/medbullets_op5.csv", "test.csv"),
        ("medhelm/medmcqa", "medmcqa/train.jsonl", "test.jsonl"),
        ("medhelm/pubmedqa", "pubmedqa/ori_pqal.json", "test.json"),
        ("medhelm/medhallu", "medhallu/pqa_labeled.jsonl", "test.jsonl"),
        ("medhelm/medcalc_bench", "medcalc_bench/test_data.csv", "test.csv"),
        ("medhelm/medqa", "medqa_usmle/phrases_no_exclude_test.jsonl", "test.jsonl"),
        ("bridge/dialmed", "dialmed/test.txt", "test.jsonl"),
        ("mlb/cmexam", "cmexam/val.csv", "test.csv"),
    ],
)
def test_real_rows_have_no_fault_of_content(dataset, source, name, data_dir):
    target = data_dir / dataset / name
    target.parent.mkdir(parents=True)
    target.write_bytes((REAL / source).read_bytes())
    content = ContentCheck(TASKS.dataset(dataset))
    check_rows(TASKS.dataset(dataset), "local", None, content.look)
    assert content.n and not content.faults()


@pytest.mark.parametrize("item", series(CORRUPTIONS, named))
def test_a_corrupted_file_is_a_fault_where_the_lock_knows_each_document(tmp_path, monkeypatch, item):
    dataset = TASKS.dataset(item.dataset)
    rows = sample(item.dataset, "test")
    monkeypatch.setattr(type(dataset.metadata), "access", property(lambda self: "open"), raising=False)
    folder = tmp_path / "right"
    write_jsonl(folder / item.dataset / "test.jsonl", rows)
    write_jsonl(folder / item.dataset / "fewshot.jsonl", sample(item.dataset, "fewshot"))
    with data_folder(folder):
        found = check_rows(dataset, "local")
        locked, lines = lock_of_rows(dataset, found, Seen(day="2026-01-01", by="a test"))
    monkeypatch.setattr("medtasks_ext.data.rowlock.read_documents", lambda folder, lock: lines)
    monkeypatch.setattr(type(dataset), "lock", property(lambda self: DataLock(rows=locked)))
    assert not put(folder, item.dataset, rows).faults
    wrong = put(tmp_path / "wrong", item.dataset, item.damage(deepcopy(rows)))
    assert wrong.faults


@pytest.mark.parametrize("cell", [None, float("nan"), "nan", "NaN"])
@pytest.mark.parametrize(
    ("dataset", "column", "said"),
    [
        ("medhelm/hospice_referral", "label", "column label holds nothing"),
        ("medhelm/medication_qa", "Answer", "empty reference"),
        ("clinicbench/iu_xray", "impression", "empty reference"),
    ],
)
@pytest.mark.usefixtures("made_rows")
def test_gold_answers_that_hold_nothing_in_all_rows_are_a_fault(tmp_path, dataset, column, said, cell):
    found = put(tmp_path, dataset, [{**row, column: cell} for row in sample(dataset, "test")])
    assert found.faults and said in found.causes[0].what


@pytest.mark.parametrize("word", ["null", "undefined", "#REF!"])
@pytest.mark.usefixtures("made_rows")
def test_a_gold_answer_that_stands_for_no_value_is_a_fault(tmp_path, word):
    rows = sample("medhelm/medication_qa", "test")
    found = put(tmp_path, "medhelm/medication_qa", [{**rows[0], "Answer": word}, *rows[1:]])
    assert [cause.what for cause in found.causes] == ["has a gold answer that stands for no value"]


# ---------------------------------------------------------------------- what gold answers score


#: Kinds of which scoring looks at the gold alone, at options, at the prompt, at the number of a trial.
DATASETS = ["bridge_mednli", "medhelm_medbullets", "bridge_cblue_cdn", "mlb_cmexam"]


def one_by_one(dataset, documents):
    process = function_named(dataset.process_results)
    read = ParseAnswer(dataset.blocks["answer"]).apply([[item["target"]] for item in documents], documents)
    return [process(item, [answer])["score"] for item, answer in zip(documents, read, strict=True)]


@pytest.mark.parametrize("name", DATASETS)
def test_documents_that_repeat_are_scored_as_each_of_them(name):
    dataset = registry().datasets[name]
    documents = check_rows(dataset, "sample").test * 3
    for place, document in enumerate(documents):  # some gold answers cannot be right any more
        if place % 5 == 0:
            document["target"] = "nothing that can be read"
    single = one_by_one(dataset, documents)
    metric = next(item for item in dataset.metric_list if item["metric"] == "score")["aggregation"]
    wanted = sum(single) / len(single) if metric == "mean" else function_named(metric)(single)
    assert oracle_of(dataset, documents).score == pytest.approx(wanted, abs=1e-12)


def test_a_label_drawn_by_id_is_drawn_for_each_document():
    """What an unreadable answer counts as depends on the id: documents alike in the rest differ in that."""
    dataset = registry().datasets["bridge_mednli"]
    first = check_rows(dataset, "sample").test[0]
    documents = []
    for number in range(40):
        document = type(first)(first, id=str(number), target="nothing that can be read")
        document.loaded = first.loaded
        documents.append(document)
    single = one_by_one(dataset, documents)
    assert len({json.dumps(score) for score in single}) > 1
    metric = next(item for item in dataset.metric_list if item["metric"] == "score")["aggregation"]
    wanted = sum(single) / len(single) if metric == "mean" else function_named(metric)(single)
    assert oracle_of(dataset, documents).score == pytest.approx(wanted, abs=1e-12)
