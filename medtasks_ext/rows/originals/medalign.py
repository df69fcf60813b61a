"""MedAlign: clinicians' instructions, one clinician's responses, and a record per patient.

HELM's facts (`medalign_scenario_helper.py`): the responses of Annotator_1 in their order, joined with
the instruction; of the record its last tokens, so that prompt and answer fit a context of 100,000.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import excerpt, shows_text
from medtasks_ext.rows.originals import cl100k
from medtasks_ext.rows.originals.readers import Record, records, with_columns
from medtasks_ext.rows.originals.tree import SourceFile, matching, only
from medtasks_ext.rows.spec import TableReader

INSTRUCTIONS = "clinician-reviewed-model-responses.tsv"
RESPONSES = "clinician-instruction-responses.tsv"
ANNOTATOR = "Annotator_1"
CONTEXT = 100_000
ANSWER = 256
#: Tokens of HELM's prompt without question and record.
TEMPLATE = 25


def rows(files: list[SourceFile]) -> Iterator[Record]:
    """Records with `patient`, `question`, `ehr` and `clinician_response`."""
    encoding = cl100k.read_encoding(only(files, cl100k.NAME))
    instructions = {
        record.fields["instruction_id"]: (record.fields["question"], record.fields["person_id"])
        for record in _table(files, INSTRUCTIONS, ["instruction_id", "question", "person_id"])
    }
    charts = {file.path.stem: file for file in matching(files, ["medalign_ehr_xml/*.xml"])}
    for record in _table(files, RESPONSES, ["instruction_id", "annotator_num", "clinician_response"]):
        known = instructions.get(record.fields["instruction_id"])
        if record.fields["annotator_num"] != ANNOTATOR or known is None:
            continue
        question, person = known
        if person not in charts:
            what = f"there is no medalign_ehr_xml/{person if shows_text() else excerpt(person)}.xml"
            raise MedtasksError(what, where=record.where, remedy="put all patients' records there")
        chart = io.StringIO(charts[person].text("utf-8"), newline=None).read()
        size = CONTEXT - ANSWER - TEMPLATE - cl100k.count(encoding, question)
        yield Record(
            {
                "patient": person,
                "question": question,
                "ehr": cl100k.tail(encoding, chart, size),
                "clinician_response": record.fields["clinician_response"],
            },
            record.where,
        )


def _table(files: list[SourceFile], name: str, columns: list[str]) -> Iterator[Record]:
    return with_columns(
        records(TableReader(kind="table", quoted=True), files, [only(files, name).name]), columns
    )
