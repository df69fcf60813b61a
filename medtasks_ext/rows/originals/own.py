"""Sources that no reader of `readers` fits, each read by the function of its name.

Some benchmarks bound the length of a prompt by tokens of GPT-4 (`cl100k_base`). The vocabulary is a public
file of 1.7 MB that lies beside the source's files; nothing is fetched.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import describe_columns, excerpt, shows_text
from medtasks_ext.rows.originals.readers import (
    AGAIN,
    UNCHANGED,
    Record,
    SourceFile,
    lacks,
    matching,
    only,
    records,
)
from medtasks_ext.rows.spec import Reader, RowsReader, TableReader
from medtasks_ext.version import install_words

if TYPE_CHECKING:
    from tiktoken import Encoding

VOCABULARY = "cl100k_base.tiktoken"
URL = f"https://openaipublic.blob.core.windows.net/encodings/{VOCABULARY}"
SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
#: Texts are cut into such pieces before bytes are paired (`tiktoken_ext.openai_public.cl100k_base`).
PIECES = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def read_encoding(file: SourceFile) -> Encoding:
    """The encoding whose vocabulary is in the file."""
    try:
        from tiktoken import Encoding
    except ImportError:
        what = "to count tokens of GPT-4 needs tiktoken, which is not installed"
        raise MedtasksError(what, where=file.where, remedy=install_words("originals")) from None
    content = file.read()
    if hashlib.sha256(content).hexdigest() != SHA256:
        what = f"is not the vocabulary cl100k_base (SHA-256 {SHA256[:12]}…)"
        raise MedtasksError(what, where=file.where, remedy=f"download {URL} again")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}
    return Encoding("cl100k_base", pat_str=PIECES, mergeable_ranks=ranks, special_tokens={})


def count_tokens(encoding: Encoding, text: str) -> int:
    return len(encoding.encode_ordinary(text))


def last_tokens(encoding: Encoding, text: str, size: int) -> str:
    """The last tokens of a text, at most that many; a character cut in two is replaced."""
    tokens = encoding.encode_ordinary(text)
    return encoding.decode(tokens[max(0, len(tokens) - size) :])


def clister(files: list[SourceFile]) -> Iterator[Record]:
    """CLISTER as its copy on the hub has it: pairs of sentence ids with a score, and the sentences by id.

    Records of one part have `first`, `second` and `score`, from 0 to 5 in quarters.
    """
    pairs, names = only(files, "*.csv"), only(files, "id_to_sentence_*.json")
    sentences = json.loads(names.text("utf-8"))
    reader = csv.DictReader(io.StringIO(pairs.text(), newline=""), delimiter="\t")
    for number, row in enumerate(reader, start=1):
        # an id has the number of the sentence in its text behind the id of the text's passage
        ids = ["_".join(str(row.get(column)).split("_")[:2]) for column in ("id_1", "id_2")]
        if not all(name in sentences for name in ids) or not row.get("sim"):
            what = f"pair {number} has no score, or a sentence that {names.name} does not have"
            raise MedtasksError(what, where=pairs.where, remedy=UNCHANGED)
        fields = {
            "id": str(number), "first": sentences[ids[0]], "second": sentences[ids[1]], "score": row["sim"]
        }  # fmt: skip
        yield Record(fields, pairs.where)


#: Task -> tokens of HELM's prompt before the record.
SUBJECTS = {"guo_readmission": 96, "new_hypertension": 489, "lab_anemia": 97}
MAX_TOKENS = 100_000
MAX_LABELS = 10_000
SEED = 1


def ehrshot(files: list[SourceFile]) -> Iterator[Record]:
    """EHRSHOT in MEDS form: the codes of a patient up to a moment, and what happened after it.

    HELM's facts (`ehrshot_scenario.py`): labels of all splits count, of a `lab_` task 10,000 drawn by pandas;
    records lie in the order of patient and time; those whose prompt exceeds 100,000 tokens are left out.
    Records have `patient`, `subject` (the task), `codes` (one per line, oldest first), `boolean_value`.
    """
    encoding = read_encoding(only(files, VOCABULARY))
    events = _Events(only(files, "data/data.parquet"), encoding)
    for subject, before in SUBJECTS.items():
        file = only(files, f"labels/{subject}/labels.parquet")
        for patient, moment, value in _labels(file, draw=subject.startswith("lab_")):
            codes, n_tokens = events.until(patient, moment)
            if before + n_tokens <= MAX_TOKENS:
                fields = {"patient": patient, "subject": subject, "codes": codes, "boolean_value": value}
                yield Record(fields, file.where)


def _labels(file: SourceFile, *, draw: bool) -> Iterator[tuple[int, int, bool]]:
    """Patient, moment (microseconds since 1970) and value, ordered by the first two."""
    table = _parquet(file, ["subject_id", "prediction_time", "boolean_value"])
    patient, moment = _integers(table, "subject_id"), _integers(table, "prediction_time")
    value = table["boolean_value"].to_numpy()
    chosen = np.arange(len(table))
    if draw and len(table) > MAX_LABELS:
        chosen = np.random.RandomState(SEED).choice(len(table), MAX_LABELS, replace=False)
    for index in chosen[np.lexsort((moment[chosen], patient[chosen]))]:
        yield int(patient[index]), int(moment[index]), bool(value[index])


class _Events:
    """All events, by patient and time. Those without a time belong to no moment and are left out."""

    def __init__(self, file: SourceFile, encoding: Encoding) -> None:
        table = _parquet(file, ["subject_id", "time", "code"])
        table = table.filter(table["time"].is_valid())
        patient, time = _integers(table, "subject_id"), _integers(table, "time")
        code = table["code"].combine_chunks()
        self._codes = np.array(code.dictionary.to_pylist(), dtype=object)
        order = np.lexsort((time, patient))
        self._patient, self._time = patient[order], time[order]
        self._code = code.indices.to_numpy()[order]
        # HELM lists codes as "- CODE", a line each; no token crosses a line
        self._lines, self._last = (
            np.array([count_tokens(encoding, f"- {name}{end}") for name in self._codes], dtype=np.int64)
            for end in ("\n", "\n\n")
        )
        self._sums = np.concatenate([[0], np.cumsum(self._lines[self._code])])

    def until(self, patient: int, moment: int) -> tuple[str, int]:
        """The codes of a record, a line each, and the tokens of HELM's list of them."""
        start, stop = np.searchsorted(self._patient, [patient, patient + 1])
        stop = start + np.searchsorted(self._time[start:stop], moment, side="right")
        if start == stop:
            return "", 0
        last = self._code[stop - 1]
        tokens = self._sums[stop] - self._sums[start] - self._lines[last] + self._last[last]
        return "\n".join(self._codes[self._code[start:stop]]), int(tokens)


