"""What `data check` finds in rows that can be read and are wrong, and that it finds nothing in right ones."""

import os
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from medtasks_ext.data.check import check_dataset
from medtasks_ext.data.content import ContentCheck
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from tests.conftest import sample_rows, write_jsonl

Rows = list[dict[str, Any]]
Damage = Callable[[Rows], Rows]


class Corruption(NamedTuple):
    dataset: str  # SUITE/DATASET
    name: str
    damage: Damage


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


def misread(text: str, wrong: str = "latin-1") -> str:
    return text.encode("utf-8", "replace").decode(wrong, "replace")


def sub(pattern: str, by: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, by, text)


def mention(field: str, change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: re.sub(
        rf"(?<={field}: )(.*?)(?=[,;](?: \w[\w -]*:|\n|$))", lambda found: change(found[1]), text
    )


def renewed(rows: Rows, *, gold: str | None = None, to: Any = None) -> Rows:
    """The rows again under other ids, with another gold if one is given."""
    again = deepcopy(rows)
    for row in again:
        for name in ("id", "pmid", "uid", "key", "Row Number", "qid", "idx"):
            if name in row:
                row[name] = f"{row[name]}b" if isinstance(row[name], str) else row[name] + 1000
        if gold:
            row[gold] = to(row[gold]) if callable(to) else to
    return rows + again


def letter_after(letter: str, last: str = "D") -> str:
    """The next letter, or the first."""
    return "A" if letter == last else chr(ord(letter) + 1)


ENGLISH = "The patient was admitted with chest pain of two hours' duration, without fever."
ENGLISH_PAIR = "Premise statement: The patient has chest pain.\nHypothesis statement: The patient is in pain."


_B = "bridge/"
_MADE: list[tuple[str, str, Damage]] = [
    # gold of another row
    ("medhelm/medqa", "answer of the next letter", each("answer_idx", letter_after)),
    (_B + "bronco150_ner_status", "gold one row off", turned("output")),
    (_B + "cas_evidence", "gold one row off", turned("output")),
    # mentions that no text has
    (_B + "cardio_de", "first letter lost", each("output", mention("entity", lambda x: "x" + x[1:]))),
    (_B + "ruccon", "entities in Latin letters",
     each("output", mention("entity", lambda x: "poroki " + x[::-1]))),
    (_B + "grassco_phi", "names masked in the text", each("input", sub(r"\b[A-ZÄÖÜ]\w+", "[NAME]"))),
    (_B + "meddocan", "digits masked in the text", each("input", sub(r"\d", "9"))),
    # codes
    (_B + "cantemist_coding", "decimal comma for slash", each("output", sub("/", ","))),
    (_B + "cares_icd10_subblock", "dot lost", each("output", sub(r"(?<=\d)\.(?=\d)", ""))),
    (_B + "codiesp_icd10_cm", "ICD-9 codes", each("output", sub(r"(?<=CM: )[A-Z](\d\d)", r"4\1"))),
    (_B + "codiesp_icd10_cm", "description for code", each("output", sub(r"(?<=CM: )[^;]+", "hipertensión"))),
    ("medhelm/mimic_iv_billing_code", "dash for dot",
     each("target", lambda codes: [code.replace(".", "-") for code in codes])),
    # characters
    (_B + "cas_evidence", "UTF-8 read as latin-1 twice", each("input", lambda x: misread(misread(x)))),
    (_B + "rudrec_ner", "UTF-8 read as cp866", each("input", lambda x: misread(x, "cp866"))),
    # language
    (_B + "imcs_v2_dac", "English text", each("input", said(ENGLISH))),
    (_B + "rumednli", "English text", each("input", said(ENGLISH_PAIR))),
    # cut or emptied
    ("medhelm/clinic_referral", "placeholder", each("context", said("N/A"))),
    ("medhelm/mimic_bhc", "a spreadsheet's error", each("target", said("#REF!"), 3)),
    (_B + "cmedqa", "null as a word", each("output", said("null"), 2)),
    ("clinicbench/treatment_recommendation", "drugs are n/a", each("commonMedications", said(["n/a"]), 2)),
    # options
    ("medhelm/medbullets", "two options alike", lambda rows: [{**r, "opb": r["opa"]} for r in rows]),
    ("medhelm_live/mmlu_clinical_af", "one option for all",
     lambda rows: [{**r, **dict.fromkeys("ABCD", r["A"])} for r in rows]),
    ("mlb/maguidance", "first option lost", each("options", lambda x: x[1:])),
    # other rows
    ("medhelm/ent_referral", "again with other golds",
     lambda rows: renewed(rows, gold="label", to=lambda x: letter_after(x, "C"))),
    ("clinicbench/pubmedqa", "every row twice", lambda rows: renewed(rows)),
    ("clinicbench/ddi", "one label for all", each("label", said("effect"))),
    ("medhelm/medcalc_bench", "answers times ten",
     each("Ground Truth Answer", lambda x: x.replace(".", "") + "0")),
]  # fmt: skip
CORRUPTIONS = [Corruption(*made) for made in _MADE]


TASKS = registry()


def sample(dataset: str, split: str) -> list[dict]:
    return sample_rows(TASKS.dataset(dataset).id, split)


def put(root: Path, dataset: str, test: list[dict]):
    write_jsonl(root / dataset / "fewshot.jsonl", sample(dataset, "fewshot"))
    write_jsonl(root / dataset / "test.jsonl", test)
    return check_dataset(TASKS.dataset(dataset), root)


def named(item: Corruption) -> str:
    return f"{item.dataset}: {item.name}"


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
    check_rows(TASKS.dataset(dataset), "local", None, content.look)
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
    assert found.faults and said in found.causes[0].what


# ---------------------------------------------------------------------- what gold answers score
