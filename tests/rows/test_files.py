"""Row files of other shapes: XML, text files in an archive, rows named by their file, hostile archives."""

import json
import zipfile

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows import files, sources
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.originals.readers import files_below
from medtasks_ext.rows.remote import RemoteFile
from medtasks_ext.rows.spec import Download, Source
from tests.conftest import write_jsonl

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


def test_broken_xml_is_named(tmp_path):
    (tmp_path / "test.xml").write_text("<Set><Question></Set>", encoding="utf-8")
    with pytest.raises(MedtasksError, match="is not valid XML") as raised:
        read_rows(tmp_path / "test.xml")
    assert "test.xml" in str(raised.value)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in {
            "source-1/notes/b.txt": "second\n",
            "source-1/notes/a & é.txt": "\ufefffirst",
            "source-1/notes/list.csv": "x",
            "source-1/other/c.txt": "third",
            "source-1/notes/bad/d.txt": b"\xff",
        }.items():
            zipped.writestr(name, text)
    return path


def test_text_files_of_an_archive_are_rows_sorted_by_name(archive):
    rows = read_rows(archive, "notes/*.txt")
    assert rows == [{"file": "a & é.txt", "text": "first"}, {"file": "b.txt", "text": "second\n"}]


@pytest.mark.parametrize(
    ("member", "message"), [("texts/*.txt", "holds no rows"), ("bad/*.txt", "not UTF-8 text")]
)
def test_missing_and_unreadable_text_files_are_named(archive, member, message):
    with pytest.raises(MedtasksError, match=message) as raised:
        read_rows(archive, member)
    assert "source.zip!" in str(raised.value)


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "source.zip").write_text("x")
    with pytest.raises(MedtasksError, match="is not a zip archive"):
        read_rows(tmp_path / "source.zip", "notes/*.txt")


def test_downloaded_rows_know_the_file_that_they_come_from(tmp_path, monkeypatch):
    for name in ("one", "two"):
        write_jsonl(tmp_path / name / "test.jsonl", [{"text": name}])
    monkeypatch.setattr(RemoteFile, "get", lambda file: tmp_path / file.name)
    download = Download(repo="owner/set", revision="1", test=["one/test.jsonl", "two/test.jsonl"])
    rows = sources.load_rows(None, Source(official_name="x", download=download), "hub").test
    assert rows == [{"text": "one", "_file": "one/test.jsonl"}, {"text": "two", "_file": "two/test.jsonl"}]


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


LISTS = [
    '[{"a": 1}, {"a": "x]y, [é"}]',
    '\ufeff [ {"a": {"b": [1, {}]}} ,\r\n{"a": null, "c": "d"} ]\n',
    '[{"a": 1}]',
]
OTHERS = [
    '[{"a": 1} {"a": 2}]',
    '[{"a": 1}, {"a": 2}] x',
    '[{"a": 1},, {"a": 2}]',
    '[{"a": 1}, {"a": 2}',
    '{"a": {"b": 1}}',
]
OTHERS += [
    '[[{"a": 1}], [{"a": 2}]]',
    '[{"a": 1}, 2]',
    "[]",
    f"[{'[' * 5000}",
    '[{"a": 1}, {"a": "\x01"}]',
    ',{"a": 1}]',
]


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("text", [*LISTS, *OTHERS])
def test_a_large_list_is_read_piece_by_piece_and_gives_what_it_gives_as_a_whole(
    tmp_path, monkeypatch, text, piece
):
    (tmp_path / "rows.json").write_bytes(text.encode())

    def read():
        try:
            return read_rows(tmp_path / "rows.json")
        except MedtasksError as error:
            return str(error)

    whole = read()
    monkeypatch.setattr(files, "LARGE", 0)
    monkeypatch.setattr(files, "PIECE", piece)
    assert read() == whole
    assert files._objects(tmp_path / "rows.json") == (
        json.loads(text.lstrip("\ufeff")) if text in LISTS else None
    )
