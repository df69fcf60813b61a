"""`medtasks doctor` on the machine around the package."""

import importlib.util
import os

import pytest


def line(report, word):
    return next(text for text in report.out.splitlines() if word in text)


def test_what_is_missing_and_not_needed_is_no_fault(medtasks, monkeypatch, tmp_path):
    monkeypatch.delenv("MEDTASKS_BERTSCORE", raising=False)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    report = medtasks("doctor")
    assert line(report, "Punkt").startswith("· ") and "python -m nltk.downloader punkt_tab" in line(
        report, "Punkt"
    )
    assert line(report, "BERTScore")[0] in "·✓"


def test_punkt_data_is_found_where_nltk_looks(medtasks, monkeypatch, tmp_path):
    for language in ("english", "french"):
        (tmp_path / "tokenizers" / "punkt_tab" / language).mkdir(parents=True)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    assert line(medtasks("doctor"), "Punkt").startswith("✓ ")


def test_bertscore_that_is_switched_on_and_not_there_is_a_fault(medtasks, monkeypatch):
    monkeypatch.setenv("MEDTASKS_BERTSCORE", "1")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "bert_score" else find(name)
    )
    report = medtasks("doctor")
    assert report.code == 1 and line(report, "BERTScore").startswith("✗ ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_cache_that_cannot_be_written_is_named(medtasks, monkeypatch, tmp_path):
    tmp_path.chmod(0o500)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    assert "MEDTASKS_CACHE" in line(medtasks("doctor"), "the cache cannot be written")


def test_a_full_disk_is_named(medtasks, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 2**20}))
    report = medtasks("doctor")
    assert report.code == 1 and "GB are free in this folder" in report.out


def test_a_data_folder_that_everybody_can_read_is_named(medtasks, monkeypatch, tmp_path):
    monkeypatch.setenv("MEDTASKS_DATA_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    assert "chmod -R o-rwx" in line(medtasks("doctor"), "every user")
    tmp_path.chmod(0o700)
    assert line(medtasks("doctor"), "other users").startswith("✓ ")
