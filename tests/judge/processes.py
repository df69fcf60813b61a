"""`medtasks judge` in a process of its own, which a test may stop."""

import os
import subprocess
import sys

from tests.conftest import ROOT


def process(*arguments, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "medtasks_ext", "judge", *map(str, arguments)],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
