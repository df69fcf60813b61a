"""`medtasks view` of a run under way and of a killed one: what is said, and the folder stays as it is."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256

from medtasks_ext.registry import registry
from medtasks_ext.report.answers.server import Viewed
from medtasks_ext.runs.folder import changed_in
from tests.conftest import ROOT, outcomes, read_json
from tests.engines.server import Reply, Server, chat
from tests.report.viewed import EVENTS, LABEL


class Gate:
    """Answers so many requests, and holds the others back."""

    allowed = 0

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


def started(server, folder):
    """A run in a process of its own, which asks a server behind the gate."""
    arguments = f"model=m,base_url={server.url}/chat/completions,num_concurrent=1,max_retries=1"
    return subprocess.Popen(
        [*(sys.executable, "-m", "medtasks_ext", "run", "--tasks", f"{LABEL},{EVENTS}", "--data", "sample"),
         *("--model", "local-chat-completions", "--model_args", arguments),
         *("--apply_chat_template", "--output_path", folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def until(condition, process):
    """Wait for what another process does, as long as that process lives."""
    while not condition():
        assert process.poll() is None, f"ended with {process.returncode}"
        time.sleep(0.05)


def content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_run_is_watched_from_before_its_first_answer_over_a_kill_to_its_end(tmp_path):
    gate, folder = Gate(), tmp_path / "run"

    def stored():
        return outcomes(folder, "", "answer", "fault")

    def live():
        [seen] = viewer.live()["runs"] or [None]
        return seen

    with Server(gate) as server:
        process = started(server, folder)
        try:
            until(lambda: (folder / "run.json").is_file() and (folder / ".writing.lock").is_file(), process)
            viewer = Viewed([folder], registry())  # nothing is answered yet
            assert viewer.report().own == []
            assert live()["worker"] == "medtasks run" and live()["left"] is None

            gate.allowed = 9
            until(lambda: len(stored()) == 9, process)
            seen, texts = live(), [item["text"] for item in stored() if item["outcome"] == "answer"]
            assert seen["done"] == seen["answers"]["answers"] == len(texts)
            assert seen["answers"]["empty"] == texts.count("") > 0
            assert seen["answers"]["cut"] == sum(item.get("finish") == "length" for item in stored()) > 0
            [fault] = seen["faults"]
            assert "not this one" in fault["reason"] and fault["n"] == 9 - len(texts)
            assert seen["left"] > 0
            assert str(texts[0]) not in json.dumps(seen)  # figures alone

            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            before, seen = content(folder), live()
            assert (seen["worker"], seen["left"], seen["done"]) == (None, None, len(texts))
            assert content(folder) == before  # nothing is written, locked or taken away

            gate.allowed = 1000  # the same command goes on, and the same viewer follows it
            process = started(server, folder)
            assert process.wait() in (0, 1, 3)
        finally:
            process.kill()
            process.wait()
    keys = [item["key"] for item in stored() if item["outcome"] == "answer"]
    assert len(keys) == len({*keys}) and changed_in(folder) == [] and live() is None
    states = {name: entry["state"] for name, entry in read_json(folder / "run.json")["tasks"].items()}
    scored = {name for entry in viewer.report().own for name in entry.experiments}
    assert {name for name, state in states.items() if state == "done"} == scored
