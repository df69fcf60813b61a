"""One root over every file of a run's folder: what was changed is named, and later states are no changes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.runs.seal import FILE, RunLease, against, look
from tests.conftest import ROOT, rewrite_answers
from tests.runs.changes import Edit, all_named, edits_of, files_of, named

TASK = "bridge_chip_ctc"


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path) -> Path:
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    return tmp_path / "run"


def test_every_change_to_every_file_of_a_run_is_named(run, tmp_path):
    made = all_named(run, tmp_path)
    assert sum(made.values()) >= 60
    assert {f"tasks/{TASK}.npy", f"tasks/{TASK}.parquet", "results.json", "run.json", FILE} <= made.keys()


def test_every_change_to_a_rescored_and_resumed_run_is_named(medtasks, run, tmp_path):
    assert medtasks("rescore", "run").code == 0
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    assert [root.state for root in look(run).roots] == ["written", "rescored", "resumed"]
    all_named(run, tmp_path)


def test_renaming_the_model_is_named(medtasks, run):
    file = run / "run.json"
    file.write_text(file.read_text().replace('"random-label"', '"ORG/OTHER"'))
    found = medtasks("verify", "run")
    assert found.code == 1 and "✗ run.json: was changed after it was written" in found.out


def root_of(folder: Path) -> str:
    root = look(folder).root
    assert root is not None
    return root.root


def test_a_later_state_is_no_change_and_an_earlier_root_is_known(medtasks, run):
    first = root_of(run)
    printed = medtasks("verify", "run", "--root", first[:12])
    assert printed.code == 0 and first in printed.out and "is its state now" in printed.out
    assert medtasks("rescore", "run").code == 0
    second = root_of(run)
    assert second != first and [root.state for root in look(run).roots] == ["written", "rescored"]
    found = medtasks("verify", "run", "--root", first)
    assert found.code == 0 and "is an earlier state of it; since then: rescored" in found.out
    manifest = json.loads((run / "run.json").read_text())
    assert [item["digest"] for item in manifest["roots"]] == [first, second]
    assert manifest["seal"]["digest"] == second


def test_a_folder_that_was_sealed_anew_after_a_change_has_not_the_root_that_was_kept(medtasks, run):
    kept = root_of(run)
    (run / FILE).unlink()
    manifest = json.loads((run / "run.json").read_text())
    other = {key: value for key, value in manifest.items() if key not in ("seal", "roots")}
    other["identity"]["model"]["model"] = "ORG/OTHER"
    (run / "run.json").write_text(json.dumps(other))
    with RunLease(run, "a forger", "written"):
        pass
    assert look(run).changes == [] and [root.state for root in look(run).roots] == ["found"]
    found = medtasks("verify", "run", "--root", kept)
    assert found.code == 1 and "the folder never had the root" in found.out


def test_answers_that_were_rewritten_since_a_root_are_named_against_it(run):
    kept = root_of(run)
    rewrite_answers(run, TASK, {"test-0": "another answer"})
    assert [change.file for change in against(run, kept).changes] == [f"responses/{TASK}.jsonl"]


def test_a_second_call_with_nothing_to_do_is_a_state_of_its_own(medtasks, run):
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    assert [root.state for root in look(run).roots] == ["written", "resumed"] and named(run) == set()


def test_a_file_that_was_changed_stays_named_whatever_is_done_later(medtasks, run):
    samples = run / f"samples_{TASK}.jsonl"
    (run / f"tasks/{TASK}.npy").write_bytes(b"")
    (run / "notes.txt").write_text("added")
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    assert named(run) == {f"tasks/{TASK}.npy", "notes.txt"}
    samples.write_text(samples.read_text().replace("test-1", "test-9"))
    assert medtasks("rescore", "run").code == 0  # which writes both anew, from the answers
    assert named(run) == {"notes.txt"}


def as_of_an_older_version(run: Path) -> None:
    (run / FILE).unlink()
    manifest = json.loads((run / "run.json").read_text())
    kept = {key: value for key, value in manifest.items() if key not in ("seal", "roots")}
    (run / "run.json").write_text(json.dumps({**kept, "schema": 3}))


def test_a_folder_of_an_older_version_is_not_sealed_and_is_sealed_as_it_is_found(medtasks, run):
    as_of_an_older_version(run)
    found = medtasks("verify", "run")
    assert found.code == 0 and "not sealed: an older version wrote it" in found.out
    assert medtasks("rescore", "run").code == 0
    assert [root.state for root in look(run).roots] == ["found", "rescored"] and named(run) == set()
    (run / f"tasks/{TASK}.npy").write_bytes(b"")
    assert named(run) == {f"tasks/{TASK}.npy"}


WRITER = """
import os, signal, sys
from pathlib import Path
from medtasks_ext import atomic
from medtasks_ext.runs.seal import RunLease
when, folder = sys.argv[1], Path(sys.argv[2])
former = Path.replace
def replaced(part, path):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    former(part, path)
    os.kill(os.getpid(), signal.SIGKILL)
with RunLease(folder, "a writer"):
    Path.replace = replaced
    atomic.write_text(folder / "results.json", "{}")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_that_was_cut_off_at_a_rename_leaves_an_open_folder_and_no_change(medtasks, run, when):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", WRITER, when, str(run)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    state = look(run, whole=True)
    assert state.is_open and state.changes == []
    assert medtasks("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run").code == 0
    assert not look(run).is_open and named(run) == set()


def test_a_folder_whose_notes_are_lost_takes_no_further_state(medtasks, run):
    (run / FILE).unlink()
    found = medtasks("verify", "run")
    assert found.code == 1 and f"✗ {FILE}: is missing" in found.out
    refused = medtasks("rescore", "run")
    assert refused.code == 2 and "bring the file back" in refused.err and not (run / ".lease").exists()


def test_the_edits_are_edits(run, tmp_path):
    for edit in edits_of(run):
        assert isinstance(edit, Edit)
        shutil.copytree(run, tmp_path / "copy")
        before = {name: (run / name).read_bytes() for name in files_of(run)}
        edit.apply(tmp_path / "copy")
        after = {name: (tmp_path / "copy" / name).read_bytes() for name in files_of(tmp_path / "copy")}
        assert before != after, edit
        shutil.rmtree(tmp_path / "copy")
