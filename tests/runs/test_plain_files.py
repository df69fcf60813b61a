"""A pipe in a run's folder is named, and never waited for, by whatever reads or goes on with the folder."""

import os
import shutil
import signal

import pytest

from tests.runs.changes import files_of

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "random-label", "--tasks", TASK, "--output_path")
#: How commands are called on the folder `copy`.
COMMANDS = {
    "verify": ("verify", "copy"),
    "report": ("report", "copy", "-o", "report"),
    "compare": ("compare", "copy", "run"),
    "ingest": ("ingest", "copy", "--store", "store"),
    "view": ("view", "copy", "-o", "view"),
    "card": ("card", "copy", "-o", "card", "--parts"),
    "rescore": ("rescore", "copy"),
    "run": (*RUN, "copy"),
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
    assert medtasks(*RUN, "run").code == 0
    for name in [*files_of(tmp_path / "run"), ".lease", "notes.txt"]:
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        (tmp_path / "copy" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "copy" / name)
        found = medtasks(*COMMANDS[command])
        # without its run.json, a folder is no run
        assert found.code == 2, (name, found.text)
        assert f"{name}: is no plain file" in found.err or (name == "run.json" and "no results" in found.err)
        shutil.rmtree(tmp_path / "copy")
