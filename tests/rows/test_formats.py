"""The forms in which people have their rows, and files that cannot be read: one message, no text of a row."""

import csv
import io
import json
from datetime import datetime
from pathlib import Path

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.rows.originals.readers import SourceFile, cells_of
from tests.conftest import sample_rows, write_jsonl
from tests.rows.original_sources import jsonl, parquet

HOSPICE = registry().datasets["medhelm_hospice_referral"]
MARKER = "Zwölf Tage Fieber"
HEADER = ["prompt", "context", "label"]
ROWS = [["Eligible?", f'{MARKER}, "stark"; Tag {n}\nLine two', "AB"[n % 2]] for n in range(8)]
LINES = [dict(zip(HEADER, row, strict=True)) for row in ROWS]

#: The same rows as Excel 97 wrote them (BIFF8, made with xlwt 1.3), with an empty second sheet.
OLD_WORKBOOK = Path(__file__).with_name("rows.xls")


def put(data_dir, name: str, content: bytes):
    path = data_dir / "medhelm" / "hospice_referral" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def as_csv(separator: str, line_end: str = "\n", header=HEADER, rows=ROWS) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator=line_end).writerows([header, *rows])
    return text.getvalue()


def as_xlsx(rows, header=HEADER, more_sheets=()) -> bytes:
    from openpyxl import Workbook

    book, content = Workbook(), io.BytesIO()
    for row in [header, *rows]:
        book.active.append(row)
    for name in more_sheets:
        book.create_sheet(name).append(["a", "b"])
    book.save(content)
    return content.getvalue()


def prompts() -> list[tuple[str, str]]:
    found = check_rows(HOSPICE, "local")
    assert not found.faults
    return [(item["prompt"], item["target"]) for item in found.test]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.csv", as_csv(",").encode()),
        ("test.csv", as_csv(";").encode()),
        ("test.csv", as_csv("\t").encode()),
        ("test.csv", as_csv("|").encode()),
        ("test.csv", ("sep=;\r\n" + as_csv(";", "\r\n")).encode()),
        ("test.csv", as_csv(",", "\r\n").encode("utf-8-sig")),
        ("test.csv", as_csv(";").replace("\n", "\r\n").encode()),  # also within cells
        ("test.csv", as_csv(";").encode("utf-16")),
        ("test.csv", as_csv(",", header=[*HEADER, ""], rows=[[*row, ""] for row in ROWS]).encode()),
        ("test.csv", (as_csv(",") + ",,\n,,\n").encode()),
        ("test.csv", as_csv(",", header=["Prompt", " CONTEXT ", "label"]).encode()),
        ("Test.CSV", as_csv(";").encode()),
        ("test.tsv", as_csv("\t").encode()),
        ("test.xlsx", as_xlsx(ROWS)),
        ("TEST.XLSX", as_xlsx(ROWS)),
        ("test.xls", OLD_WORKBOOK.read_bytes()),
        ("test.json", json.dumps(LINES).encode()),
        ("test.parquet", parquet(LINES)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_form_of_a_table_gives_the_same_prompts(data_dir, name, content):
    other = put(data_dir, "test.jsonl", jsonl(LINES).encode())
    expected = prompts()
    other.unlink()
    put(data_dir, name, content)
    assert prompts() == expected


def test_a_workbook_is_told_by_its_content_whatever_its_name_says(data_dir):
    put(data_dir, "test.xls", as_xlsx(ROWS))
    assert len(prompts()) == len(ROWS)


def test_lists_and_objects_stand_in_cells_as_json_or_as_python_prints_them(data_dir):
    exam = registry().datasets["mlb_maexam"]
    rows, header = sample_rows("mlb_maexam", ""), ["question", "options", "answer"]
    folder = data_dir / "mlb" / "maexam"
    folder.mkdir(parents=True)
    texts = []
    for number, write in enumerate((json.dumps, str)):
        cells = [[row["question"], write(row["options"]), write(row["answer"])] for row in rows]
        (folder / "test.csv").write_text(as_csv(",;"[number], header=header, rows=cells))
        found = check_rows(exam, "local")
        assert not found.faults
        texts.append([(item["prompt"], item["gold"]) for item in found.test])
    assert texts[0] == texts[1] and len(texts[0]) == 3 * len(rows)


def test_numbers_of_a_workbook_are_what_a_csv_of_it_holds(data_dir):
    medec = registry().datasets["medhelm_medec"]
    rows = sample_rows("medhelm_medec", "")
    header = ["Text ID", "Sentences", "Error Flag", "Error Sentence ID", "Corrected Sentence"]
    folder = data_dir / "medhelm" / "medec"
    folder.mkdir(parents=True)
    numbers = ("Error Flag", "Error Sentence ID")
    cells = [[int(row[name]) if name in numbers else row[name] for name in header] for row in rows]
    (folder / "test.xlsx").write_bytes(as_xlsx(cells, header))
    found = check_rows(medec, "local")
    assert not found.faults and {item["target"] == "CORRECT" for item in found.test} == {True, False}


FAULTS = [
    ("test.csv", f"{MARKER}\n".encode() * 3, "column prompt, context, label is missing", "accepted schemas"),
    (
        "test.csv",
        f"prompt;context;label\nQ;{MARKER}; and more;A\n".encode(),
        "row 1 has more cells than the header (4 instead of 3)",
        "quote cells that hold semicolons",
    ),
    (
        "test.csv",
        (as_csv(",", rows=[["Eligible?", "a cold", "A"]] * 20) + f"Q,Größe {MARKER} später,A\n").encode(
            "cp1252"
        ),
        "not UTF-8 text (line 22, byte ",
        "name the encoding to `medtasks data import` or `new`: --encoding",
    ),
    (
        "test.csv",
        as_csv(",", header=["prompt", "prompt", "label"]).encode(),
        "two columns have one name",
        "once",
    ),
    ("test.jsonl", b'{"a": 1},\n{"a": 2},\n{"a": 3}\n', "2 lines (1, 2) end in a comma", "without commas"),
    ("test.jsonl", b'{"a": 1}\n[1]\n{"a"\n', "line 2 is not an object; 1 other lines", "one object per line"),
    ("test.xlsx", b"not a workbook", "is no Excel workbook", "save it as .xlsx or .csv"),
    ("test.xlsx", as_xlsx(ROWS, more_sheets=["more"]), "2 sheets hold cells", "only the sheet with the rows"),
    ("test.csv", as_csv(",", rows=[["Q", MARKER, "a"]] * 3).encode(), "column label", "same case"),
    ("test.csv", as_csv(",", rows=[["Q", MARKER, "Yes"]] * 3).encode(), "expected one of: A, B", "same case"),
    ("test.csv", b"", "holds no rows", "put the complete file there"),
    ("test.json", b'[{"prompt": 1},', "not valid JSON", ""),
    ("test.json", b'"text"', "expected a list of objects", ""),
    ("test.parquet", b"not parquet", "not a Parquet file", ""),
]


@pytest.mark.parametrize(("name", "content", "message", "remedy"), FAULTS)
def test_an_unreadable_file_says_what_where_and_remedy(data_dir, monkeypatch, name, content, message, remedy):
    monkeypatch.setenv("MEDTASKS_SHOW_TEXT", "0")
    path = put(data_dir, name, content)
    with pytest.raises(MedtasksError) as error:
        load_documents(HOSPICE, cot=False)
    said = str(error.value)
    assert str(path) in said and message in said and remedy in error.value.remedy
    assert MARKER not in said and "Größe" not in said


def test_an_empty_file_beside_the_rows_hides_nothing(medtasks, data_dir):
    put(data_dir, "test.jsonl", b"")
    put(data_dir, "test.csv", as_csv(",").encode())
    assert len(prompts()) == len(ROWS)
    outcome = medtasks("data", "check")
    assert f"{len(ROWS)} test rows" in outcome.out and "?" not in outcome.out


@pytest.mark.parametrize(("first", "noted"), [(0, False), (1, True)])
def test_answers_that_seem_to_be_counted_from_one_are_noted(data_dir, first, noted):
    """They are right indices, and every gold answer is wrong."""
    exam = registry().datasets["mlb_maexam"]
    rows = [
        {"question": f"题{n}", "options": [f"选项{n}{i}" for i in range(5)], "answer": [first + n % 4]}
        for n in range(12)
    ]
    folder = data_dir / "mlb" / "maexam"
    write_jsonl(folder / "test.jsonl", rows)
    found = check_rows(exam, "local")
    assert not found.faults
    assert any("counted from 0" in note for note in found.notes) == noted


def test_where_two_encodings_read_the_same_bytes_both_are_named(data_dir):
    """The bytes of Polish and Czech letters are letters in cp1252, too."""
    put(data_dir, "test.csv", "prompt,context,label\nQ,Ból głowy i gorączka,A\n".encode("cp1250"))
    (fault,) = check_rows(HOSPICE, "local").faults
    assert "cp1250 (Polish, Czech" in fault.what and "or cp1250" in str(fault.remedy)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Niño con fiebre"),
        ("cp1252", "état fébrile depuis hier"),
        ("cp1251", "Пациент жалуется на боли в груди"),
        ("gb18030", "患者发热三天，咳嗽，咽痛，查体咽部充血，双肺呼吸音清"),
        ("cp932", "患者は発熱と咳を訴えた。"),
    ],
)
def test_the_encoding_of_a_few_words_is_named_as_people_know_it(data_dir, encoding, text):
    put(data_dir, "test.csv", f"prompt,context,label\nQ,{text},A\n".encode(encoding))
    (fault,) = check_rows(HOSPICE, "local").faults
    assert f"it seems to be {encoding}" in fault.what and f"--encoding {encoding}" in str(fault.remedy)


