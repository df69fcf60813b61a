"""Archives that are made to fill a memory or a disk are refused before anything is unpacked."""

import zipfile

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows import files
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.originals import files_below


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
