"""Two, four and eight processes on one folder: each is told, or waits; nothing is done twice."""

import os
import subprocess
import sys

import pytest

from medtasks_ext.runs.folder import state_of
from tests.conftest import ROOT, outcomes

TASK = "bridge_chip_ctc"
RUN = ("run", "--model", "random-label", "--data", "sample", "--tasks", TASK, "--output_path")
NUMBERS = [2, *(pytest.param(n, marks=pytest.mark.nightly) for n in (4, 8))]


def at_once(n, *command, cwd):
    """Start a command n times; those that did not work in the folder say why."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "medtasks_ext", *command],
            cwd=cwd, env=environment, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        for _ in range(n)
    ]  # fmt: skip
    ended = [(process.communicate()[1], process.returncode) for process in started]
    for said, code in ended:
        assert code == 0 or (code == 2 and "works in this folder" in said), said
    assert any(code == 0 for _, code in ended)


@pytest.mark.parametrize("n", NUMBERS)
def test_run_and_rescore(medtasks, tmp_path, n):
    at_once(n, *RUN, "run", cwd=tmp_path)
    records = outcomes(tmp_path / "run", TASK)
    assert len({item["key"] for item in records}) == len(records)
    at_once(n, "rescore", "run", cwd=tmp_path)
    assert state_of(tmp_path / "run").mark == ""
