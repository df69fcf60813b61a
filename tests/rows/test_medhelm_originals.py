"""MedHELM's gated and private sources as their owners distribute them, in invented files."""

import base64
import csv
import gzip
import hashlib
import io
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.registry import registry
from medtasks_ext.rows.originals import own
from medtasks_ext.rows.originals.build import read_original
from medtasks_ext.rows.originals.own import count_tokens, read_encoding
from medtasks_ext.rows.originals.readers import SourceFile, files_below
from medtasks_ext.rows.spec import dataset_spec
from tests.rows.original_sources import parquet, workbook
from tests.rows.original_sources import put as written
from tests.run_files import result_of

TASKS = registry().datasets


def source_of(task: str):
    dataset = TASKS[f"medhelm_{task}"]
    return dataset_spec(dataset).rows


def put(data_dir: Path, task: str, files: dict[str, str | bytes | None]) -> Path:
    """Write a source's files where they are looked for."""
    return written(data_dir / "medhelm" / task / "original", files)


def load(task: str, **options):
    return load_documents(TASKS[f"medhelm_{task}"], cot=False, **options)


def test_rows(task: str, folder: Path, layout: int = 0) -> list[dict]:
    original = source_of(task).original[layout]
    return read_original(original, files_below([folder]), task=task, where=str(folder))[0]


test_rows.__test__ = False  # type: ignore[attr-defined]


def table(rows: list[dict], separator: str = ",") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


PHASE = "physionet.org/files/discharge-me/1.3/test_phase_1"


def discharge_me(**tables: list[dict]) -> dict[str, bytes]:
    base = {
        "diagnosis": [
            {"subject_id": 2, "stay_id": 21, "icd_title": "Cough"},
            {"subject_id": 1, "stay_id": 11, "icd_title": "Fall"},
            {"subject_id": 2, "stay_id": 22, "icd_title": "Fever, unspecified"},
            {"subject_id": 3, "stay_id": 31, "icd_title": "Pain"},
        ],
        "triage": [{"subject_id": s, "stay_id": 0, "acuity": 3} for s in (1, 2, 2)],
        "discharge": [
            {"subject_id": 1, "hadm_id": 10, "text": "Course: Fell.\nInstructions: Rest."},
            {"subject_id": 2, "hadm_id": 20, "text": 'Course: "Pneumonia".\nInstructions: Drink.'},
            {"subject_id": 2, "hadm_id": 29, "text": "No imaging.\nInstructions: None."},
            {"subject_id": 3, "hadm_id": 30, "text": "No triage.\nInstructions: None."},
            {"subject_id": 2, "hadm_id": 28, "text": "Course: Flu.\nInstructions: Sleep."},
        ],
        "radiology": [
            {"hadm_id": 20, "text": "CHEST: first report"},
            {"hadm_id": 28, "text": "CHEST: clear"},
            {"hadm_id": 20, "text": "CHEST: second report"},
            {"hadm_id": 30, "text": "HIP"},
            {"hadm_id": 10, "text": "WRIST"},
        ],
        "edstays": [{"hadm_id": h, "stay_id": 0} for h in (10, 20, 28, 29, 30)],
        "discharge_target": [
            {"hadm_id": 28, "discharge_instructions": "Sleep.", "brief_hospital_course": "Flu."},
            {"hadm_id": 20, "discharge_instructions": "Drink.", "brief_hospital_course": '"Pneumonia".'},
            {"hadm_id": 10, "discharge_instructions": "Rest.", "brief_hospital_course": "Fell."},
            {"hadm_id": 30, "discharge_instructions": "None.", "brief_hospital_course": "x"},
        ],
    }
    return {
        f"{PHASE}/{name}.csv.gz": gzip.compress(table(rows).encode())
        for name, rows in {**base, **tables}.items()
    }


def tok() -> dict[str, str]:
    train = [f"the heart is enlarged {i} ." for i in range(8)]
    return {
        "rrs/test.findings.tok": "clear lungs .\n\nsmall effusion .\nthe heart is enlarged 3 .\n",
        "rrs/test.impression.tok": "no pneumonia .\nnormal .\n\ncardiomegaly .\n",
        "rrs/train.findings.tok": "\n".join(train),
        "rrs/train.impression.tok": "\n".join(f"cardiomegaly {i} ." for i in range(8)),
    }


