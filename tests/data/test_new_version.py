"""A dataset whose bytes changed is a new version of its lock: by one command, or nothing changes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from medtasks_ext.prompts.load import _build
from medtasks_ext.registry import forget
from medtasks_ext.rows import transfer
from tests.rows.hub_server import Hub

pytestmark = pytest.mark.usefixtures("few_rows")
RAW = "https://raw.githubusercontent.com"
TASK = "medhelm_medbullets"
ROWS = "question,opa,opb,opc,opd,ope,answer_idx\n" + "".join(
    f"What is {i}?,a,b,c,d,e,{'ABCDE'[i % 5]}\n" for i in range(9)
)
LATER = ROWS.replace("What is 3?", "What was 3?")


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class Source:
    """Medbullets on a server on loopback, pinned to what lies there."""

    def __init__(self, folder: Path, server: Hub, url: str, revision: str) -> None:
        self.folder, self.server, self.url, self.revision = folder, server, url, revision

    def serve(self, text: str, revision: str | None = None) -> None:
        path = self.url.removeprefix(self.server.url).replace("{revision}", revision or self.revision)
        self.server.files[path] = text.encode()
        _build.cache_clear()

    def files(self) -> dict[str, str]:
        names = ("task.yaml", "data.lock", "documents.lock")
        return {name: path.read_text() for name in names if (path := self.folder / name).is_file()}

    @property
    def lock(self) -> dict:
        return json.loads((self.folder / "data.lock").read_text())

    @property
    def version(self) -> str:
        text = (self.folder / "task.yaml").read_text().replace("!function ", "")
        return yaml.safe_load(text)["metadata"]["version"]


@pytest.fixture
def source(tasks_of, monkeypatch, medtasks):
    server = Hub()
    folder = tasks_of("medhelm/medbullets") / "medhelm/medbullets"
    file = folder / "task.yaml"
    file.write_text(file.read_text().replace(RAW, server.url))
    (url,) = yaml.safe_load(file.read_text().replace("!function ", ""))["rows"]["download"]["test"]
    lock = json.loads((folder / "data.lock").read_text())
    (folder / "data.lock").write_text(json.dumps({"revision": lock["revision"]}))
    (folder / "documents.lock").unlink(missing_ok=True)
    forget()
    monkeypatch.setattr(transfer.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    made = Source(folder, server, url, lock["revision"])
    made.serve(ROWS)
    assert medtasks("data", "pin", TASK).code == 0
    forget()
    assert [item["digest"] for item in made.lock["files"].values()] == [digest(ROWS)]
    yield made
    server.close()
    _build.cache_clear()


def test_other_bytes_at_the_same_place_are_a_new_lock_and_the_next_version(source, medtasks):
    before, lock = source.version, source.lock
    source.serve(LATER)
    refused = medtasks("data", "pin", TASK)
    assert source.lock == lock  # the plain command replaces nothing
    outcome = medtasks("data", "pin", TASK, "--new-version")
    assert outcome.code == 0, outcome.text
    assert [item["digest"] for item in source.lock["files"].values()] == [digest(LATER)]
    assert source.lock["rows"]["test"]["folded"] != lock["rows"]["test"]["folded"]
    assert source.version == f"{int(before.split('-')[0]) + 1}-A"
    assert f"version: {source.version}" in outcome.out and "medtasks dev lock" in outcome.text
    assert "nothing new" in refused.out or refused.code != 0


def test_a_new_commit_is_named(source, medtasks):
    commit = "c" * 40
    source.serve(LATER, commit)
    outcome = medtasks("data", "pin", TASK, "--new-version", "--revision", commit)
    assert outcome.code == 0, outcome.text
    assert source.lock["revision"] == commit and f"revision: {commit}" in outcome.out
    assert all(commit in host for item in source.lock["files"].values() for host in item["hosts"][:1])


def test_nothing_changes_where_the_source_holds_what_it_held(source, medtasks):
    before = source.files()
    outcome = medtasks("data", "pin", TASK, "--new-version")
    assert outcome.code == 0 and "nothing new" in outcome.out
    assert source.files() == before


@pytest.mark.parametrize("content", [ROWS.replace(",A\n", ",Z\n"), "no rows at all"])
def test_nothing_changes_where_the_new_rows_cannot_be_read(source, medtasks, content):
    before = source.files()
    source.serve(content)
    assert medtasks("data", "pin", TASK, "--new-version").code != 0
    assert source.files() == before


def test_a_revision_is_that_of_one_new_version(source, medtasks):
    outcome = medtasks("data", "pin", TASK, "--revision", "c" * 40)
    assert outcome.code == 2 and "--new-version" in outcome.err


def of_result(folder: str) -> tuple[str, str]:
    """Version and rows of the one task of a run."""
    content = json.loads(Path(folder, "results.json").read_text())
    (record,) = [item["metadata"] for item in content["configs"].values()]
    return record["version"], record["medtasks"]["loaded"]["rows_hash"]


def test_scores_on_old_rows_stand_apart_from_those_on_new_ones(source, medtasks):
    words = ("run", "--model", "dummy", "--tasks", TASK, "--data", "hub")
    for folder in ("old", "kept"):
        assert medtasks(*words, "--output_path", folder).code == 0
    source.serve(LATER)
    assert medtasks("data", "pin", TASK, "--new-version").code == 0
    _build.cache_clear()
    asked = Path("old/responses", f"{TASK}.jsonl")
    before = asked.read_text().splitlines()
    assert medtasks(*words, "--output_path", "old").code == 0
    added = [line for line in asked.read_text().splitlines() if line not in before]
    assert [json.loads(line)["document"] for line in added] == ["4"]  # the question that changed
    assert medtasks(*words, "--output_path", "new").code == 0
    assert of_result("old") == of_result("new")
    (old, old_rows), (new, new_rows) = of_result("kept"), of_result("new")
    assert int(new.split("-")[0]) == int(old.split("-")[0]) + 1 and old_rows != new_rows
    compared = medtasks("compare", "kept", "new")
    assert compared.code != 0 and "no scored task in common" in compared.err
    assert f"rows: hash {old_rows}" in compared.err and f"rows: hash {new_rows}" in compared.err
