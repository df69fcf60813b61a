"""A hash of every file when a call ends: what was changed since is named, and that a call was cut off."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.runs.folder import SUMS, state_of
from tests.conftest import ROOT
from tests.run_files import results_file, samples_file
from tests.runs.changes import Edit, all_named, edits_of, files_of, named

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "random-label", "--tasks", TASK, "--output_path", "run")
REPORT = ("report", "run", "--published", "none", "-o", "report")


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path) -> Path:
    assert medtasks(*RUN).code == 0
    return tmp_path / "run"


def test_every_change_to_every_file_of_a_run_is_named(run, tmp_path):
    made = all_named(run, tmp_path)
    assert sum(made.values()) >= 60
    assert {
        f"tasks/{TASK}.npy",
        f"tasks/{TASK}.parquet",
        "run.json",
        SUMS,
        results_file(run).name,
    } <= made.keys()


def test_every_change_to_a_rescored_and_resumed_run_is_named(medtasks, run, tmp_path):
    assert medtasks("rescore", "run").code == 0
    assert medtasks(*RUN).code == 0
    all_named(run, tmp_path)


def test_the_file_is_one_that_sha256sum_reads(run):
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", SUMS], cwd=run, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = [line[66:] for line in (run / SUMS).read_text().splitlines()]
    assert names == sorted(set(files_of(run)) - {SUMS}) and len(names) >= 6


@pytest.mark.parametrize("name", ["answers.jsonl", "samples", "run.json"])
def test_a_byte_of_the_same_length_and_time_is_seen_by_whatever_reads_the_run(medtasks, run, tmp_path, name):
    file = samples_file(run, TASK) if name == "samples" else run / name
    before = file.stat()
    file.write_bytes(
        file.read_bytes().replace(b"random-label", b"random-lapel").replace(b"test-1", b"test-7")
    )
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    mark = f"changed since the run ended: {file.name}"
    assert medtasks("run", "--model", "oracle", *RUN[3:-1], "other").code == 0
    for command in (REPORT, ("compare", "run", "other"), ("view", "run", TASK)):
        assert mark in medtasks(*command).text, command
    refused = medtasks("card", "run", "--parts", "-o", "card")
    assert refused.code == 2 and mark in refused.err and "from a copy" in refused.err


def test_a_file_that_was_changed_stays_named_until_a_call_writes_it_anew(medtasks, run):
    samples = samples_file(run, TASK)
    (run / f"tasks/{TASK}.npy").write_bytes(b"")
    (run / "notes.txt").write_text("added")
    assert medtasks(*RUN).code == 0
    assert named(run) == {f"tasks/{TASK}.npy", "notes.txt"}
    samples.write_text(samples.read_text().replace("test-1", "test-9"))
    assert medtasks("rescore", "run").code == 0  # which writes both anew, from the answers
    assert named(run) == {"notes.txt"}
    (run / "notes.txt").unlink()
    assert named(run) == set()


def test_a_file_that_was_taken_away_is_missed_by_later_calls_too(medtasks, run):
    (run / f"tasks/{TASK}.parquet").unlink()
    assert medtasks(*RUN).code == 0
    assert named(run) == {f"tasks/{TASK}.parquet"}


WRITER = """
import os, signal, sys
from pathlib import Path
from medtasks_ext import atomic
from medtasks_ext.run.store import working_in
when, folder = sys.argv[1], Path(sys.argv[2])
former = Path.replace
def replaced(part, path):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    former(part, path)
    os.kill(os.getpid(), signal.SIGKILL)
with working_in(folder, "a writer"):
    Path.replace = replaced
    atomic.write_text(folder / "other.json", "{}")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_call_that_was_cut_off_leaves_an_interrupted_folder_and_no_change(medtasks, run, tmp_path, when):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", WRITER, when, str(run)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    said = "interrupted: a call is under way, or was cut off"
    assert state_of(run).mark == said
    shown = medtasks(*REPORT)
    assert shown.code == 0 and "changed" not in shown.err
    assert said in (tmp_path / "report/report.html").read_text()
    refused = medtasks("card", "run", "--parts", "-o", "card")
    assert refused.code == 2 and said in refused.err
    assert medtasks(*RUN).code == 0
    assert state_of(run).mark == ""


def test_the_edits_are_edits(run, tmp_path):
    for edit in edits_of(run):
        assert isinstance(edit, Edit)
        shutil.copytree(run, tmp_path / "copy")
        before = {name: (run / name).read_bytes() for name in files_of(run)}
        edit.apply(tmp_path / "copy")
        after = {name: (tmp_path / "copy" / name).read_bytes() for name in files_of(tmp_path / "copy")}
        assert before != after, edit
        shutil.rmtree(tmp_path / "copy")
