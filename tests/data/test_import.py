"""`medtasks data import`: a file that a user has becomes the row file of a dataset."""

from __future__ import annotations

import json

import pytest

FOLDER = "own/medhelm/hospice_referral"
CSV = "Frage;Context;LABEL;Station\n" + "".join(f"Größe?;Fall {n};{'AB'[n % 2]};3\n" for n in range(6))


def imported(medtasks, *arguments: str):
    return medtasks(
        "data", "import", "mine.csv", "--task", "medhelm_hospice_referral", "-o", "own", *arguments
    )


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_columns_are_mapped_by_name_and_by_word(medtasks, tmp_path, encoding):
    (tmp_path / "mine.csv").write_text(CSV, encoding=encoding)
    outcome = imported(medtasks, "--map", "prompt=Frage", "--encoding", encoding)
    assert outcome.code == 0, outcome.text
    assert "column prompt is Frage" in outcome.out and "column label is LABEL" in outcome.out
    assert "✓ medhelm_hospice_referral  6 test rows" in outcome.out
    rows = [json.loads(line) for line in (tmp_path / FOLDER / "test.jsonl").read_text().splitlines()]
    assert rows[0] == {"prompt": "Größe?", "context": "Fall 0", "label": "A", "Station": "3"}


def test_rows_with_faults_are_said(medtasks, tmp_path):
    (tmp_path / "mine.csv").write_text(CSV.replace(";A;", ";yes;"))
    outcome = imported(medtasks, "--map", "prompt=Frage")
    assert (
        outcome.code == 1 and "column label holds another value, expected one of: A, B: 3 rows" in outcome.out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the file has no column prompt"),
        (("--map", "prompt=Fragen"), "which is no column of the file"),
        (("--map", "promt=Frage"), "which is no column of medhelm_hospice_referral"),
        (("--map", "prompt"), "write OURS=THEIRS"),
        (("--map", "prompt=Frage", "--encoding", "ascii"), "line 2 is not ascii"),
        (("--map", "prompt=Frage", "--encoding", "utf8000"), "no encoding has the name"),
        (("--map", "prompt=Frage", "--split", "dev"), "use test or fewshot"),
    ],
)
def test_what_cannot_be_imported_is_said(medtasks, tmp_path, arguments, message):
    (tmp_path / "mine.csv").write_text(CSV)
    outcome = imported(medtasks, *arguments)
    assert outcome.code == 2 and message in outcome.err
    assert not (tmp_path / FOLDER).exists() or not list((tmp_path / FOLDER).iterdir())


def test_rows_that_are_there_are_not_replaced(medtasks, tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    assert imported(medtasks, "--map", "prompt=Frage").code == 0
    outcome = imported(medtasks, "--map", "prompt=Frage")
    assert outcome.code == 2 and "test.jsonl: is there already" in outcome.err


def test_a_suffix_that_is_not_read_lists_those_that_are(medtasks, tmp_path):
    (tmp_path / "mine.ods").write_text("x")
    outcome = medtasks("data", "import", "mine.ods", "--task", "medhelm_clear", "-o", "own")
    assert outcome.code == 2 and ".xlsx" in outcome.err
