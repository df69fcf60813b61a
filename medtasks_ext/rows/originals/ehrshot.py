"""EHRSHOT in MEDS form: the codes of a patient up to a moment, and what happened after it.

HELM's facts (`ehrshot_scenario.py`): labels of all splits count, of a `lab_` task 10,000 drawn by pandas;
records lie in the order of patient and time; those whose prompt exceeds 100,000 tokens are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import describe_columns
from medtasks_ext.rows.originals import cl100k
from medtasks_ext.rows.originals.readers import Record
from medtasks_ext.rows.originals.tree import AGAIN, SourceFile, only

if TYPE_CHECKING:
    from tiktoken import Encoding


#: Task -> tokens of HELM's prompt before the record.
SUBJECTS = {"guo_readmission": 96, "new_hypertension": 489, "lab_anemia": 97}
MAX_TOKENS = 100_000
MAX_LABELS = 10_000
SEED = 1


def rows(files: list[SourceFile]) -> Iterator[Record]:
    """Records with `patient`, `subject` (the task), `codes` (one per line, oldest first), `boolean_value`."""
    encoding = cl100k.read_encoding(only(files, cl100k.NAME))
    events = _Events(only(files, "data/data.parquet"), encoding)
    for subject, before in SUBJECTS.items():
        file = only(files, f"labels/{subject}/labels.parquet")
        for patient, moment, value in _labels(file, draw=subject.startswith("lab_")):
            codes = events.until(patient, moment)
            if before + codes.tokens <= MAX_TOKENS:
                fields = {"subject": subject, "codes": codes.text, "boolean_value": value}
                yield Record({"patient": patient, **fields}, file.where)


def _labels(file: SourceFile, *, draw: bool) -> Iterator[tuple[int, int, bool]]:
    """Patient, moment (microseconds since 1970) and value, ordered by the first two."""
    table = _read(file, ["subject_id", "prediction_time", "boolean_value"])
    patient, moment = _integers(table, "subject_id"), _integers(table, "prediction_time")
    value = table["boolean_value"].to_numpy()
    chosen = np.arange(len(table))
    if draw and len(table) > MAX_LABELS:
        chosen = np.random.RandomState(SEED).choice(len(table), MAX_LABELS, replace=False)
    for index in chosen[np.lexsort((moment[chosen], patient[chosen]))]:
        yield int(patient[index]), int(moment[index]), bool(value[index])


@dataclass(frozen=True)
class _Codes:
    """The codes of a record, a line each, and the tokens of HELM's list of them."""

    text: str
    tokens: int


class _Events:
    """All events, by patient and time. Those without a time belong to no moment and are left out."""

    def __init__(self, file: SourceFile, encoding: Encoding) -> None:
        table = _read(file, ["subject_id", "time", "code"])
        table = table.filter(table["time"].is_valid())
        patient, time = _integers(table, "subject_id"), _integers(table, "time")
        code = table["code"].combine_chunks()
        self._codes = np.array(code.dictionary.to_pylist(), dtype=object)
        order = np.lexsort((time, patient))
        self._patient, self._time = patient[order], time[order]
        self._code = code.indices.to_numpy()[order]
        # HELM lists codes as "- CODE", a line each; no token crosses a line
        self._lines = np.array(
            [cl100k.count(encoding, f"- {name}\n") for name in self._codes], dtype=np.int64
        )
        self._last = np.array(
            [cl100k.count(encoding, f"- {name}\n\n") for name in self._codes], dtype=np.int64
        )
        self._sums = np.concatenate([[0], np.cumsum(self._lines[self._code])])

    def until(self, patient: int, moment: int) -> _Codes:
        start, stop = np.searchsorted(self._patient, [patient, patient + 1])
        stop = start + np.searchsorted(self._time[start:stop], moment, side="right")
        if start == stop:
            return _Codes("", 0)
        last = self._code[stop - 1]
        tokens = self._sums[stop] - self._sums[start] - self._lines[last] + self._last[last]
        return _Codes("\n".join(self._codes[self._code[start:stop]]), int(tokens))


def _read(file: SourceFile, columns: list[str]) -> pa.Table:
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
