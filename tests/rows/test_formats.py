"""The forms in which people have their rows, and files that cannot be read: one message, no text of a row."""

import csv
import io
import json
import zipfile
from pathlib import Path

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts import load_documents
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import registry
from medtasks_ext.rows import files
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.originals.readers import files_below
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
        ("test.csv", as_csv("\t").encode()),
        ("test.csv", ("sep=;\r\n" + as_csv(";", "\r\n")).encode()),
        ("test.csv", as_csv(",", "\r\n").encode("utf-8-sig")),
        ("test.csv", as_csv(";").encode("utf-16")),
        ("test.csv", as_csv(",", header=[*HEADER, ""], rows=[[*row, ""] for row in ROWS]).encode()),
        ("test.csv", (as_csv(",") + ",,\n,,\n").encode()),
        ("test.csv", as_csv(",", header=["Prompt", " CONTEXT ", "label"]).encode()),
        ("Test.CSV", as_csv(";").encode()),
        ("test.xlsx", as_xlsx(ROWS)),
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


CP1252 = as_csv(",", rows=[["Eligible?", "a cold", "A"]] * 20) + f"Q,Größe {MARKER} später,A\n"
FAULTS = [
    ("test.csv", f"{MARKER}\n".encode() * 3, "column prompt, context, label is missing", "accepted schemas"),
    ("test.csv", f"prompt;context;label\nQ;{MARKER}; and more;A\n".encode(),
     "1 of 2 records have more cells than the header (record 2)", "quote cells that hold semicolons"),
    ("test.csv", CP1252.encode("cp1252"), "not UTF-8 text (line 22, byte ", "`new`: --encoding"),
    ("test.csv", as_csv(",", header=["a", "a", "label"]).encode(), "two columns have one name", "once"),
    ("test.jsonl", b'{"a": 1},\n{"a": 2},\n{"a": 3}\n', "2 lines (1, 2) end in a comma", "without commas"),
    ("test.jsonl", b'{"a": 1}\n[1]\n{"a"\n', "line 2 is not an object; 1 other lines", "one object per line"),
    ("test.xlsx", b"not a workbook", "is no Excel workbook", "save it as .xlsx or .csv"),
    ("test.xlsx", as_xlsx(ROWS, more_sheets=["more"]), "2 sheets hold cells", "only the sheet with the rows"),
    ("test.csv", as_csv(",", rows=[["Q", MARKER, "a"]] * 3).encode(), "column label", "same case"),
    ("test.csv", b"", "holds no rows", "put the complete file there"),
    ("test.json", b'[{"prompt": 1},', "not valid JSON", ""),
    ("test.parquet", b"not parquet", "not a Parquet file", ""),
    ("test.xml", b"<Set><Question></Set>", "is not valid XML", ""),
    ("test.docx", b"not a zip", "is not a Word", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message", "remedy"), FAULTS)
def test_an_unreadable_file_says_what_where_and_remedy(data_dir, monkeypatch, name, content, message, remedy):
    monkeypatch.setenv("MEDTASKS_SHOW_TEXT", "0")
    path = put(data_dir, name, content)
    with pytest.raises(MedtasksError) as error:
        load_documents(HOSPICE, cot=False)
    said = str(error.value)
    assert str(path) in said and message in said and remedy in error.value.remedy
    assert MARKER not in said and "Größe" not in said


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


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Niño con fiebre"),
        ("cp1251", "Пациент жалуется на боли в груди"),
        ("gb18030", "患者发热三天，咳嗽，咽痛，查体咽部充血，双肺呼吸音清"),
        ("cp932", "患者は発熱と咳を訴えた。"),
    ],
)
def test_the_encoding_of_a_few_words_is_named_as_people_know_it(data_dir, encoding, text):
    put(data_dir, "test.csv", f"prompt,context,label\nQ,{text},A\n".encode(encoding))
    (fault,) = check_rows(HOSPICE, "local").faults
    assert f"it seems to be {encoding}" in fault.what and f"--encoding {encoding}" in str(fault.remedy)


XML = """<?xml version="1.0" encoding="UTF-8"?>
<Set>
  <Question QID="1">
    <Text> What is
flu? </Text>
    <Answers><Answer Rank="2"><Said>a &lt; b</Said></Answer><Answer Rank="1"><Said/></Answer></Answers>
  </Question>
  <Question QID="2"><Text>é</Text><Answers><Answer Rank="1"/></Answers></Question>
</Set>
"""


def test_in_xml_each_child_of_the_root_is_a_row(tmp_path):
    (tmp_path / "test.xml").write_text(XML, encoding="utf-8")
    assert read_rows(tmp_path / "test.xml") == [
        {"QID": "1", "Text": "What is\nflu?",
         "Answers": [{"Answer": [{"Rank": "2", "Said": "a < b"}, {"Rank": "1", "Said": ""}]}]},
        {"QID": "2", "Text": "é", "Answers": [{"Answer": [{"Rank": "1"}]}]},
    ]  # fmt: skip


def test_text_files_of_an_archive_are_rows_sorted_by_name(tmp_path):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in (
            ("s/notes/b.txt", "second\n"), ("s/notes/a & é.txt", "\ufefffirst"), ("s/notes/list.csv", "x"),
            ("s/other/c.txt", "third"), ("s/notes/bad/d.txt", b"\xff"),
        ):  # fmt: skip
            zipped.writestr(name, text)
    rows = read_rows(path, "notes/*.txt")
    assert rows == [{"file": "a & é.txt", "text": "first"}, {"file": "b.txt", "text": "second\n"}]
    for member, message in (("texts/*.txt", "holds no rows"), ("bad/*.txt", "not UTF-8 text")):
        with pytest.raises(MedtasksError, match=message) as raised:
            read_rows(path, member)
        assert "source.zip!" in str(raised.value)


def test_a_member_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("rows.jsonl", b"0" * (4 << 20))
    for read in (lambda: read_rows(path, "rows.jsonl"), lambda: files_below([path])):
        with pytest.raises(MedtasksError, match="more than 1,000 times its size"):
            read()


@pytest.mark.parametrize(("limit", "value", "why"), [("_MEMBERS", 2, "3 members"), ("_BYTES", 5, "unpacked")])
def test_too_many_members_and_too_many_bytes_are_refused(tmp_path, monkeypatch, limit, value, why):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(3):
            archive.writestr(f"{number}.txt", "text")
    assert len(files_below([path])) == 3
    monkeypatch.setattr(files, limit, value)
    with pytest.raises(MedtasksError, match=why):
        files_below([path])
