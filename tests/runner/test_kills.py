"""Several processes on one folder, killed again and again: nothing is done twice, and work is finished."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from medtasks_ext.cli.run import run_command
from medtasks_ext.runs.folder import changed_in
from tests.conftest import ROOT, outcomes
from tests.engines.server import Reply, Server, chat
from tests.run_files import results_of
from tests.runs.faults import _Fault, _run

pytestmark = pytest.mark.long

TASK = "bridge_chip_ctc"
KILLS = 10
NUMBERS = [pytest.param(n, marks=pytest.mark.nightly) for n in (2, 4, 8)]


def started(command: Sequence[str], log: Path) -> int:
    """A command in a forked process; its exit code is that of the command."""
    child = os.fork()
    if child == 0:
        _run(list(command), _Fault(Path("/nowhere"), 0, ""), log, log.with_suffix(".count"))
    return child


def killed_again_and_again(command: Sequence[str], n: int, tmp_path: Path, has_begun) -> None:
    """Start n processes at once, kill them once one has begun or all have ended; ten times. Then one more."""
    chance = random.Random(n)
    for number in range(KILLS):
        logs = [tmp_path / f"log-{number}-{place}" for place in range(n)]
        children = {started(command, log): log for log in logs}
        begun, living = has_begun(), dict(children)
        while living and has_begun() == begun:
            living = {child: log for child, log in living.items() if not ended(child, log)}
            time.sleep(0.005)
        time.sleep(chance.random() / 20)
        for child in living:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for log in logs:
            assert "Traceback" not in log.read_text(errors="replace")
    log = tmp_path / "log-last"
    _, status = os.waitpid(started(command, log), 0)
    assert os.waitstatus_to_exitcode(status) == 0, log.read_text()


def ended(child: int, log: Path) -> bool:
    """Whether a process has ended; it did its work or said who does."""
    done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        return False
    code = os.waitstatus_to_exitcode(status)
    assert code == 0 or (code == 2 and "works in this folder" in log.read_text()), log.read_text()
    return True


@pytest.fixture
def server():
    """A server whose answers take their time, so that processes meet."""

    async def script(asked) -> Reply:
        import asyncio

        await asyncio.sleep(0.05)
        return Reply(chat("clinical trial criterion: 年龄"))

    with Server(script) as one:
        yield one


@pytest.mark.parametrize("n", NUMBERS)
def test_runs(server, chip_ctc, tmp_path, n, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = f"model=m,num_concurrent=1,base_url={server.url}/chat/completions"
    command = ("run", "--tasks", TASK, "--model", "local-chat-completions", "--model_args", arguments,
               "--apply_chat_template", "--no-preflight", "--output_path", "run")  # fmt: skip
    killed_again_and_again(command, n, tmp_path, lambda: len(server.asked))
    answers = outcomes(tmp_path / "run", TASK)
    assert len(answers) == len({item["key"] for item in answers}) == 8
    assert len(server.asked) <= 8 + KILLS, "more than what was under way was asked again"
    assert changed_in(tmp_path / "run") == []


@pytest.mark.parametrize("n", NUMBERS)
def test_rescores(chip_ctc, tmp_path, n, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDTASKS_TASKS", "")
    made = ("--model", "random-label", "--data", "sample", "--tasks", TASK, "--output_path")
    assert run_command([*made, "run"]) == 0
    scores = results_of(tmp_path / "run")["results"]

    def touched(*places: str):
        def times() -> int:
            found = 0
            for path in (path for name in places for path in tmp_path.glob(name)):
                with suppress(FileNotFoundError):  # a process has just taken it away
                    found += path.stat().st_mtime_ns
            return found

        return times

    killed_again_and_again(
        ("rescore", "run"), n, tmp_path, touched("run/.writing.lock", "run/*", "run/tasks/*")
    )
    assert changed_in(tmp_path / "run") == []
    assert results_of(tmp_path / "run")["results"] == scores


# Two, four and eight processes on one folder: each is told, or waits; nothing is done twice.


RUN = ("run", "--model", "random-label", "--data", "sample", "--tasks", TASK, "--output_path")
AT_ONCE = [2, *(pytest.param(n, marks=pytest.mark.nightly) for n in (4, 8))]


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


@pytest.mark.parametrize("n", AT_ONCE)
def test_run_and_rescore(medtasks, tmp_path, n):
    at_once(n, *RUN, "run", cwd=tmp_path)
    records = outcomes(tmp_path / "run", TASK)
    assert len({item["key"] for item in records}) == len(records)
    at_once(n, "rescore", "run", cwd=tmp_path)
    assert changed_in(tmp_path / "run") == []
