"""Tasks that share a long record are asked in turn, document by document; nothing else changes by it."""

import json
import shutil
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from medtasks_ext.engines import Answer, Fault, FaultKind, Usage
from medtasks_ext.engines import lm as chosen
from medtasks_ext.engines.engine import Engine
from medtasks_ext.registry import forget
from tests.conftest import ROOT, outcomes, read_json, write_jsonl
from tests.engines.server import Reply, Server, chat
from tests.run_files import result_of, results_of, samples_file

NAME, N = "allergie_farmaci", 8
BOTH = f"{NAME},{NAME}_cot"
WORD = {"instruction": "", "input": "{{ testo }}\n\nAllergia a un farmaco? sì o no. {{ strategy }}"}


class Keeps(Engine):
    """Answers with the gold, one after another, and keeps the beginnings of prompts."""

    window = 4
    keeps_prefixes: ClassVar[bool] = True
    seen: ClassVar[list] = []
    faulty: ClassVar[set] = set()

    def run(self, feed, done):
        while not feed.over:
            if (request := feed.take()) is None:
                feed.wait(0.01)
                continue
            self.seen.append(request)
            fault = (request.task, request.document) in self.faulty
            answer = Answer(f"Result: {request.row['target']}", "stop", Usage(7, 2))
            done(request, Fault(FaultKind.BUSY, "busy") if fault else answer)


@pytest.fixture
def notes(tmp_path, monkeypatch, data_dir):
    """Eight notes whose task asks behind the note; `notes(repeat)` sets how long they are."""
    folder = tmp_path / "mine" / NAME
    shutil.copytree(ROOT / "tests" / "own_tasks" / NAME, folder)
    task = yaml.safe_load(text := (folder / "task.yaml").read_text().replace("!function ", ""))
    task["prompt"] |= WORD
    folder.joinpath("task.yaml").write_text(
        yaml.safe_dump(task, allow_unicode=True, sort_keys=False).replace("class: ", "class: !function ")
    )
    assert "strategy" in text
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    monkeypatch.setattr(Keeps, "seen", [])
    monkeypatch.setattr(Keeps, "faulty", set())
    monkeypatch.setattr(chosen, "engine_of", lambda model, **_: Keeps())

    def long(repeat, n=N):
        rows = [
            {"id": f"t{i}", "testo": f"Nota {i}. " * repeat, "allergia": ["sì", "no"][i % 2]}
            for i in range(n)
        ]
        write_jsonl(data_dir / "own" / NAME / "test.jsonl", rows)
        shots = [{"id": f"s{i}", "testo": f"Esempio {i}", "allergia": "no"} for i in range(5)]
        write_jsonl(data_dir / "own" / NAME / "fewshot.jsonl", shots)
        forget()

    yield long
    forget()


def order():
    return [(request.task.removeprefix(NAME) or "zero", request.document) for request in Keeps.seen]


def run(medtasks, folder, *more):
    outcome = medtasks("run", "--model", "oracle", "--tasks", BOTH, "--output_path", folder, *more)
    assert outcome.code == 0, outcome.text
    names = results_of(folder)["results"]
    samples = {f"samples of {name}": samples_file(folder, name).read_bytes() for name in names}
    return samples | {name: result_of(folder, name)["metrics"] for name in names}


def test_strategies_of_a_long_record_stand_in_turn(medtasks, notes, monkeypatch):
    notes(400)
    in_turn = run(medtasks, "turns")
    documents = [document for document, _ in groupby(order(), key=lambda item: item[1])]
    assert len(documents) == N and len(order()) == 2 * N
    assert {task for task, _ in order()[:2]} == {"zero", "_cot"}
    records = [
        [item.record for item in some] for _, some in groupby(Keeps.seen, key=lambda item: item.document)
    ]
    assert all(one == other != "" for one, other in records) and len({one for one, _ in records}) == N
    Keeps.seen.clear()
    monkeypatch.setattr(Keeps, "keeps_prefixes", False)
    assert run(medtasks, "apart") == in_turn  # an engine that keeps nothing is asked task by task
    assert [task for task, _ in groupby(order(), key=lambda item: item[0])] in (
        ["zero", "_cot"],
        ["_cot", "zero"],
    )


def test_tasks_that_share_little_stay_apart(medtasks, notes):
    notes(5)
    run(medtasks, "apart")
    assert len(list(groupby(order(), key=lambda item: item[0]))) == 2
    assert not any(request.record for request in Keeps.seen)


def test_what_has_no_answer_is_asked_again_in_turn(medtasks, notes):
    notes(400)
    Keeps.faulty |= {(NAME, f"t{i}") for i in (1, 5)} | {(f"{NAME}_cot", "t5")}
    missing = medtasks("run", "--model", "oracle", "--tasks", BOTH, "--output_path", "run", "--limit", "6")
    assert missing.code == 1 and len(order()) == 12
    Keeps.faulty.clear()
    Keeps.seen.clear()
    run(medtasks, "run", "--limit", "6")
    assert [document for _, document in order()] == ["t1", "t5", "t5"]


