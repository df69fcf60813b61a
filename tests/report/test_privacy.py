"""Text of gated and private data enters no file of a report, unless it is asked for."""

import json

import pytest

from tests.report.made import held, write_run
from tests.run_files import results_file, samples_file

MARK = "PATIENT-7731"
OPEN, GATED, PRIVATE = "bridge_ade_identification", "bridge_c_emrs", "medhelm_hospice_referral"


@pytest.fixture
def run(tmp_path):
    """Texts, ids, paths and messages of closed data carry the mark."""
    failed = {"bridge_brainmri_ais": {"state": "failed", "error": f"ValueError: {MARK}"}}
    failed["medhelm_bmt_status"] = {"state": "missing", "error": f"row 3 of {MARK}.json: no such label"}
    return write_run(
        tmp_path / "run", "ORG/a", {GATED: [1, 0, -1], PRIVATE: [1, 0]}, states=failed, text=MARK
    )


def files_with(folder, mark):
    """Those of a report that hold a text, packed or not."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and mark in text_of(path))


def text_of(path):
    if path.suffix == ".js":
        return json.dumps(held(path.read_text()), ensure_ascii=False)
    return path.read_bytes().decode(errors="replace")


def test_text_of_closed_data_is_in_no_file_and_in_nothing_printed(medtasks, run, tmp_path):
    write_run(tmp_path / "open", "ORG/a", {OPEN: [1, 0]}, text="OPEN-TEXT")
    outcome = medtasks("report", "run", "open", "-o", "out", "--published", "none")
    printed = outcome.text + medtasks("report", "run", "open", "--json").text
    assert outcome.code == 0 and MARK not in printed
    assert files_with(tmp_path / "out", MARK) == []
    assert files_with(tmp_path / "out", "OPEN-TEXT") == [f"{OPEN}-0.js", f"{OPEN}.js"]


def test_a_damaged_file_of_closed_data_is_named_without_its_text(medtasks, run, tmp_path):
    with samples_file(run, GATED).open("a") as file:
        file.write('{"doc": "' + MARK)
    results_file(run).write_text('{"results": {"' + MARK + '": ')
    outcome = medtasks("report", "run", "-o", "out", "--published", "none")
    assert outcome.code == 2 and results_file(run).name in outcome.err and MARK not in outcome.text
    assert files_with(tmp_path / "out", MARK) == []


def test_texts_are_shown_if_asked_for_and_documents_only_by_their_place(medtasks, run, tmp_path):
    outcome = medtasks("report", "run", "-o", "out", "--answers", "--published", "none")
    assert outcome.code == 0 and "as confidential as they are" in outcome.err and MARK not in outcome.text
    files = sorted(f"{name}{part}.js" for name in (GATED, PRIVATE) for part in ("", "-0"))
    assert files_with(tmp_path / "out", f"{MARK}: response 0") == files
    assert files_with(tmp_path / "out", f"{MARK}-id") == [] and files_with(tmp_path / "out", '"#1"') == files


def test_synthetic_rows_of_closed_data_are_no_secret(medtasks, tmp_path):
    write_run(tmp_path / "s", "ORG/s", {GATED: [1, 0]}, sample=True, text="INVENTED")
    medtasks("report", "s", "-o", "out")
    assert files_with(tmp_path / "out", "INVENTED") == [f"{GATED}-0.js", f"{GATED}.js"]
