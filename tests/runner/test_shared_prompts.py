"""Two tasks that ask the same prompt: it is asked once, and both are scored, counted and scored anew."""

import json
import shutil
from pathlib import Path

import pytest

from medtasks_ext.registry import forget
from tests.conftest import ROOT, outcomes, read_json
from tests.engines.server import Reply, Server, chat
from tests.run_files import result_of, samples_file

NAMES = ("allergie_farmaci", "allergie_due")


@pytest.fixture
def twins(tmp_path, monkeypatch):
    for name in NAMES:
        folder = tmp_path / "mine" / name
        shutil.copytree(ROOT / "tests" / "own_tasks" / NAMES[0], folder)
        for path in folder.glob("*.yaml"):
            path.write_text(path.read_text(encoding="utf-8").replace(NAMES[0], name), encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TASKS", str(tmp_path / "mine"))
    forget()
    yield
    forget()


def run_on(server: Server, medtasks, *more: str):
    address = f"model=m-2026,base_url={server.url}/chat/completions,num_concurrent=2"
    command = ("run", "--data", "sample", "--tasks", ",".join(NAMES), "--output_path", "run", *more)
    model = ("--model", "local-chat-completions", "--model_args", address, "--apply_chat_template")
    return medtasks(*command, *model, "--no-preflight")


def records() -> list[dict]:
    return [result_of("run", name) for name in NAMES]


def test_a_prompt_that_two_tasks_share_is_asked_once(medtasks, twins):
    with Server() as server:
        done = run_on(server, medtasks)
        asked = len(server.asked)
    assert done.code == 0, done.text
    one, two = records()
    assert asked == one["n"] == two["n"] == len(outcomes("run"))
    for name in ("metrics", "tokens", "cut"):
        assert one[name] == two[name]
    entries = read_json(Path("run/run.json"))["tasks"]
    assert sum(entries[name]["generated"] for name in NAMES) == asked
    assert {entries[name]["state"] for name in NAMES} == {"done"}
    samples = [samples_file("run", name).read_text().splitlines() for name in NAMES]
    keys = [[json.loads(line)["request"] for line in lines] for lines in samples]
    assert keys[0] == keys[1]
    before = records()
    assert medtasks("rescore", "run").code == 0 and records() == before
    with Server() as server:
        again = run_on(server, medtasks)
        assert "2 of 2 tasks are done already" in again.err and not server.asked


def test_a_sampled_answer_is_drawn_for_each_task(medtasks, twins):
    with Server() as server:
        done = run_on(server, medtasks, "--gen_kwargs", "temperature=1")
        assert done.code == 0, done.text
        assert len(server.asked) == sum(record["n"] for record in records())


def test_a_fault_is_counted_for_both(medtasks, twins):
    async def script(asked):
        return Reply(status=400) if "metformina" in asked.prompt else Reply(chat("no"))

    with Server(script) as server:
        done = run_on(server, medtasks)
        asked = len(server.asked)
    entries = read_json(Path("run/run.json"))["tasks"]
    assert done.code == 1 and len(outcomes("run", "", "answer", "fault")) == asked
    one, two = (entries[name] for name in NAMES)
    assert one["faults"] == two["faults"] and one["state"] == two["state"] == "incomplete"
    assert sum(one["faults"].values()) == len(outcomes("run", "", "fault"))
