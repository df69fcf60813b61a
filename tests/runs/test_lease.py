"""One process writes to a run's folder; the others are told who does."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from medtasks_ext.atomic import remove
from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import write_json
from medtasks_ext.runs import OutcomeLog
from medtasks_ext.runs import lease as module
from medtasks_ext.runs.lease import Lease
from tests.conftest import ROOT

HOLD = """
import sys, time
from pathlib import Path
from medtasks_ext.runs import lease
from medtasks_ext.runs.lease import Lease
lease.HEARTBEAT = 0.1
with Lease(Path(sys.argv[1]), "medtasks run"):
    print("held", flush=True)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch):
    """A silent lease from elsewhere is looked at for a quarter of a second."""
    monkeypatch.setattr(module, "HEARTBEAT", 0.1)


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lease of the folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def held(folder) -> bool:
    try:
        with Lease(folder, "medtasks rescore"):
            return False
    except MedtasksError:
        return True


def test_the_second_process_is_told_who_works_in_the_folder(holder, tmp_path):
    with pytest.raises(MedtasksError) as error, Lease(tmp_path, "medtasks run"):
        pass
    message = str(error.value)
    assert f"medtasks run works in this folder (process {holder.pid} on" in message
    assert "is not asked for again" in message
    assert [path.name for path in tmp_path.iterdir()] == [".lease"]


def test_the_lease_of_a_process_that_was_killed_is_taken_over(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not held(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_process_number_that_was_given_again_is_not_the_holder(holder, tmp_path):
    record = json.loads((tmp_path / ".lease").read_text())
    (tmp_path / ".lease").write_text(json.dumps({**record, "born": "1"}))
    assert not held(tmp_path)


def test_a_lease_from_another_machine_is_respected_while_it_shows_life(tmp_path):
    record = {"host": "elsewhere", "place": "elsewhere", "pid": 1, "born": "1", "command": "medtasks run"}
    path = tmp_path / ".lease"
    path.write_text(json.dumps({**record, "since": "then", "token": "x"}))
    assert held(tmp_path)
    os.utime(path, (time.time() - module.STALE - 5,) * 2)
    assert not held(tmp_path)


def test_a_lease_that_another_process_took_over_is_left_to_it(tmp_path):
    path = tmp_path / ".lease"
    with Lease(tmp_path, "medtasks run"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "token": "another"}))
    assert json.loads(path.read_text())["token"] == "another" and held(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_lease_is_taken_over_when_nobody_touches_it(tmp_path, content):
    path = tmp_path / ".lease"
    path.write_text(content)
    assert held(tmp_path)
    os.utime(path, (time.time() - module.STALE - 5,) * 2)
    assert not held(tmp_path)


def test_a_lease_shows_life(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "HEARTBEAT", 0.01)
    with Lease(tmp_path, "medtasks run"):
        path = tmp_path / ".lease"
        os.utime(path, (1, 1))
        while path.stat().st_mtime == 1:
            time.sleep(0.01)


def test_of_many_processes_one_takes_a_stale_lease(tmp_path):
    (tmp_path / ".lease").write_text("{}")
    os.utime(tmp_path / ".lease", (1, 1))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HOLD, tmp_path]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen(command, env=environment, **pipes) for _ in range(6)]
    said = [process.stdout.readline() for process in processes]
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()
    assert said.count(b"held\n") == 1


def test_what_killed_processes_left_half_written_is_removed_and_what_is_being_written_stays(tmp_path):
    (tmp_path / "tasks").mkdir()
    left = [
        tmp_path / ".run.json.0a1b.part",
        tmp_path / "tasks/.t.json.0a1b.part",
        tmp_path / ".lease.0a1b.now",
    ]
    written = tmp_path / ".results.json.0a1b.part"
    for path in (*left, written):
        path.touch()
    for path in left:
        os.utime(path, (0, 0))
    with Lease(tmp_path, "medtasks run"):
        assert written.exists() and not any(path.exists() for path in left)


def test_a_living_process_that_sleeps_keeps_its_lease(holder, tmp_path):
    holder.send_signal(signal.SIGSTOP)
    os.utime(tmp_path / ".lease", (1, 1))  # asleep since 1970
    try:
        assert held(tmp_path)
    finally:
        holder.send_signal(signal.SIGCONT)


def test_a_jump_of_the_clock_takes_no_lease_from_a_holder_elsewhere_that_shows_life(tmp_path, monkeypatch):
    path = tmp_path / ".lease"
    path.write_text(json.dumps({"place": "elsewhere", "pid": 1, "token": "x"}))
    os.utime(path, (1, 1))
    looks = []

    def sleep(self, seconds):
        looks.append(seconds)
        os.utime(path, (2, 2))  # the holder lives, by a clock that is years behind

    monkeypatch.setattr(module.Machine, "sleep", sleep)
    assert held(tmp_path) and looks


def taken_over(folder):
    """Another process takes the lease, as it may from another machine."""
    path = folder / ".lease"
    record = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps({**record, "token": "another", "pid": 1}))


def test_a_holder_that_was_taken_over_writes_nothing_more(tmp_path):
    log = OutcomeLog(tmp_path / "responses", "task")
    with Lease(tmp_path, "medtasks run"):
        log.add("k1", "d1", Answer("one"))
        write_json(tmp_path / "run.json", {"mine": 1})
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
        taken_over(tmp_path)
        time.sleep(2 * module.MOMENT)
        for write in (
            lambda: log.add("k2", "d2", Answer("two")),
            log.guard,
            lambda: write_json(tmp_path / "run.json", {"mine": 2}),
            lambda: write_json(tmp_path / "tasks" / "t.json", {}),
            lambda: remove(tmp_path / "run.json"),
        ):
            with pytest.raises(MedtasksError, match="has taken the folder over"):
                write()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json*")} == before
    assert json.loads((tmp_path / ".lease").read_text())["token"] == "another"


def test_nothing_is_appended_to_a_file_that_another_process_has_grown(tmp_path):
    log = OutcomeLog(tmp_path / "responses", "task")
    log.add("k1", "d1", Answer("one"))
    with log.path.open("ab") as file:
        file.write(b"{}\n")
    content = log.path.read_bytes()
    with pytest.raises(MedtasksError, match="another process has written there"):
        log.add("k2", "d2", Answer("two"))
    log.close()
    fresh = OutcomeLog(tmp_path / "responses", "task")  # that did not read what is there
    with pytest.raises(MedtasksError, match="another process has written there"):
        fresh.add("k2", "d2", Answer("two"))
    assert log.path.read_bytes() == content