def _parquet(file: SourceFile, columns: list[str]) -> pa.Table:
    try:
        with pa.BufferReader(file.read()) as content:
            names = pq.read_schema(content).names
            if missing := [column for column in columns if column not in names]:
                what = f"has no column {', '.join(missing)} ({describe_columns(names, missing)})"
                remedy = "put the file of EHRSHOT's MEDS export there"
                raise MedtasksError(what, where=file.where, remedy=remedy)
            content.seek(0)
            table = pq.read_table(content, columns=columns, read_dictionary=["code"])
    except pa.ArrowInvalid as error:
        raise MedtasksError(f"is not a Parquet file ({error})", where=file.where, remedy=AGAIN) from None
    return table.unify_dictionaries()


def _integers(table: pa.Table, name: str) -> Any:
    """A column as integers; times as microseconds."""
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    return column.to_numpy()


INSTRUCTIONS = "clinician-reviewed-model-responses.tsv"
RESPONSES = "clinician-instruction-responses.tsv"
ANNOTATOR = "Annotator_1"
CONTEXT = 100_000
ANSWER = 256
#: Tokens of HELM's prompt without question and record.
TEMPLATE = 25


def medalign(files: list[SourceFile]) -> Iterator[Record]:
    """MedAlign: clinicians' instructions, one clinician's responses, and a record per patient.

    HELM's facts (`medalign_scenario_helper.py`): the responses of Annotator_1 in their order, joined with
    the instruction; of the record its last tokens, so that prompt and answer fit a context of 100,000.
    Records have `patient`, `question`, `ehr` and `clinician_response`.
    """
    encoding, reader = read_encoding(only(files, VOCABULARY)), TableReader(kind="table", quoted=True)
    asked = _table(reader, files, INSTRUCTIONS, ["instruction_id", "question", "person_id"])
    instructions = {record.fields["instruction_id"]: record.fields for record in asked}
    charts = {file.path.stem: file for file in matching(files, ["medalign_ehr_xml/*.xml"])}
    columns = ["instruction_id", "annotator_num", "clinician_response"]
    for record in _table(reader, files, RESPONSES, columns):
        known = instructions.get(record.fields["instruction_id"])
        if record.fields["annotator_num"] != ANNOTATOR or known is None:
            continue
        question, person = known["question"], known["person_id"]
        if person not in charts:
            what = f"there is no medalign_ehr_xml/{person if shows_text() else excerpt(person)}.xml"
            raise MedtasksError(what, where=record.where, remedy="put all patients' records there")
        chart = io.StringIO(charts[person].text("utf-8"), newline=None).read()
        size = CONTEXT - ANSWER - TEMPLATE - count_tokens(encoding, question)
        fields = {"patient": person, "question": question, "ehr": last_tokens(encoding, chart, size)}
        fields["clinician_response"] = record.fields["clinician_response"]
        yield Record(fields, record.where)


