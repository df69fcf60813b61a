"""Tasks that share a long record are asked in turn, document by document; nothing else changes by it."""

import json
import shutil
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from medtasks_ext.engines import Answer, Engine, Usage
from medtasks_ext.registry import forget
from medtasks_ext.run import lm as chosen
from tests.conftest import ROOT, outcomes, write_jsonl
from tests.engines.server import Server
from tests.run_files import result_of, results_of, samples_file

NAME, N = "allergie_farmaci", 8
BOTH = f"{NAME},{NAME}_cot"


class Keeps(Engine):
    """Answers with the gold, one after another, and keeps the beginnings of prompts."""

    window = 4
    keeps_prefixes: ClassVar[bool] = True
    seen: ClassVar[list] = []

    def run(self, feed, done):
        while not feed.over:
            if (request := feed.take()) is None:
                feed.wait(0.01)
                continue
            self.seen.append(request)
            done(request, Answer(f"Result: {request.row['target']}", "stop", Usage(7, 2)))


def own_task(folder: Path) -> Path:
    """The task of another package, whose question stands behind its note."""
    shutil.copytree(ROOT / "tests" / "own_tasks" / NAME, folder)
    file = folder / "task.yaml"
    task = yaml.safe_load(file.read_text(encoding="utf-8").replace("class: !function ", "class: "))
    task["prompt"] |= {"instruction": "", "input": "{{ testo }}\n\nAllergia? sì o no. {{ strategy }}"}
    text = yaml.safe_dump(task, allow_unicode=True, sort_keys=False)
    file.write_text(text.replace("class: ", "class: !function "), encoding="utf-8")
    return folder


@pytest.fixture
def notes(tmp_path, monkeypatch, data_dir):
    """Eight notes; `notes(repeat)` sets how long they are."""
    monkeypatch.setenv("MEDTASKS_TASKS", str(own_task(tmp_path / "mine" / NAME).parent))
    monkeypatch.setattr(Keeps, "seen", [])
    monkeypatch.setattr(chosen, "engine_of", lambda model, **_: Keeps())

    def long(repeat):
        rows = [
            {"id": f"t{i}", "testo": f"Nota {i}. " * repeat, "allergia": ["sì", "no"][i % 2]}
            for i in range(N)
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
    Keeps.seen.clear()
    monkeypatch.setattr(Keeps, "keeps_prefixes", False)
    assert run(medtasks, "apart") == in_turn  # an engine that keeps nothing is asked task by task
    assert [task for task, _ in groupby(order(), key=lambda item: item[0])] in (
        ["zero", "_cot"],
        ["_cot", "zero"],
    )


def test_a_task_whose_prompts_cannot_be_built_does_not_cost_the_other(medtasks, notes, monkeypatch):
    notes(400)
    from medtasks_ext.runner import asking

    right = asking.request_of

    def asked(instances, *more, **how):
        if instances[0].task_name.endswith("_cot") and instances[0].doc["id"] == "t4":
            raise ValueError("no")
        return right(instances, *more, **how)

    monkeypatch.setattr(asking, "request_of", asked)
    outcome = medtasks("run", "--model", "oracle", "--tasks", BOTH, "--output_path", "run")
    assert outcome.code == 1
    assert [document for _, document in order()[:8]] == [f"t{i}" for i in range(4) for _ in ("zero", "cot")]
    assert [document for task, document in order() if task == "zero"] == [f"t{i}" for i in range(N)]


# One call of a run on a server asks everything, once, and scores it, however many tasks share records.


SUITES = ("bridge", "medhelm", "clinicbench", "mlb")
STRATEGIES = ("", "_cot", "_5shot")
ALL = [name + strategy for name in (NAME, *SUITES) for strategy in STRATEGIES]


@pytest.fixture
def long_records(tmp_path, monkeypatch):
    folder = own_task(tmp_path / "mine" / NAME)
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
        ([NAME, "medhelm_race_bias", f"{NAME}_cot"], ("--gen_kwargs", "max_gen_toks=50")),
        ([*(NAME + strategy for strategy in STRATEGIES), "clinicbench"], ("--limit", "1")),
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
        shutil.copytree(ROOT / "tests" / "own_tasks" / NAME, folder)
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


def test_a_prompt_that_two_tasks_share_is_asked_once(medtasks, twins):
    with Server() as server:
        done = run_on(server, medtasks)
        asked = len(server.asked)
    assert done.code == 0, done.text
    before = [result_of("run", name) for name in NAMES]
    one, two = before
    assert asked == one["n"] == two["n"] == len(outcomes("run"))
    for name in ("metrics", "tokens", "cut"):
        assert one[name] == two[name]
    assert medtasks("rescore", "run").code == 0
    assert [result_of("run", name) for name in NAMES] == before
    with Server() as server:
        again = run_on(server, medtasks)
        assert "2 of 2 tasks are done already" in again.err and not server.asked


def test_a_sampled_answer_is_drawn_for_each_task(medtasks, twins):
    with Server() as server:
        done = run_on(server, medtasks, "--gen_kwargs", "temperature=1")
        assert done.code == 0, done.text
        assert len(server.asked) == sum(result_of("run", name)["n"] for name in NAMES)
