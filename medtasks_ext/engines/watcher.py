"""No process of an engine outlives this one, however it ends.

vLLM's processes live on, with all their memory, when the process that started them is killed outright. A
small process of its own watches: once this one is gone, it ends what is left of its descendants.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress

import psutil  # every vLLM comes with it

#: seconds between two looks at the descendants
LOOK = 0.5
#: seconds that descendants get to end by themselves, then after SIGTERM
GRACE, PATIENCE = 2.0, 5.0

_process: subprocess.Popen[bytes] | None = None


def start() -> None:
    """Start the watcher of this process, unless it has one; before the first engine."""
    global _process
    if _process and _process.poll() is None:
        return
    # nothing is ever written: the pipe ends with the last process that holds `_ours`
    theirs, _ours = os.pipe()
    # the file alone, without the packages that it lies in
    code = f"import runpy; runpy.run_path({__file__!r})['main']({os.getpid()})"
    _process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=subprocess.DEVNULL,  # whoever reads this process's output must not wait for the watcher
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        start_new_session=True,  # Ctrl-C and the end of the terminal do not reach it
    )
    os.close(theirs)


def main(pid: int) -> None:
    """End what the process leaves that started this one."""
    os.chdir("/")
    known: set[psutil.Process] = set()
    with suppress(psutil.NoSuchProcess):
        watched = psutil.Process(pid)
        while os.getppid() == pid and alive(watched):  # a fork may hold the pipe open
            known = {process for process in known | descendants({watched}) if alive(process)}
            if select.select([0], [], [], LOOK)[0]:
                break
    end(known | descendants(known))  # what is younger than the last look, too


def descendants(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """All that these have started, directly or not; without this process."""
    below: set[psutil.Process] = set()
    for process in processes:
        with suppress(psutil.Error):
            below.update(process.children(recursive=True))
    return {process for process in below if process.pid != os.getpid()}


def alive(process: psutil.Process) -> bool:
    """Whether it runs, and is the same: its number may have gone to another since."""
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def end(processes: Iterable[psutil.Process]) -> None:
    """Wait a little for these, then ask them to end, then kill them."""
    left = list(processes)
    for ask, seconds in ((None, GRACE), ("terminate", PATIENCE), ("kill", PATIENCE)):
        for process in left:
            with suppress(psutil.Error):  # psutil compares the time of its start before it sends a signal
                if ask:
                    getattr(process, ask)()
        _, left = psutil.wait_procs(left, timeout=seconds)
