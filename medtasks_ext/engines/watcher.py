"""No process of an engine outlives this one, however it ends.

vLLM's processes live on, with all their memory, when the process that started them is killed outright. A
small process of its own watches: once this one is gone, it ends what is left of its descendants.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil  # every vLLM comes with it

#: a variable that says who has started a process, or one of those from which it comes
MARK = "MEDTASKS_STARTED_BY"
#: seconds between two looks at the descendants
LOOK = 1.0
#: seconds that descendants get to end by themselves, then after SIGTERM
GRACE, PATIENCE = 2.0, 5.0

_process: subprocess.Popen[bytes] | None = None


def start() -> None:
    """Start the watcher of this process, unless it has one; before the first engine."""
    global _process
    if _process and _process.poll() is None:
        return
    # nothing is ever written: the pipe ends with the last process that holds `_ours`. That is this one, and
    # whatever was forked from it; any other program that it starts does not get it.
    theirs, _ours = os.pipe()
    mark = f"{os.getpid()}-{time.time_ns()}"
    # the file alone, without the packages that it lies in
    code = f"import runpy; runpy.run_path({__file__!r})['main']({os.getpid()}, {mark!r})"
    _process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=subprocess.DEVNULL,  # whoever reads this process's output must not wait for the watcher
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        start_new_session=True,  # Ctrl-C and the end of the terminal do not reach it
    )
    os.close(theirs)
    os.environ[MARK] = mark


def main(pid: int, mark: str) -> None:
    """End what the process leaves that started this one; its descendants bear the mark."""
    os.chdir("/")
    known: set[psutil.Process] = set()
    with suppress(psutil.NoSuchProcess):
        watched = psutil.Process(pid)
        while os.getppid() == pid and alive(watched):  # a fork may hold the pipe open
            known = {process for process in known | descendants({watched}) if alive(process)}
            if select.select([0], [], [], LOOK)[0]:
                break
    # what is younger than the last look bears the mark, or holds the pipe, or is a child of what is known
    end(known | descendants(known) | _marked(mark))


def descendants(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """All that these have started, directly or not; without this process."""
    below: set[psutil.Process] = set()
    for process in processes:
        with suppress(psutil.Error):
            below.update(process.children(recursive=True))
    return {process for process in below if process.pid != os.getpid()}


def _marked(mark: str) -> set[psutil.Process]:
    """Those with the mark, and forks, which hold the pipe. (What sets its title, as vLLM does, loses it.)"""
    processes = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # those of other users
            if process.environ().get(MARK) == mark or _holds_the_pipe(process.pid):
                processes.add(process)
    return {process for process in processes if process.pid != os.getpid()}


def _holds_the_pipe(pid: int) -> bool:
    with os.scandir(f"/proc/{pid}/fd") as files:
        return any(os.path.samestat(file.stat(), os.fstat(0)) for file in files)


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