# ---------------------------------------------------------------------- cells of workbooks


def cells(book: openpyxl.Workbook) -> list[list[str]]:
    content = io.BytesIO()
    book.save(content)
    return list(cells_of(SourceFile("a.xlsx", "a.xlsx", lambda: io.BytesIO(content.getvalue()))))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("  two\nlines ", "  two\nlines "), (4, "4"), (3.5, "3.5"), (123456789012, "123456789012"),
        (True, "1"), (False, "0"),
        (datetime(2020, 5, 1), "43952"),  # "1-5" that a program took for a date
        (CellRichText("a ", TextBlock(InlineFont(b=True), "bold"), " word"), "a bold word"),
    ],
)  # fmt: skip
def test_a_cell_is_the_text_that_the_file_holds(value, text):
    book = openpyxl.Workbook()
    book.active.append(["x", value])
    assert cells(book) == [["x", text]]


def test_rows_are_equally_long_and_cells_that_the_file_leaves_out_are_empty():
    book = openpyxl.Workbook()
    book.active["C1"], book.active["A3"] = "end", "start"
    assert cells(book) == [["", "", "end"], ["", "", ""], ["start", "", ""]]


def test_the_first_sheet_is_the_one_that_a_reader_sees_first():
    book = openpyxl.Workbook()
    book.active.append(["second"])
    book.create_sheet("front", 0).append(["first"])
    assert cells(book) == [["first"]]


def test_of_an_old_workbook_the_first_sheet_is_read_too():
    file = SourceFile("a.xls", "a.xls", lambda: io.BytesIO(OLD_WORKBOOK.read_bytes()))
    assert list(cells_of(file)) == [HEADER, *ROWS]
