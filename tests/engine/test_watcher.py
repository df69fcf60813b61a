"""The watcher: nothing that a process has started outlives it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

psutil = pytest.importorskip("psutil")

from medtasks_ext.engines import watcher  # noqa: E402  it is useless without psutil

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120

#: a child that ends at no signal but SIGKILL, and has a child of its own
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
time.sleep(1000)
"""
STARTS_CHILDREN = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
from medtasks_ext.engines import watcher
watcher.start()
watcher.start()
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], {{more}})
if os.fork() == 0:
    time.sleep(1000)
time.sleep(1)
print("ready", flush=True)
{{then}}
"""
KEEPS_PIPES = """
import os
pipe, pipes = os.pipe, []
os.pipe = lambda: pipes.append(pipe()) or pipes[-1]
"""


def parent(then: str, more: str = "") -> tuple[subprocess.Popen, list]:
    """A process that has started the watcher and children; they, the watcher first."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS_CHILDREN.format(then=then, more=more)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    tree = psutil.Process(process.pid)
    while len(found := tree.children(recursive=True)) < 4:
        pass
    watchers = [child for child in found if "runpy" in " ".join(child.cmdline())]
    assert len(watchers) == 1 and len(found) == 4
    return process, watchers + [child for child in found if child not in watchers]


def all_end(processes: list) -> bool:
    return not psutil.wait_procs(processes, timeout=PATIENCE)[1]


def test_a_killed_process_leaves_nothing():
    process, started = parent("time.sleep(1000)")
    process.kill()
    assert process.wait() == -signal.SIGKILL and all_end(started)


def test_the_watcher_sees_the_end_though_a_child_holds_its_pipe():
    keep = "pass_fds=[pipes[0][1]]"
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPS_PIPES + STARTS_CHILDREN.format(then="time.sleep(1000)", more=keep)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    started = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert all_end(started)


def test_the_watcher_ends_after_a_normal_end_and_ends_what_is_left():
    process, started = parent("sys.stdin.read(); os._exit(0)")
    process.stdin.close()
    assert process.wait(PATIENCE) == 0 and all_end(started)


def test_ctrl_c_does_not_reach_the_watcher():
    process, (watching, *others) = parent("time.sleep(1000)")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) != 0 and os.getsid(watching.pid) == watching.pid
    assert all_end([watching, *others])


def test_a_number_that_went_to_another_process_is_not_hit():
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    try:
        earlier = psutil.Process(other.pid)
        earlier._ident = (other.pid, earlier.create_time() - 100)  # one that had the number before
        assert not watcher.alive(earlier)
        watcher.end([earlier])
        assert other.poll() is None and watcher.alive(psutil.Process(other.pid))
    finally:
        other.kill()
        other.wait()


def test_a_process_that_waits_to_be_buried_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(child.pid)
    while process.status() != psutil.STATUS_ZOMBIE:
        pass
    assert not watcher.alive(process)
    child.wait()