def test_a_task_whose_prompts_cannot_be_built_does_not_cost_the_other(medtasks, notes, monkeypatch):
    notes(400)
    from medtasks_ext.runner.evaluate import RequestBuilder

    right = RequestBuilder.request

    def asked(self, instances, *more):
        if self._task.task_name.endswith("_cot") and instances[0].doc["id"] == "t4":
            raise ValueError("no")
        return right(self, instances, *more)

    monkeypatch.setattr(RequestBuilder, "request", asked)
    outcome = medtasks("run", "--model", "oracle", "--tasks", BOTH, "--output_path", "run")
    assert outcome.code == 1
    assert order()[:8] == [item for i in range(4) for item in order()[2 * i : 2 * i + 2]]
    assert [document for task, document in order() if task == "zero"] == [f"t{i}" for i in range(N)]


def test_rounds_of_an_estimate_ask_in_turn(medtasks, notes):
    """In a round, those documents that were drawn for both tasks are asked about together."""
    notes(300, n=200)
    run(medtasks, "run", "--error", "20")
    zero, cot = ({name for task, name in order() if task == wanted} for wanted in ("zero", "_cot"))
    assert 0 < len(zero) < 200 and all(request.record for request in Keeps.seen)
    pairs = [name for name, some in groupby(order(), key=lambda item: item[1]) if len(list(some)) == 2]
    assert zero == cot == set(pairs)  # the same documents are drawn for both


# One call of a run on a server asks everything, once, and scores it, however many tasks share records.


#: A dataset whose zero-shot and chain of thought share a long record, so that they are asked in turn.
LONG = "allergie_farmaci"
SUITES = ("bridge", "medhelm", "clinicbench", "mlb")
STRATEGIES = ("", "_cot", "_5shot")
ALL = [name + strategy for name in (LONG, *SUITES) for strategy in STRATEGIES]


@pytest.fixture
def long_records(tmp_path, monkeypatch):
    folder = tmp_path / "mine" / LONG
    shutil.copytree(ROOT / "tests" / "own_tasks" / LONG, folder)
    text = (folder / "task.yaml").read_text(encoding="utf-8").replace("class: !function ", "class: ")
    task = yaml.safe_load(text)
    task["prompt"] |= {"instruction": "", "input": "{{ testo }}\n\nAllergia? sì o no. {{ strategy }}"}
    text = yaml.safe_dump(task, allow_unicode=True, sort_keys=False)
    (folder / "task.yaml").write_text(text.replace("class: ", "class: !function "), encoding="utf-8")
    rows = [
        {"_split": split, "id": f"{split}{n}", "testo": f"Nota {n} {split}. " * 300, "allergia": "no"}
        for split in ("test", "fewshot")
        for n in range(5)
    ]
    write_jsonl(folder / "sample.jsonl", rows)
    monkeypatch.setenv("MEDTASKS_TASKS", str(folder.parent))
    forget()
    yield
    forget()


@pytest.mark.parametrize(
    ("tasks", "more"),
    [
        ([LONG, "medhelm_race_bias", f"{LONG}_cot"], ("--gen_kwargs", "max_gen_toks=50")),
        ([*(LONG + strategy for strategy in STRATEGIES), "clinicbench"], ("--limit", "1")),
        pytest.param(ALL, ("--limit", "1"), marks=pytest.mark.nightly),
    ],
)
def test_one_call_asks_every_request_once_and_scores_every_task(medtasks, long_records, tasks, more):
    with Server() as server:
        address = f"model=m-2026,base_url={server.url}/chat/completions,num_concurrent=16"
        command = ("run", "--data", "sample", "--tasks", ",".join(tasks), "--model", "local-chat-completions",
                   "--model_args", address, "--apply_chat_template", "--no-preflight", *more)  # fmt: skip
        done = medtasks(*command, "--output_path", "run")
    assert done.code == 0, done.text
    states = {
        name: entry["state"] for name, entry in json.loads(Path("run/run.json").read_text())["tasks"].items()
    }
    results = results_of("run")
    assert set(states.values()) == {"done"} and len(states) >= len(tasks)
    documents = sum(len(path.read_bytes().splitlines()) for path in Path("run").glob("samples_*.jsonl"))
    assert Counter(asked.content for asked in server.asked).most_common(1)[0][1] == 1
    assert len(server.asked) == documents >= len(states) == len(results["configs"])


# Two tasks that ask the same prompt: it is asked once, and both are scored, counted and scored anew.


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
