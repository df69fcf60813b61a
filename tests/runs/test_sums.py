"""A hash of every file when a call ends: what was changed since is named, and that a call was cut off."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks_ext.registry import suites
from medtasks_ext.runs.folder import SUMS, state_of
from tests.conftest import ROOT
from tests.run_files import results_file, samples_file
from tests.runs.changes import all_named, files_of, named

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


# A pipe in a run's folder is named, and never waited for, by whatever reads or goes on with the folder.


RUN_TO = ("run", "--model", "random-label", "--tasks", TASK, "--output_path")
#: How commands are called on the folder `copy`.
COMMANDS = {
    "report": ("report", "copy", "-o", "report"),
    "compare": ("compare", "copy", "run"),
    "view": ("view", "copy", TASK),
    "card": ("card", "copy", "-o", "card", "--parts"),
    "rescore": ("rescore", "copy"),
    "run": (*RUN_TO, "copy"),
}


class WaitedError(BaseException):
    """A command waits for a pipe that nobody writes to."""


@pytest.fixture
def alarm():
    """Ends a command that waits, minutes after it should have ended."""

    def ring(*_):
        raise WaitedError

    former = signal.signal(signal.SIGALRM, ring)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_among_the_files_of_a_run_is_named_by_every_command(
    medtasks, chip_ctc, tmp_path, alarm, command
):
    assert medtasks(*RUN_TO, "run").code == 0
    for name in [*files_of(tmp_path / "run"), ".writing.lock", "notes.txt"]:
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        (tmp_path / "copy" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "copy" / name)
        found = medtasks(*COMMANDS[command])
        # without its run.json, a folder is no run
        assert found.code == 2, (name, found.text)
        assert f"{name}: is no plain file" in found.err or (name == "run.json" and "no results" in found.err)
        shutil.rmtree(tmp_path / "copy")


#: Calls that name a pipe, or a folder that holds one, where a plain file is meant.
GIVEN = {
    "run --config": (*RUN_TO, "other", "--config", "pipe"),
    "run --config=": (*RUN_TO, "other", "--config=pipe"),
    "plan": ("plan", "pipe", "--tasks", TASK),
    "preview --tokenizer": ("preview", TASK, "--tokenizer", "pipe"),
    "preview --tokenizer, JSON": ("preview", TASK, "--tokenizer", "pipe.json"),
    "report": ("report", "pipe"),
    "report --by": ("report", "run", "--by", "pipe", "-o", "report"),
    "compare --by": ("compare", "run", "run", "--by", "pipe"),
    "new --from": ("data", "new", "--id", "own_wards", "--from", "pipe.csv"),
    "data import": ("data", "import", "pipe.csv", "--task", TASK),
    "data fetch official --from": ("data", "fetch", "official", "artefacts"),
    "study prompts": ("study", "prompts", "pipe"),
    "judge --jury": ("judge", "run", "--jury", "pipe"),
    "study judge --judge": ("study", "judge", "pipe", "--judge", "pipe", "-o", "o"),
    "study judge": ("study", "judge", "pipe", "-o", "o"),
    "study sample": ("study", "sample", "pipe", "-n", "3"),
    "study forms --key": ("study", "forms", "form.csv", "--key", "pipe", "-o", "ingested"),
    "rescore --check": ("rescore", "--check", "org/model/2026-11-01"),
}  # fmt: skip
SAID = (
    "is no plain file|is no file|: no file|no such file|not found|holds no|no contamination.json|"
    "no configuration"
)


@pytest.mark.parametrize("given", GIVEN)
def test_a_pipe_that_a_call_names_is_never_waited_for(medtasks, chip_ctc, tmp_path, alarm, given):
    # several suites may read one file, and an installed package's is at no place of ours
    artefacts = {item.file for suite in suites().values() if suite.official
                 for item in suite.official.artefacts.values()} - {""}  # fmt: skip
    for place in (
        "pipe", "pipe.json", "pipe.csv",
        "org/model/2026-11-01/submission.json",
        "org/model/2026-11-01/documents.parquet",
        *(f"artefacts/{name}" for name in artefacts),
    ):  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / place)
    (tmp_path / "form.csv").write_text("")
    if "run" in GIVEN[given][2:]:
        assert medtasks(*RUN_TO, "run").code == 0
    found = medtasks(*GIVEN[given])
    assert found.code in (1, 2) and re.search(SAID, found.text.lower()), found.text


def test_a_plan_never_waits_for_pipes_in_the_folder_of_a_model(medtasks, chip_ctc, tmp_path, alarm):
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        os.mkfifo(tmp_path / "model" / name)
    found = medtasks("plan", str(tmp_path / "model"), "--tasks", TASK)
    assert found.code == 0 and "what a run asks" in " ".join(found.text.split())
