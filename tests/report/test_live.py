"""`medtasks view` of runs under way, killed or several: what it says, and that the folder stays as it is."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256

import pytest

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry import registry
from medtasks_ext.report.answers.server import Viewed
from medtasks_ext.runs.folder import state_of
from tests.conftest import ROOT, outcomes, read_json
from tests.engines.server import Reply, Server, chat
from tests.report.viewed import EVENTS, LABEL

TASKS = f"{LABEL},{EVENTS}"


class Gate:
    """Answers so many requests, and holds the others back."""

    def __init__(self) -> None:
        self.allowed = 0

    async def __call__(self, asked):
        while asked.number >= self.allowed:
            await asyncio.sleep(0.01)
        kind = asked.number % 5
        if kind == 1:
            return Reply({"error": {"message": "not this one"}}, status=400)
        found = chat({2: "", 3: "It may well be"}.get(kind, "relation: neutral"))
        if kind == 3:
            found["choices"][0]["finish_reason"] = "length"
        return Reply(found)


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def run(gate, tmp_path):
    """Starts a run in a process of its own, which asks a server behind the gate."""
    started = []
    with Server(gate) as server:

        def start() -> subprocess.Popen[bytes]:
            arguments = f"model=m,base_url={server.url}/chat/completions,num_concurrent=1,max_retries=1"
            process = subprocess.Popen(
                [*(sys.executable, "-m", "medtasks_ext", "run", "--tasks", TASKS, "--data", "sample"),
                 *("--model", "local-chat-completions", "--model_args", arguments),
                 *("--apply_chat_template", "--output_path", "run")],
                cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            started.append(process)
            return process

        yield start
        for process in started:
            process.kill()
            process.wait()


def until(condition, process=None):
    """Wait for what another process or thread does, as long as that process lives."""
    while not (found := condition()):
        assert process is None or process.poll() is None, f"ended with {process.returncode}"
        time.sleep(0.05)
    return found


def stored_in(folder, task=""):
    return outcomes(folder, task, "answer", "fault")


def live(viewer):
    """What is said of the run that is under way; nothing where none is."""
    [seen] = viewer.live()["runs"] or [None]
    return seen


def content(folder):
    return {
        path.relative_to(folder): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def opened(folder, process):
    """The viewer, as soon as the run has a folder."""
    until(lambda: (folder / "run.json").is_file() and (folder / ".writing.lock").is_file(), process)
    return Viewed([folder], registry())


def test_a_run_is_watched_from_before_its_first_answer_to_its_end(run, gate, tmp_path):
    process, folder = run(), tmp_path / "run"
    viewer = opened(folder, process)  # nothing is answered yet
    assert viewer.report().own == []
    assert live(viewer)["worker"] == "medtasks run" and live(viewer)["speed"] is None

    gate.allowed = 9
    until(lambda: len(stored_in(folder)) == 9, process)
    seen = live(viewer)
    stored = stored_in(folder)
    texts = [item["text"] for item in stored if item["outcome"] == "answer"]
    assert (seen["done"], seen["answers"]["answers"]) == (len(stored), len(texts))
    assert seen["answers"]["empty"] == texts.count("") > 0
    assert seen["answers"]["cut"] == sum(item.get("finish") == "length" for item in stored) > 0
    [fault] = seen["faults"]
    assert "not this one" in fault["reason"] and fault["n"] == len(stored) - len(texts)
    [task] = [item for item in seen["under_way"] if item["done"] < item["asked"]]
    assert seen["speed"]["of"] == "tokens" and seen["left"] > 0
    assert str(texts[0]) not in json.dumps(seen)  # figures alone

    gate.allowed = 1000
    assert until(lambda: process.poll() is not None or None) and process.returncode in (0, 1, 3)
    assert task["asked"] == len({item["document"] for item in stored_in(folder, task["task"])})
    states = {name: entry["state"] for name, entry in read_json(folder / "run.json")["tasks"].items()}
    assert set(states.values()) <= {"done", "incomplete"} and live(viewer) is None
    scored = {name for entry in viewer.report().own for name in entry.experiments}
    assert {name for name, state in states.items() if state == "done"} == scored


def test_a_killed_run_is_shown_as_stopped_and_stays_as_it_is(run, gate, tmp_path, medtasks):
    process, folder = run(), tmp_path / "run"
    gate.allowed = 6
    until(lambda: len(stored_in(folder)) == 6, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = content(folder)
    viewer = Viewed([folder], registry())
    seen = live(viewer)
    assert (seen["worker"], seen["left"], seen["done"]) == (None, None, 6)
    assert content(folder) == before  # nothing is written, locked or taken away

    gate.allowed = 1000  # the same command goes on, and the same viewer follows it
    process = run()
    process.wait()
    assert live(viewer) is None
    answered = [item["document"] for item in stored_in(folder) if item["outcome"] == "answer"]
    assert len(answered) == len({(item["key"]) for item in stored_in(folder) if item["outcome"] == "answer"})
    assert state_of(folder).mark == ""


def test_a_damaged_line_is_named_and_hides_no_other_task(run, gate, tmp_path):
    process, folder = run(), tmp_path / "run"
    gate.allowed = 6
    until(lambda: len(stored_in(folder)) == 6, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    path = folder / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b"document", b"dOcument"), *lines[2:]]))
    seen = live(Viewed([folder], registry()))
    assert seen["done"] == 5 and any("line 2 is damaged" in note for note in seen["notes"])


def test_a_run_that_nobody_began_says_so(run, gate, tmp_path):
    process, folder = run(), tmp_path / "run"
    until(lambda: (folder / "run.json").is_file(), process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with pytest.raises(MedtasksError, match="no task of the registry was finished"):
        Viewed([folder], registry())