MIN_STAYS = 10
_OTHER = re.compile(r"[^a-z0-9]+")
_NUMBERS = re.compile(r"(\s\d+)+\s")


def mimic_iv(files: list[SourceFile]) -> Iterator[Record]:
    """MIMIC-IV: discharge summaries with the ICD-10 codes of their stay, as `text` and `target`, in order.

    The preprocessing is that of Edin et al. (2023), from whose file HELM took its rows: text in lower case
    without other characters than letters and digits and without free-standing numbers; a dot after the
    third character of a diagnosis code, none in procedure codes; codes sorted, procedures first; codes of
    fewer than ten stays dropped, and then stays without a code.
    """
    by_stay = [
        _codes(files, "hosp/procedures_icd.csv", dotted=False),
        _codes(files, "hosp/diagnoses_icd.csv", dotted=True),
    ]
    notes: list[tuple[str, str, str]] = []
    seen = set()
    for record in _table(RowsReader(kind="rows"), files, "note/discharge.csv", ["hadm_id", "text"]):
        stay, text = record.fields["hadm_id"], record.fields["text"]
        if text and any(stay in codes for codes in by_stay) and (stay, hash(text)) not in seen:
            seen.add((stay, hash(text)))
            notes.append((stay, _plain(text), record.where))
    counts = [Counter(code for stay, _, _ in notes for code in codes.get(stay, [])) for codes in by_stay]
    for stay, text, where in notes:
        of_stay = zip((codes.get(stay, []) for codes in by_stay), counts, strict=True)
        if target := [code for codes, count in of_stay for code in codes if count[code] >= MIN_STAYS]:
            yield Record({"text": text, "target": target}, where)


def _codes(files: list[SourceFile], name: str, *, dotted: bool) -> dict[str, list[str]]:
    """Stay -> its distinct ICD-10 codes, sorted."""
    by_stay: dict[str, set[str]] = {}
    for record in _table(RowsReader(kind="rows"), files, name, ["hadm_id", "icd_code", "icd_version"]):
        code = record.fields["icd_code"].strip().replace(".", "")
        if code and record.fields["icd_version"] == "10":
            written = f"{code[:3]}.{code[3:]}" if dotted else code
            by_stay.setdefault(record.fields["hadm_id"], set()).add(written)
    return {stay: sorted(codes) for stay, codes in by_stay.items()}


def _plain(text: str) -> str:
    return " ".join(_NUMBERS.sub(" ", _OTHER.sub(" ", text.lower())).split())


def _table(reader: Reader, files: list[SourceFile], name: str, columns: list[str]) -> Iterator[Record]:
    for record in records(reader, files, [only(files, name).name]):
        for column in columns:
            if column not in record.fields:
                raise lacks(record, column)
        yield record
