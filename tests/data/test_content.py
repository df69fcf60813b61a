"""What `data check` finds in rows that can be read and are wrong, and that it finds nothing in right ones."""

from __future__ import annotations

import os
import re
from copy import deepcopy
from pathlib import Path

import pytest

from medtasks_ext.data.check import check_dataset
from medtasks_ext.data.content import ContentCheck
from medtasks_ext.data.rowlock import lock_of_rows
from medtasks_ext.data.texts import is_misread, language_of, languages_elsewhere, languages_of
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.registry.datalock import DataLock, Seen
from medtasks_ext.rows.codes import begins_as_none
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.folders import data_folder
from medtasks_ext.rows.sources import SPLIT_KEY
from tests.conftest import write_jsonl
from tests.data.corruptions import CORRUPTIONS

TASKS = registry()
#: Corruptions that no check finds where the public file is not known: each row is a right row of its kind.
NOT_CHECKABLE = {
    ("bridge/mednli", "gold two rows off"),
    ("bridge/mednli", "gold column sorted"),
    ("bridge/rumeddanet", "yes for no"),
    ("bridge/cares_area", "gold column sorted"),
    ("bridge/chip_ctc", "labels drawn anew"),
    ("bridge/clister", "gold of the last row first"),
    ("bridge/jp_sts", "gold column sorted"),
    ("medhelm/pubmedqa", "yes for no"),
    ("medhelm/ehrshot", "flag inverted"),
    ("medhelm/race_bias", "True for False"),
    ("clinicbench/hoc", "labels two rows off"),
    ("clinicbench/gad", "0 for 1"),
    ("mlb/maexam", "answers one row off"),
    ("clinicbench/ncbi_disease", "tags one token off"),  # what is tagged stands in the text
    ("clinicbench/bc5_disease", "tags reversed"),
    ("bridge/cares_icd10_block", "small letters"),  # harmless: BRIDGE's reader folds case
    ("bridge/gout_cc_consensus", "first three words"),
    ("medhelm/medmcqa", "stem of one word"),
    ("mlb/chip_cdn", "first two characters"),
    ("clinicbench/iu_xray", "nan as a word"),  # rows without gold are left out, which a note says
    ("medhelm/mental_health", "columns swapped"),  # both are as long as each other
    ("bridge/icliniq_10k", "columns swapped"),
    ("clinicbench/referral_qa", "letter is the question"),
    ("clinicbench/mmlu_med", "options under the next letter"),
    ("medhelm_live/medxpertqa", "options under the next letter"),
    ("medhelm/medhallu", "every third row"),
}


def sample(dataset: str, split: str) -> list[dict]:
    rows = read_rows(TASKS.dataset(dataset).sample_file)
    return [{k: v for k, v in row.items() if k != SPLIT_KEY} for row in rows if row[SPLIT_KEY] == split]


def put(root: Path, dataset: str, test: list[dict]):
    write_jsonl(root / dataset / "fewshot.jsonl", sample(dataset, "fewshot"))
    write_jsonl(root / dataset / "test.jsonl", test)
    return check_dataset(TASKS.dataset(dataset), root)


def test_the_list_is_a_hundred_corruptions_over_many_datasets():
    assert len(CORRUPTIONS) == 100
    assert len({item.dataset for item in CORRUPTIONS}) >= 40
    assert {(item.dataset, item.name) for item in CORRUPTIONS} >= NOT_CHECKABLE
    assert len(CORRUPTIONS) - len(NOT_CHECKABLE) >= 65


@pytest.mark.usefixtures("made_rows")
@pytest.mark.parametrize("item", CORRUPTIONS, ids=lambda item: f"{item.dataset}: {item.name}")
def test_a_corrupted_file_is_a_fault_unless_it_is_named_as_not_checkable(tmp_path, item):
    dataset, name, damage = item
    damaged = damage(deepcopy(sample(dataset, "test")))
    found = put(tmp_path, dataset, damaged)
    assert bool(found.faults) == ((dataset, name) not in NOT_CHECKABLE), found.causes


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


@pytest.mark.parametrize("wrong", ["cp1252", "latin-1", "mac-roman", "cp1251", "cp866"])
def test_text_read_in_another_encoding_is_told_and_right_text_is_not(wrong):
    texts = {
        "es": "La paciente presentó náuseas, vómitos y pérdida de visión; se inició tratamiento antibiótico.",
        "fr": "« L’évolution a été favorable » ; l’œdème s’est résorbé, l’état général s’améliore nettement.",
        "no": "Pasienten følte seg dårlig på måndag, og kom på sykehuset; søsteren så på og hjalp ham hjem.",
        "ru": "Пациент поступил с жалобами на боль в груди, одышку и слабость; проведено лечение.",
        "pt": "A paciente não apresenta alterações; a evolução é favorável e a medicação foi mantida.",
    }
    for language, text in texts.items():
        assert not is_misread(text)
        assert language_of(text) in {language, None}
        assert is_misread(text.encode().decode(wrong, "replace")), language


def test_a_process_of_its_own_tells_the_same_languages():
    texts = [
        "La paciente presentó náuseas, vómitos y pérdida de visión; se inició tratamiento antibiótico.",
        "Пациент поступил с жалобами на боль в груди, одышку и слабость; проведено лечение.",
        "short",
    ]
    assert languages_elsewhere(texts) == languages_of(texts) == ["es", "ru", None]


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


#: What even the hash of each document does not tell.
NOT_TOLD_BY_A_LOCK = {
    ("bridge/cares_icd10_block", "small letters"),  # harmless: the gold answer is read as the same
}


@pytest.mark.parametrize("item", CORRUPTIONS, ids=lambda item: f"{item.dataset}: {item.name}")
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
    assert bool(wrong.faults) == ((item.dataset, item.name) not in NOT_TOLD_BY_A_LOCK)


@pytest.mark.parametrize(("dataset", "none"), [("codiesp_icd10_cm", "U99"), ("codiesp_icd10_pcs", "ZZZ")])
def test_codes_that_begin_as_no_code_does_are_a_fault(tmp_path, dataset, none):
    rows = sample(f"bridge/{dataset}", "test")
    right = put(tmp_path / "right", f"bridge/{dataset}", deepcopy(rows))
    assert not any("begins as no code" in str(cause) for cause in right.causes), right.causes
    for row in rows:
        row["output"] = re.sub(r"(?<=(?:CM|CS): )\w{3}", none, row["output"])
    found = put(tmp_path / "wrong", f"bridge/{dataset}", rows)
    assert any("begins as no code of ICD-10" in str(cause) for cause in found.causes), found.causes


def test_a_code_exists_in_any_edition_that_is_listed_and_an_owners_list_is_not_judged():
    assert not begins_as_none("ICD-10", "e11.9") and not begins_as_none("ICD-10-CM or PCS", "0DTJ4ZZ")
    assert begins_as_none("ICD-10 category", "U99") and begins_as_none("ICD-10-PCS", "0ZZ")
    assert not begins_as_none("ICD-O", "9999/9") and not begins_as_none("MeSH", "D999999")
