"""Terminals and paths that are not UTF-8: every command ends as on others."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.run_files import results_file

RUN = ("run", "--model", "oracle", "--data", "sample", "--tasks", "bridge_chip_ctc", "--output_path")


def called(*command, cwd, **environment):
    said = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "medtasks_ext", *command], cwd=cwd, env=said, capture_output=True, check=False
    )


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("cp1252", marks=pytest.mark.nightly)])
def test_a_terminal_without_the_characters_shows_others(medtasks, tmp_path, encoding):
    assert medtasks(*RUN, "run").code == 0
    for command in (("report", "run", "-o", "report", "--published", "none"),
                    ("preview", "bridge_chip_ctc", "--data", "sample")):  # fmt: skip
        done = called(*command, cwd=tmp_path, PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert done.stdout.strip()


def test_a_path_that_is_not_utf_8_takes_a_run(tmp_path):
    done = called(*RUN, b"out\xff", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert results_file(tmp_path / os.fsdecode(b"out\xff")).is_file()