STARS = "*" * 100


def patient(number: int, met: str = "met") -> str:
    first = f"\n\nRecord date: 2090-01-0{number}\n\n\nAppendectomy & more.\n"
    text = f"{first}{STARS}\n\nRecord date: 2091-02-03\nFine.\n{STARS}\n"
    said = {"ABDOMINAL": met, "ADVANCED-CAD": "not met", "ALCOHOL-ABUSE": "met", "CREATININE": "met"}
    tags = "".join(f'<{name} met="{value}" />' for name, value in said.items())
    body = f"<TEXT><![CDATA[{text}]]></TEXT>\n<TAGS>{tags}</TAGS>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<PatientMatching>\n{body}\n</PatientMatching>'


def trials() -> dict[str, str]:
    test = {"test/102.xml": patient(2, "not met"), "test/101.xml": patient(1)}
    return {**test, **{f"train/20{i}.xml": patient(i) for i in range(3, 9)}}


#: A vocabulary in the format of the real one: all bytes, and a few pairs.
PAIRS = [b"he", b"ll", b"hell", b"hello", b" w", b"CO", b"- "]
VOCABULARY = b"".join(
    base64.b64encode(token) + b" %d\n" % rank
    for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *PAIRS])
)


@pytest.fixture
def vocabulary(monkeypatch):
    monkeypatch.setattr(own, "SHA256", hashlib.sha256(VOCABULARY).hexdigest())
    return VOCABULARY


def med_align() -> dict[str, str | bytes]:
    reviewed = [
        {"instruction_id": "7", "question": 'Is "aspirin"\tgiven?', "person_id": "501", "model": "a"},
        {"instruction_id": "5", "question": "Any allergy?", "person_id": "502", "model": "a"},
        {"instruction_id": "7", "question": 'Is "aspirin"\tgiven?', "person_id": "501", "model": "b"},
        {"instruction_id": "9", "question": "Unanswered?", "person_id": "502", "model": "a"},
    ]
    responses = [
        {"instruction_id": "5", "annotator_num": "Annotator_1", "clinician_response": "None known."},
        {"instruction_id": "7", "annotator_num": "Annotator_2", "clinician_response": "Second opinion."},
        {"instruction_id": "7", "annotator_num": "Annotator_1", "clinician_response": "Yes,\n81 mg."},
        {"instruction_id": "8", "annotator_num": "Annotator_1", "clinician_response": "Not reviewed."},
    ]
    return {
        "clinician-reviewed-model-responses.tsv": table(reviewed, "\t"),
        "clinician-instruction-responses.tsv": table(responses, "\t"),
        "medalign_ehr_xml/501.xml": "<eventstream>\r\n<event code='aspirin'/></eventstream>",
        "medalign_ehr_xml/502.xml": "<eventstream/>",
        "cl100k_base.tiktoken": VOCABULARY,
    }


DAY = datetime(2020, 1, 1)


def days(*numbers: float | None) -> list[datetime | None]:
    return [None if number is None else DAY + timedelta(days=number) for number in numbers]


def meds() -> dict[str, bytes]:
    def labels(subjects, moments, values):
        return parquet({"subject_id": subjects, "prediction_time": days(*moments), "boolean_value": values})

    return {
        "EHRSHOT_MEDS/data/data.parquet": parquet({"subject_id": [4, 4, 4, 4, 4, 2],
         "time": days(None, 3, 1, 1, 5, 2),
         "code": ["Gender/F", "ICD10CM/I10", "LOINC/B", "LOINC/A", "RxNorm/1", "Visit/IP"],
         "numeric_value": [1.0] * 6}),
        "EHRSHOT_MEDS/labels/guo_readmission/labels.parquet": labels([4, 2, 4], [3, 9, 1.5],
         [True, False, False]),
        "EHRSHOT_MEDS/labels/new_hypertension/labels.parquet": labels([4], [99], [True]),
        "EHRSHOT_MEDS/labels/lab_anemia/labels.parquet": labels([2, 4], [2, 0.5], [False, True]),
        "cl100k_base.tiktoken": VOCABULARY,
    }  # fmt: skip


