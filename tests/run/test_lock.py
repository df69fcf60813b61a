"""One process writes to a run's folder; the others are told who does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from medtasks_ext.atomic import remove
from medtasks_ext.engines import Answer
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.run import lock, store
from medtasks_ext.run.lock import NAME, FolderLock, holder_of
from medtasks_ext.run.store import working_in
from tests.conftest import ROOT

HOLD = """
import sys, time
from pathlib import Path
from medtasks_ext.run import lock
from medtasks_ext.run.store import working_in
lock.DEAD = 1.0
with working_in(Path(sys.argv[1]), "medtasks run"):
    print("held", flush=True)
    time.sleep(1000)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ELSEWHERE = {"command": "medtasks run", "host": "elsewhere", "place": "elsewhere", "process": 1, "token": "t"}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A silent holder elsewhere is taken for dead after a second."""
    monkeypatch.setattr(lock, "DEAD", 1.0)


@pytest.fixture
def holder(tmp_path):
    """Another process that works in the folder."""
    command = [sys.executable, "-c", HOLD, tmp_path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def held(folder: Path) -> bool:
    try:
        FolderLock(folder).release()
    except MedtasksError:
        return True
    return False


def test_the_second_process_is_told_who_works_in_the_folder(holder, tmp_path):
    with pytest.raises(MedtasksError) as error, working_in(tmp_path, "medtasks rescore"):
        pass
    message = str(error.value)
    assert f"medtasks run works in this folder (process {holder.pid} on" in message
    assert "is not asked for again" in message
    assert holder_of(tmp_path) == "medtasks run"


def test_the_folder_of_a_process_that_was_killed_is_taken_over(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert holder_of(tmp_path) is None and not held(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"started": "1"}, None),  # its number was given again
        ({"process": 2**22 + 1}, None),  # it is gone
        ({"process": 2**22 + 1, "started": None}, None),  # all that a Mac says
        # where process numbers mean something else, that one is not found says nothing: touches tell
        ({"place": "a container", "process": 2**22 + 1}, "medtasks run"),
    ],
)
def test_a_process_number_that_is_not_the_holders_holds_nothing(holder, tmp_path, change, seen):
    record = json.loads((tmp_path / NAME).read_text())
    (tmp_path / NAME).write_text(json.dumps({**record, **change}))
    assert holder_of(tmp_path) == seen and not held(tmp_path)


@pytest.mark.parametrize("content", ["", "null"])
def test_a_damaged_lock_is_taken_over_when_nobody_touches_it(tmp_path, content):
    (tmp_path / NAME).write_text(content)
    began = time.monotonic()
    assert not held(tmp_path) and time.monotonic() - began >= 1


def test_a_holder_shows_life_and_a_view_sees_it(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "TOUCH", 0.01)
    monkeypatch.setattr(store, "WRITE_SECONDS", 0.01)
    path = tmp_path / NAME
    with working_in(tmp_path, "medtasks run"):
        os.utime(path, (1, 1))
        while path.stat().st_mtime == 1:
            time.sleep(0.01)
    assert holder_of(tmp_path) is None
    path.write_text(json.dumps(ELSEWHERE))
    assert holder_of(tmp_path) == "medtasks run"
    os.utime(path, (1, 1))
    assert holder_of(tmp_path) is None


def test_of_many_processes_one_takes_a_stale_lock(tmp_path):
    (tmp_path / NAME).write_text("{}")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": ENVIRONMENT}
    processes = [subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], **pipes) for _ in range(5)]
    said = []
    for process in processes:
        said.append(process.stdout.readline())
        if said[-1]:
            kept = process
    assert said.count(b"held\n") == 1 and kept.poll() is None
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_what_killed_processes_left_half_written_is_removed_and_what_is_being_written_stays(tmp_path):
    (tmp_path / "tasks").mkdir()
    left = [tmp_path / ".run.json.0a1b.part", tmp_path / "tasks/.t.json.0a1b.part"]
    written = tmp_path / ".results.json.0a1b.part"
    for path in (*left, written):
        path.touch()
    for path in left:
        os.utime(path, (0, 0))
    with working_in(tmp_path, "medtasks run"):
        assert written.exists() and not any(path.exists() for path in left)


def test_a_living_process_that_sleeps_keeps_its_folder(holder, tmp_path):
    holder.send_signal(signal.SIGSTOP)
    os.utime(tmp_path / NAME, (1, 1))  # asleep since 1970
    try:
        assert held(tmp_path)
    finally:
        holder.send_signal(signal.SIGCONT)


def test_a_holder_that_was_taken_over_writes_nothing_more(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "TOUCH", 0.0)
    with pytest.raises(MedtasksError, match="another process writes to this folder by now"):  # noqa: SIM117
        with working_in(tmp_path, "medtasks run") as answers:
            answers.put("a" * 32, Answer("one"), "task", "d1")
            write_json(tmp_path / "run.json", {"mine": 1})
            answers.flush()
            (tmp_path / NAME).write_text(json.dumps(ELSEWHERE))
            with (tmp_path / "answers.jsonl").open("ab") as theirs:
                theirs.write(b"a line of theirs\n")
            before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
            answers.put("b" * 32, Answer("two"), "task", "d2")
            for write in (
                answers.flush,
                lambda: write_json(tmp_path / "run.json", {"mine": 2}),
                lambda: write_json(tmp_path / "tasks" / "t.json", {}),
                lambda: remove(tmp_path / "run.json"),
            ):
                with pytest.raises(MedtasksError, match="another process writes to this folder by now"):
                    write()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json*")} == before
    assert json.loads((tmp_path / NAME).read_text()) == ELSEWHERE
