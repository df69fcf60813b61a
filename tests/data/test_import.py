"""`medtasks data import`: a file that a user has becomes the row file of a dataset."""

import json

import pytest
from openpyxl import Workbook

from medtasks_ext.registry import registry

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
    assert outcome.code == 1
    said = "column label holds 'yes' (another value), expected one of: A, B: 3 rows"
    assert said in outcome.out  # no text of a patient


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the file has no column prompt"),
        (("--map", "promt=Frage"), "which is no column of medhelm_hospice_referral"),
        (("--map", "prompt=Frage", "--encoding", "ascii"), "line 2 is not ascii"),
        (("--map", "prompt=Frage", "--split", "dev"), "use test or fewshot"),
        (("--map", "prompt=Frage", "--map-value", "label=A"), "write COLUMN:THEIRS=OURS"),
        (("--map", "prompt=Frage", "--sheet", "x"), "it has one table: leave --sheet out"),
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
    assert outcome.code == 2 and "test.jsonl: exists already" in outcome.err
    (tmp_path / "mine.csv").write_text(CSV.replace("Fall 0", "Fall;0"))
    outcome = imported(medtasks, "--map", "prompt=Frage", "--replace")
    assert (
        "1 of 7 records have more cells than the header (record 2)" in outcome.err
        and "Fall" not in outcome.err
    )
    outcome = imported(medtasks, "--map", "prompt=Frage", "--replace", "--skip-ragged")
    assert outcome.code == 0 and len(rows_of(tmp_path)) == 5, outcome.text


def rows_of(folder, split="test"):
    return [json.loads(line) for line in (folder / FOLDER / f"{split}.jsonl").read_text("utf-8").splitlines()]


GERMAN = [
    ["prompt", "context", "label"],
    *(["Hospiz?", f"Erfundener Fall {n}.", ("Ja", "Nein")[n % 2]] for n in range(12)),
]
MAP = ("--map-value", "label:Ja=A", "--map-value", "label:Nein=B")


def csv_of(records):
    return "".join(";".join(record) + "\n" for record in records)


def test_values_are_mapped_and_those_that_no_row_has_or_nobody_maps_are_said(medtasks, tmp_path):
    (tmp_path / "mine.csv").write_text(csv_of(GERMAN), "utf-8")
    outcome = imported(medtasks, *MAP)
    assert outcome.code == 0, outcome.text
    assert [row["label"] for row in rows_of(tmp_path)] == ["A", "B"] * 6
    (tmp_path / FOLDER / "test.jsonl").unlink()
    outcome = imported(medtasks, "--map-value", "label:Jaa=A")
    assert outcome.code == 2 and "no row has the value 'Jaa' in column label" in outcome.err
    outcome = imported(medtasks, "--map-value", "label:Ja=A")
    assert outcome.code == 1 and "(another value)" in outcome.out and "6 rows" in outcome.out


def test_titles_sums_and_repeated_headers_are_left_out_by_record(medtasks, tmp_path):
    records = [
        ["Export der Station 3"], [], *GERMAN[:7], GERMAN[0], *GERMAN[7:], [], ["", "", "", "Summe 12"],
    ]  # fmt: skip
    records[2] = records[9] = [*records[2], "Rest"]
    (tmp_path / "mine.csv").write_text(csv_of(records), "utf-8")
    outcome = imported(medtasks, *MAP)
    assert outcome.code == 0, outcome.text
    assert len(rows_of(tmp_path)) == 12
    assert "left out: 1 record, each of which stands above the header (record 1)" in outcome.out
    assert "left out: 2 records, each of which is empty (record 2, 17)" in outcome.out
    assert "left out: 1 record, each of which is the header again (record 10)" in outcome.out
    assert "holds nothing in the columns that are needed (record 18)" in outcome.out


def test_all_sheets_that_fit_are_joined_and_others_named(medtasks, tmp_path):
    head = GERMAN[0]
    sheets = {
        "Januar": GERMAN[:8],
        "Februar": [[*reversed(head)], *([*reversed(row)] for row in GERMAN[8:])],
        "Legende": [["Kürzel", "Bedeutung"], ["Ja", "Hospiz"]],
    }
    book = Workbook()
    book.remove(book.active)
    for name, records in sheets.items():
        sheet = book.create_sheet(name)
        for record in records:
            sheet.append(record)
    book.save(tmp_path / "mine.xlsx")
    call = ("data", "import", "mine.xlsx", "--task", "medhelm_hospice_referral", "-o", "own", *MAP)
    outcome = medtasks.done(*call)
    assert "sheet Januar: 7 rows" in outcome.out and "sheet Februar: 5 rows" in outcome.out
    assert "sheet Legende is not read: the file has no column prompt, context, label" in outcome.out
    assert [row["context"] for row in rows_of(tmp_path)] == [row[1] for row in GERMAN[1:]]
    (tmp_path / FOLDER / "test.jsonl").unlink()
    assert medtasks(*call, "--sheet", "Februar").code == 0 and len(rows_of(tmp_path)) == 5
    (tmp_path / FOLDER / "test.jsonl").unlink()
    assert "has no sheet März" in medtasks(*call, "--sheet", "März").err


def test_files_of_patients_are_their_owners_alone(medtasks, tmp_path):
    (tmp_path / "mine.csv").write_text(csv_of(GERMAN), "utf-8")
    for split in ("test", "fewshot"):
        assert imported(medtasks, *MAP, "--split", split).code in (0, 1)
        assert (tmp_path / FOLDER / f"{split}.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / FOLDER).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["mlb_maexam", "medhelm_ehrshot", "bridge_mie", "medhelm_n2c2_ct"])
def test_the_example_rows_of_a_template_put_where_rows_belong_can_be_run(medtasks, tmp_path, name):
    medtasks.done("data", "template", name, "-o", "own")
    dataset = registry().datasets[name]
    folder = tmp_path / "own" / dataset.metadata.suite / dataset.folder.name
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "example.jsonl"]
    (folder / "test.jsonl").write_bytes((folder / "example.jsonl").read_bytes())
    [record] = json.loads(medtasks("data", "check", "own", "--json").out)["datasets"]
    assert record["causes"] == [] and record["n_usable"] == record["n_test"] > 0


def test_rows_are_found_where_they_were_written_without_a_setting(medtasks, tmp_path, monkeypatch):
    monkeypatch.delenv("MEDTASKS_DATA_DIR", raising=False)
    (tmp_path / "mine.csv").write_text(CSV, encoding="utf-8")
    task = ("medhelm_hospice_referral", "--map", "prompt=Frage")
    medtasks.done("data", "import", "mine.csv", "--task", *task)
    outcome = medtasks.done("run", "--model", "oracle", "--tasks", task[0], "--output_path", "run")
    assert "hospice_referral: done, score 1.0000" in outcome.err