def hospital_course() -> dict[str, str]:
    rows = [
        {"note_id": f"{i}-DS-1", "input": f"<SEX> F, case {i}\n<SERVICE> MEDICINE", "target": f"Course {i}."}
        for i in range(1, 4)
    ]
    blank = {"note_id": "9-DS-1", "input": "<SEX> M", "target": ""}
    return {"labelled-notes-hospital-course/1.1.0/mimic-iv-bhc.csv": table([*rows, blank])}


def billing(stays: int = 11) -> dict[str, bytes]:
    text = "Admitted on 12 05, BP 120/80.\nStage-2 CKD\u00a0 case"
    notes = [{"note_id": f"{i}-DS-1", "hadm_id": 100 + i, "text": f"{text}{i} 7 "} for i in range(stays)]
    notes += [notes[0], {"note_id": "x", "hadm_id": 999, "text": "ICD-9 only"}]
    diagnoses = [
        {"hadm_id": 100 + i, "seq_num": n, "icd_code": code, "icd_version": 10}
        for i in range(stays)
        for n, code in enumerate(["N182", "I10", "Z9911" if i < 9 else "N182"])
    ]
    diagnoses.append({"hadm_id": 999, "seq_num": 1, "icd_code": "4019", "icd_version": 9})
    procedures = [
        {"hadm_id": 100 + i, "seq_num": 1, "icd_code": "5A1D70Z", "icd_version": 10} for i in range(10)
    ]
    return {
        "mimic-iv-note/2.2/note/discharge.csv.gz": gzip.compress(table(notes).encode()),
        "mimiciv/2.2/hosp/diagnoses_icd.csv.gz": gzip.compress(table(diagnoses).encode()),
        "mimiciv/2.2/hosp/procedures_icd.csv.gz": gzip.compress(table(procedures).encode()),
    }


CONDITIONS = [name.removesuffix(".xlsx") for name in source_of("clear").original[0].test]


def notes_by_condition() -> dict[str, bytes]:
    def book(name: str) -> bytes:
        head = ["note_id", "text", "result_human"]
        return workbook([head, ["1", f" Has {name}. ", "1"], ["2", "None.", "0"], ["3", "Unclear.", "2"]])

    return {f"CLEAR/{name}.xlsx": book(name) for name in CONDITIONS}


SOURCES = {
    "dischargeme": discharge_me, "mimic_rrs": tok, "n2c2_ct": trials, "medalign": med_align, "ehrshot": meds,
    "mimic_bhc": hospital_course, "mimic_iv_billing_code": billing, "clear": notes_by_condition,
}  # fmt: skip
REBUILT = {"mimic_bhc", "mimic_iv_billing_code"}


def test_the_oracle_gets_the_ceiling_on_all_of_them(data_dir, vocabulary, medtasks, tmp_path):
    for task, files in SOURCES.items():
        put(data_dir, task, files())
    names = ",".join(f"medhelm_{task}" for task in SOURCES)
    medtasks.done("run", "--model", "oracle", "--tasks", names, "--output_path", "run")
    for task in SOURCES:
        result = result_of("run", f"medhelm_{task}")
        metrics = result["metrics"]
        ceiling = metrics.get("exact_match", metrics.get("rouge_l", metrics.get("mimiciv_billing_code_f1")))
        assert ceiling == 1.0, (task, metrics)
        assert (result["loaded"]["origin"], result["loaded"]["rebuilt"]) == ("local", task in REBUILT)


def renamed(column: str, instead: str):
    """A packed table in which a column has another name."""
    return lambda content: gzip.compress(gzip.decompress(content).replace(column.encode(), instead.encode()))


