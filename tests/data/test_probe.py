"""The table of sources that a scheduled workflow writes, against a server on loopback."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest
import yaml

from medtasks_ext.data.probe import main
from medtasks_ext.registry import forget
from medtasks_ext.rows import transfer
from tests.conftest import ROOT
from tests.rows.hub_server import Hub

RAW = "https://raw.githubusercontent.com"
ROWS = "question,opa,opb,opc,opd,ope,answer_idx\n" + "".join(
    f"What is {i}?,a,b,c,d,e,{'ABCDE'[i % 5]}\n" for i in range(9)
)
MIRROR = "/mirror/rows.csv"


@pytest.fixture
def served(tasks_of, monkeypatch, tmp_path):
    """Medbullets from a server on loopback, with a mirror that has the same content."""
    server = Hub()
    file = (
        tasks_of("medhelm/medbullets", "medhelm/clear", "bridge/cares_area") / "medhelm/medbullets/task.yaml"
    )
    text = file.read_text().replace(RAW, server.url)
    (url,) = yaml.safe_load(text.replace("!function ", ""))["rows"]["download"]["test"]
    pools = "  download:\n"
    assert text.count(pools) == 1
    mirrors = f"    mirrors:\n      '{url}': ['{server.url}{MIRROR}']\n"
    file.write_text(text.replace(pools, pools + mirrors))
    lock = file.with_name("data.lock")
    pinned = json.loads(lock.read_text())
    (name,) = pinned["files"]
    pinned["files"][name] = {"digest": f"sha256:{hashlib.sha256(ROWS.encode()).hexdigest()}"}
    lock.write_text(json.dumps(pinned))
    forget()
    path = url.removeprefix(server.url).replace("{revision}", pinned["revision"])
    server.files = {path: ROWS.encode(), MIRROR: ROWS.encode()}
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    server.own = path
    yield server
    server.close()


def table(tmp_path, *names: str) -> tuple[int, list[dict]]:
    file = tmp_path / "sources.csv"
    code = main([str(file), *names])
    with file.open() as lines:
        return code, list(csv.DictReader(lines))


def test_each_place_is_a_line_and_the_first_has_rows_and_the_oracle(served, tmp_path):
    code, lines = table(tmp_path, "medhelm_medbullets")
    assert code == 0 and [line["result"] for line in lines] == ["ok", "ok"]
    assert (lines[0]["rows"], lines[0]["paper"], lines[0]["oracle"]) == ("9", "308", "1.0000")
    assert {line["sha256"] for line in lines} == {hashlib.sha256(ROWS.encode()).hexdigest()}


def test_a_place_that_fails_is_named_and_the_mirror_gives_the_rows(served, tmp_path):
    served.faults = {served.own: 404}
    code, lines = table(tmp_path, "medhelm_medbullets")
    assert code == 0 and "404" in lines[0]["result"] and lines[1]["result"] == "ok"
    assert lines[0]["rows"] == "9"


def test_other_bytes_than_are_pinned_change_no_lock(served, tmp_path):
    """A dataset that changed fails the workflow, and stays what its lock says until a person acts."""
    lock = tmp_path / "tasks/medhelm/medbullets/data.lock"
    before = lock.read_bytes()
    served.files[served.own] = served.files[MIRROR] = ROWS.replace("What is 3?", "What was 3?").encode()
    assert main(["--pin", str(tmp_path / "sources.csv"), "medhelm_medbullets"]) == 1
    assert lock.read_bytes() == before
    assert "other content than is pinned" in (tmp_path / "sources.csv").read_text("utf-8")


@pytest.mark.parametrize(("fault", "result"), [("corrupt", "other content than is pinned"), (500, "500")])
def test_a_dataset_that_no_place_has_fails_the_call(served, tmp_path, capsys, fault, result):
    served.faults = {served.own: fault, MIRROR: 404}
    code, lines = table(tmp_path, "medhelm_medbullets")
    assert code == 1 and result in lines[0]["result"] and not lines[0]["rows"]
    assert "not to be had, or not readable: medhelm_medbullets" in capsys.readouterr().out


def test_datasets_with_terms_are_not_tried_and_others_have_no_line(served, tmp_path):
    code, lines = table(tmp_path, "bridge_cares_area", "medhelm_clear")
    assert code == 0 and [line["result"] for line in lines] == ["its terms are not accepted here"]
    assert not served.asked


def test_the_workflow_calls_the_module():
    text = Path(ROOT / ".github/workflows/sources.yml").read_text()
    assert (
        "python -m medtasks_ext.data.probe --pin docs/catalogue/sources.csv" in text and "schedule:" in text
    )
