"""What `data check` finds in rows that can be read and are wrong, and that it finds nothing in right ones."""

import os
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.data.check import check_dataset
from medtasks_ext.data.content import ContentCheck
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from tests.conftest import sample_rows, write_jsonl

Rows = list[dict[str, Any]]
Damage = Callable[[Rows], Rows]


def each(column: str, change: Callable[[Any], Any], every: int = 1) -> Damage:
    """Change a column, in every n-th row."""

    def damage(rows: Rows) -> Rows:
        return [
            {**row, column: change(row[column])} if number % every == 0 else row
            for number, row in enumerate(rows)
        ]

    return damage


def said(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def turned(column: str) -> Damage:
    return lambda rows: [{**row, column: rows[(n + 1) % len(rows)][column]} for n, row in enumerate(rows)]


def sub(pattern: str, by: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, by, text)


def mention(field: str, change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: re.sub(
        rf"(?<={field}: )(.*?)(?=[,;](?: \w[\w -]*:|\n|$))", lambda found: change(found[1]), text
    )


def renewed(rows: Rows, change: Callable[[dict], dict]) -> Rows:
    """The rows again under other ids, with what is changed."""
    return rows + [{**row, "id": f"{row['id']}b", **change(row)} for row in deepcopy(rows)]


def letter_after(letter: str, last: str = "D") -> str:
    """The next letter, or the first."""
    return "A" if letter == last else chr(ord(letter) + 1)


ENGLISH = "The patient was admitted with chest pain of two hours' duration, without fever."
_B = "bridge/"
#: SUITE/DATASET, what is wrong, and how it becomes so
CORRUPTIONS: list[tuple[str, str, Damage]] = [
    # gold of another row
    ("medhelm/medqa", "answer of the next letter", each("answer_idx", letter_after)),
    (_B + "bronco150_ner_status", "gold one row off", turned("output")),
    # mentions that no text has
    (_B + "cardio_de", "first letter lost", each("output", mention("entity", lambda x: "x" + x[1:]))),
    (_B + "meddocan", "digits masked in the text", each("input", sub(r"\d", "9"))),
    # codes
    (_B + "cares_icd10_subblock", "dot lost", each("output", sub(r"(?<=\d)\.(?=\d)", ""))),
    (_B + "codiesp_icd10_cm", "ICD-9 codes", each("output", sub(r"(?<=CM: )[A-Z](\d\d)", r"4\1"))),
    (_B + "codiesp_icd10_cm", "description for code", each("output", sub(r"(?<=CM: )[^;]+", "hipertensión"))),
    # characters
    (_B + "rudrec_ner", "UTF-8 read as cp866",
     each("input", lambda x: x.encode().decode("cp866", "replace"))),
    # language
    (_B + "imcs_v2_dac", "English text", each("input", said(ENGLISH))),
    # cut or emptied
    ("medhelm/clinic_referral", "placeholder", each("context", said("N/A"))),
    ("medhelm/mimic_bhc", "a spreadsheet's error", each("target", said("#REF!"), 3)),
    ("clinicbench/treatment_recommendation", "drugs are n/a", each("commonMedications", said(["n/a"]), 2)),
    # options
    ("medhelm/medbullets", "two options alike", lambda rows: [{**r, "opb": r["opa"]} for r in rows]),
    ("mlb/maguidance", "first option lost", each("options", lambda x: x[1:])),
    # other rows
    ("medhelm/ent_referral", "again with other golds",
     lambda rows: renewed(rows, lambda row: {"label": letter_after(row["label"], "C")})),
    ("clinicbench/pubmedqa", "every row twice", lambda rows: renewed(rows, lambda row: {})),
    ("clinicbench/ddi", "one label for all", each("label", said("effect"))),
    ("medhelm/medcalc_bench", "answers times ten",
     each("Ground Truth Answer", lambda x: x.replace(".", "") + "0")),
]  # fmt: skip

TASKS = registry()


def sample(dataset: str, split: str) -> list[dict]:
    return sample_rows(TASKS.dataset(dataset).id, split)


def put(root: Path, dataset: str, test: list[dict]):
    write_jsonl(root / dataset / "fewshot.jsonl", sample(dataset, "fewshot"))
    write_jsonl(root / dataset / "test.jsonl", test)
    return check_dataset(TASKS.dataset(dataset), root)


@pytest.mark.parametrize(("dataset", "what", "damage"), CORRUPTIONS)
def test_a_corrupted_file_is_a_fault(tmp_path, dataset, what, damage):
    assert put(tmp_path, dataset, damage(deepcopy(sample(dataset, "test")))).faults


@pytest.mark.parametrize("name", TASKS.datasets)
def test_bundled_rows_have_no_fault(name):
    dataset = TASKS.datasets[name]
    content = ContentCheck(dataset)
    found = check_rows(dataset, "sample", content.look)
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


REAL = Path(os.environ.get("MEDTASKS_REAL_ROWS", ""))


@pytest.mark.skipif(not os.environ.get("MEDTASKS_REAL_ROWS"), reason="MEDTASKS_REAL_ROWS is not set")
@pytest.mark.parametrize(
    ("dataset", "source", "name"),
    [
        ("medhelm/head_qa", "headqa/HEAD_EN/test_HEAD_EN.json", "test.json"),
        ("medhelm/medbullets", "medbullets/medbullets_op5.csv", "test.csv"),
        ("medhelm/medhallu", "medhallu/pqa_labeled.jsonl", "test.jsonl"),
        ("medhelm/medcalc_bench", "medcalc_bench/test_data.csv", "test.csv"),
        ("bridge/dialmed", "dialmed/test.txt", "test.jsonl"),
        ("mlb/cmexam", "cmexam/val.csv", "test.csv"),
    ],
)
def test_real_rows_have_no_fault_of_content(dataset, source, name, data_dir):
    target = data_dir / dataset / name
    target.parent.mkdir(parents=True)
    target.write_bytes((REAL / source).read_bytes())
    content = ContentCheck(TASKS.dataset(dataset))
    check_rows(TASKS.dataset(dataset), "local", content.look)
    assert content.n and not content.faults()


@pytest.mark.parametrize("cell", [None, "NaN"])
@pytest.mark.parametrize(
    ("dataset", "column", "said"),
    [
        ("medhelm/hospice_referral", "label", "column label holds nothing"),
        ("medhelm/medication_qa", "Answer", "empty reference"),
        ("clinicbench/iu_xray", "impression", "empty reference"),
    ],
)
def test_gold_answers_that_hold_nothing_in_all_rows_are_a_fault(tmp_path, dataset, column, said, cell):
    found = put(tmp_path, dataset, [{**row, column: cell} for row in sample(dataset, "test")])
    assert found.faults and said in found.record["causes"][0]["cause"]