RADIOLOGY, MEDS = f"{PHASE}/radiology.csv.gz", "EHRSHOT_MEDS"
#: task, file, what is done to it, and what is said
DAMAGED = [
    ("dischargeme", RADIOLOGY, renamed("hadm_id", "hadm"), "hadm_id"),
    ("dischargeme", RADIOLOGY, lambda content: content[: len(content) // 2], "cannot be read"),
    ("dischargeme", RADIOLOGY, lambda _: gzip.compress("hadm_id,text\n1,na\u00efve".encode("latin-1")),
     "is not a CSV file in UTF-8"),
    ("n2c2_ct", "test/101.xml", lambda _: "<PatientMatching><TEXT>a</TEXT></PatientMatching>",
     "'TAGS' is undefined"),
    ("ehrshot", f"{MEDS}/data/data.parquet", lambda _: parquet({"subject_id": [1], "code": ["x"]}),
     "has no column time"),
    ("mimic_rrs", "rrs/test.impression.tok", lambda _: "a\nb\n",
     "different numbers of lines: findings 4, impression 2"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "name", "damage", "message"), DAMAGED)
def test_a_damaged_file_is_refused_with_its_name(data_dir, vocabulary, task, name, damage, message):
    files = SOURCES[task]()
    put(data_dir, task, {**files, name: damage(files[name])})
    with pytest.raises(MedtasksError) as error:
        load(task)
    assert message in error.value.what and error.value.where and error.value.remedy


def test_sections_of_admissions_alternate_in_the_order_of_the_diagnoses(data_dir):
    put(data_dir, "dischargeme", discharge_me())
    documents = load("dischargeme")["test"]
    assert [document["target"] for document in documents] == [
        '"Pneumonia".', "Drink.", "Flu.", "Sleep.", "Fell.", "Rest.",
    ]  # fmt: skip  # patient 3 lacks triage, stay 29 imaging
    first, second = documents[0]["prompt"], documents[1]["prompt"]
    assert "CHEST: first report" in first and "second report" not in first
    assert "Course: \nInstructions: Drink." in first and 'Course: "Pneumonia".\nInstructions: \n' in second


ids = st.integers(1, 4)


@given(
    st.lists(ids, min_size=1, max_size=6),
    st.lists(ids, max_size=4),
    st.lists(st.tuples(ids, st.integers(10, 15)), min_size=1, max_size=8),
    st.lists(st.integers(10, 15), max_size=8),
    st.lists(st.integers(10, 15), max_size=5),
    st.lists(st.integers(10, 15), max_size=6, unique=True),
)
def test_joins_are_those_of_pandas_with_the_first_row_of_each_admission(
    tmp_path_factory, diagnosed, triaged, summaries, images, stays, targets
):
    tables = {
        "diagnosis": [{"subject_id": s, "code": n} for n, s in enumerate(diagnosed)],
        "triage": [{"subject_id": s, "acuity": n} for n, s in enumerate(triaged)],
        "discharge": [{"subject_id": s, "hadm_id": h, "text": f"summary {n}"} for n,
         (s, h) in enumerate(summaries)],
        "radiology": [{"hadm_id": h, "text": f"image {n}"} for n, h in enumerate(images)],
        "edstays": [{"hadm_id": h} for h in stays],
        "discharge_target": [{"hadm_id": h, "brief_hospital_course": f"c{h}",
         "discharge_instructions": f"i{h}"} for h in targets],
    }  # fmt: skip
    columns = {"triage": ["subject_id"], "radiology": ["hadm_id", "text"], "edstays": ["hadm_id"]}
    columns["discharge_target"] = ["hadm_id", "brief_hospital_course", "discharge_instructions"]
    frames = {
        name: pd.DataFrame(rows, columns=None if rows else columns[name]) for name, rows in tables.items()
    }
    for frame in frames.values():
        for key in {"subject_id", "hadm_id"} & set(frame):
            frame[key] = frame[key].astype("int64")
    whole = frames["diagnosis"].merge(frames["triage"], on="subject_id")
    whole = whole.merge(frames["discharge"], on="subject_id")
    whole = whole.merge(frames["radiology"], on="hadm_id", suffixes=("", "_image")).merge(
        frames["edstays"], on="hadm_id"
    )
    whole = whole.drop_duplicates("hadm_id").merge(frames["discharge_target"], on="hadm_id")
    folder = tmp_path_factory.mktemp("joins")
    for name, frame in frames.items():
        path = folder / "test_phase_1" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        frame.to_csv(path, index=False)
    try:
        rows = test_rows("dischargeme", folder)
    except MedtasksError as error:
        assert "no document" in error.what and whole.empty
        return
    found = [
        (row["hadm_id"], row["text"], row["radiology_report"], row["brief_hospital_course"]) for row in rows
    ]
    wanted = zip(
        whole["hadm_id"].astype(str), whole["text"], whole["text_image"], whole["brief_hospital_course"],
        strict=True,
    )  # fmt: skip
    assert found == list(wanted)


def test_lines_are_paired_and_pairs_with_an_empty_side_are_left_out(data_dir):
    put(data_dir, "mimic_rrs", tok())
    splits = load("mimic_rrs", shots=5)
    assert [(document["id"], document["target"]) for document in splits["test"]] == [
        ("1", "no pneumonia ."),
        ("4", "cardiomegaly ."),
    ]
    shots = [document["target"] for document in splits["fewshot"]]
    places = [str(int(text.split()[1]) + 1) for text in shots]  # of their lines
    assert [document["id"] for document in splits["fewshot"]] == places
    assert len(shots) == 5 and "cardiomegaly 3 ." not in shots  # its findings are those of a test row


def test_patients_are_asked_three_criteria_in_the_order_of_their_files(data_dir):
    put(data_dir, "n2c2_ct", trials())
    splits = load("n2c2_ct", shots=5)
    assert [(document["run"], document["target"]) for document in splits["test"]] == [
        ("ABDOMINAL", "A"), ("ADVANCED-CAD", "B"), ("CREATININE", "A"),
        ("ABDOMINAL", "B"), ("ADVANCED-CAD", "B"), ("CREATININE", "A"),
    ]  # fmt: skip
    prompt = splits["test"][0]["prompt"]
    assert "Appendectomy & more." in prompt and "2091-02-03" in prompt and "*" * 51 not in prompt
    assert len(splits["fewshot"]) == 15 and splits["test"][0].loaded.record["n_held_out"] == 0


def test_a_tag_that_is_neither_met_nor_not_met_is_named_without_its_text(data_dir, monkeypatch):
    monkeypatch.setenv("MEDTASKS_SHOW_TEXT", "0")
    content = patient(1).replace('met="met"', 'met="perhaps"').replace('met="not met"', 'met="perhaps"')
    assert content.count("perhaps") >= 3
    put(data_dir, "n2c2_ct", {**trials(), "test/101.xml": content})
    with pytest.raises(MedtasksError) as error:
        load("n2c2_ct")
    said = str(error.value)
    assert "prompt.target" in said and "test row 1" in said and "a value that it does not know" in said
    assert "perhaps" not in said and "sandbox.py" not in said and "not foreseen" in error.value.remedy


def encoding():
    name = "cl100k_base.tiktoken"
    return read_encoding(SourceFile(name, name, lambda: io.BytesIO(VOCABULARY)))


def test_another_vocabulary_is_refused(data_dir):
    put(data_dir, "medalign", med_align())
    with pytest.raises(MedtasksError, match="is not the vocabulary cl100k_base") as error:
        load("medalign")
    assert "openaipublic" in error.value.remedy


def test_the_first_annotators_answers_are_joined_with_question_and_record(data_dir, vocabulary):
    put(data_dir, "medalign", med_align())
    documents = load("medalign")["test"]
    assert [document["target"] for document in documents] == ["None known.", "Yes,\n81 mg."]
    assert 'Is "aspirin"\tgiven?' in documents[1]["prompt"]
    assert "<eventstream>\n<event code='aspirin'/></eventstream>" in documents[1]["prompt"]


def test_a_record_keeps_its_most_recent_tokens(data_dir, vocabulary, monkeypatch):
    folder = put(data_dir, "medalign", {**med_align(), "medalign_ehr_xml/502.xml": "hello" * 3 + " hello"})
    question = count_tokens(encoding(), "Any allergy?")
    monkeypatch.setattr(own, "CONTEXT", own.ANSWER + own.TEMPLATE + question + 3)
    # " hello" is "␣", "hello"; of the word before only its last token is left
    assert test_rows("medalign", folder)[0]["ehr"] == "hello hello"


def test_a_label_has_the_codes_up_to_its_time_and_its_own_value(tmp_path, vocabulary):
    written(tmp_path, meds())
    rows = test_rows("ehrshot", tmp_path)
    assert [(row["subject"], row["codes"].split("\n"), row["boolean_value"]) for row in rows] == [
        ("guo_readmission", ["Visit/IP"], False),
        ("guo_readmission", ["LOINC/B", "LOINC/A"], False),  # ties as in the file, nothing without a time
        ("guo_readmission", ["LOINC/B", "LOINC/A", "ICD10CM/I10"], True),
        ("new_hypertension", ["LOINC/B", "LOINC/A", "ICD10CM/I10", "RxNorm/1"], True),
        ("lab_anemia", ["Visit/IP"], False),
        ("lab_anemia", [""], True),
    ]


def test_prompts_above_the_limit_are_dropped_and_those_at_the_limit_kept(tmp_path, vocabulary, monkeypatch):
    written(tmp_path, meds())
    size = count_tokens(encoding(), "- LOINC/B\n- LOINC/A\n- ICD10CM/I10\n\n")
    monkeypatch.setattr(own, "MAX_TOKENS", own.SUBJECTS["guo_readmission"] + size)
    kept = test_rows("ehrshot", tmp_path)
    assert sum(row["subject"] == "guo_readmission" for row in kept) == 3
    monkeypatch.setattr(own, "MAX_TOKENS", own.MAX_TOKENS - 1)
    kept = test_rows("ehrshot", tmp_path)
    assert sum(row["subject"] == "guo_readmission" for row in kept) == 2


def test_labels_of_laboratory_tasks_are_drawn_as_pandas_draws_them(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"subject_id": rng.integers(1, 9, 60),
         "prediction_time": [DAY + timedelta(hours=int(h)) for h in rng.integers(0, 99, 60)],
         "boolean_value": rng.integers(0, 2, 60).astype(bool)},
    )  # fmt: skip
    content = io.BytesIO()
    frame.to_parquet(content)
    file = SourceFile("labels.parquet", "x", lambda: io.BytesIO(content.getvalue()))
    monkeypatch.setattr(own, "MAX_LABELS", 20)
    drawn = frame.sample(n=20, random_state=1).sort_values(["subject_id", "prediction_time"], kind="stable")
    assert [(who, value) for who, _, value in own._labels(file, draw=True)] == list(
        zip(drawn["subject_id"], drawn["boolean_value"], strict=True)
    )
    assert len(list(own._labels(file, draw=False))) == 60


def test_codes_of_few_stays_are_dropped_and_texts_lose_signs_and_numbers(data_dir):
    folder = put(data_dir, "mimic_iv_billing_code", billing())
    rows = test_rows("mimic_iv_billing_code", folder, layout=1)
    assert len(rows) == 11  # a note counts once, and the stay with ICD-9 codes not at all
    assert rows[0]["text"] == "admitted on bp stage ckd case0"
    assert rows[0]["target"] == ["5A1D70Z", "I10.", "N18.2"]  # Z99.11 has nine stays
    assert rows[10]["target"] == ["I10.", "N18.2"]


def test_the_preprocessed_file_that_helm_read_comes_first(data_dir):
    rows = pa.table({"text": ["stage ckd"], "target": [["5A1D70Z", "N18.2"]], "_id": [100]})
    content = io.BytesIO()
    pa.feather.write_feather(rows, content)
    put(data_dir, "mimic_iv_billing_code", {**billing(), "mimiciv_icd10.feather": content.getvalue()})
    (document,) = load("mimic_iv_billing_code")["test"]
    assert document["target"] == "5A1D70Z,N18.2" and not document.loaded.record["rebuilt"]


def test_a_workbook_is_a_run_named_after_it(data_dir):
    put(data_dir, "clear", notes_by_condition())
    documents = load("clear")["test"]
    assert len(documents) == 39 and len(CONDITIONS) == 13
    assert [(d["run"], d["target"]) for d in documents[:4]] == [
        ("alcohol_dependence", "A"), ("alcohol_dependence", "B"), ("alcohol_dependence", "C"),
        ("attention_deficit_hyperactivity_disorder", "A"),
    ]  # fmt: skip
