"""A hash of every file when a call ends: what was changed since is named, and that a call was cut off."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.cli.run import run_command
from medtasks_ext.runs.folder import SUMS, changed_in
from tests.conftest import ROOT, outcomes
from tests.run_files import results_of, samples_file
from tests.runs.faults import all_named, at_every_operation, files_of, fresh, named

TASK = "bridge_chip_ctc"
RUN_TO = ("run", "--model", "random-label", "--tasks", TASK, "--output_path")
RUN = (*RUN_TO, "run")
REPORT = ("report", "run", "--published", "none", "-o", "report")
CARD = ("card", "run", "--parts", "-o", "card")


@pytest.fixture
def run(medtasks, chip_ctc, tmp_path) -> Path:
    assert medtasks(*RUN).code == 0
    return tmp_path / "run"


def test_every_change_to_every_file_of_a_run_is_named(medtasks, run, tmp_path):
    subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=run, capture_output=True, check=True)
    assert medtasks("rescore", "run").code == 0 and medtasks(*RUN).code == 0
    assert sum(all_named(run, tmp_path).values()) >= 60


@pytest.mark.parametrize("name", ["answers.jsonl", "samples"])
def test_a_byte_of_the_same_length_and_time_is_seen_by_whatever_reads_the_run(medtasks, run, name):
    file = samples_file(run, TASK) if name == "samples" else run / name
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b"test-1", b"test-7"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    mark = f"changed since the run ended: {file.name}"
    medtasks.done(*RUN_TO, "other", "--model", "oracle")
    for command in (REPORT, ("compare", "run", "other"), ("view", "run", TASK, "0")):
        assert mark in medtasks(*command).text, command
    refused = medtasks(*CARD)
    assert refused.code == 2 and mark in refused.err and "from a copy" in refused.err


def test_a_file_that_was_changed_stays_named_until_a_call_writes_it_anew(medtasks, run):
    samples = samples_file(run, TASK)
    (run / f"tasks/{TASK}.npy").write_bytes(b"")
    (run / f"tasks/{TASK}.parquet").unlink()
    (run / "notes.txt").write_text("added")
    assert medtasks(*RUN).code == 0
    assert named(run) == {f"tasks/{TASK}.npy", f"tasks/{TASK}.parquet", "notes.txt"}
    samples.write_text(samples.read_text().replace("test-1", "test-9"))
    assert medtasks("rescore", "run").code == 0  # which writes all but the note anew, from the answers
    assert named(run) == {"notes.txt"}


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
    shown = medtasks(*REPORT)
    assert shown.code == 0 and "changed" not in shown.err
    assert said in (tmp_path / "report/report.html").read_text()
    refused = medtasks(*CARD)
    assert refused.code == 2 and said in refused.err
    assert medtasks(*RUN).code == 0
    assert changed_in(run) == []


@pytest.mark.parametrize("command", [("report", "copy"), ("rescore", "copy"), (*RUN_TO, "copy")])
def test_a_pipe_among_the_files_of_a_run_is_named_and_not_waited_for(medtasks, run, tmp_path, command):
    for name in [*files_of(run), ".writing.lock"]:
        shutil.copytree(run, tmp_path / "copy")
        (tmp_path / "copy" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "copy" / name)
        found = medtasks(*command)
        # without its run.json, a folder is no run
        assert found.code == 2, (name, found.text)
        assert f"{name}: is no plain file" in found.err or (name == "run.json" and "no results" in found.err)
        shutil.rmtree(tmp_path / "copy")


# A fault at every operation on files: what a command had finished stays, and the same command finishes.


FEW = ("run", "--model", "random-label", "--data", "sample", "--limit", "3", "--tasks", TASK, "--output_path")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run; made here, so that forked processes find all loaded."""
    folder = tmp_path_factory.mktemp("made")
    assert run_command([*FEW[1:], str(folder / "run")]) == 0
    return folder


@pytest.mark.nightly
def test_a_fault_of_a_disk_costs_a_run_nothing(made, tmp_path):
    place = tmp_path / "run"

    def check(said: str) -> None:
        keys = [row["key"] for row in outcomes(place, TASK)]
        assert len(keys) == len(set(keys)) == 3, said
        assert results_of(place)["results"] == results_of(made / "run")["results"], said
        assert changed_in(place) == [], said

    at_every_operation([*FEW, str(place)], place, lambda: fresh(place), check)


@pytest.mark.nightly
def test_a_fault_of_a_disk_costs_a_rescore_nothing(made, tmp_path):
    place = tmp_path / "run"

    def check(said: str) -> None:
        assert results_of(place)["results"] == results_of(made / "run")["results"], said
        assert changed_in(place) == [], said

    at_every_operation(["rescore", str(place)], place, lambda: fresh(place, made / "run"), check)
