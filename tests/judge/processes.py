"""`medtasks judge` in a process of its own, which a test may stop."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.conftest import ROOT


def process(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "medtasks_ext", "judge", *map(str, arguments)],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
