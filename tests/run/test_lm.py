"""lm-eval with models that remember, on a task of a stranger."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.tasks import TaskManager

from medtasks_ext.engines.lm import LmEngine
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.asker import is_sampled, normalised
from medtasks_ext.run.lm import Remembering, register
from medtasks_ext.run.store import Answers
from tests.conftest import INCLUDED_ALONE
from tests.engines.server import Asked, Reply, Server, chat

N = 40
YAML = """task: invented_facts
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {settings}
repeats: {repeats}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
GREEDY = "{until: ['\\n'], max_gen_toks: 16}"


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    register()


@pytest.fixture
def task(tmp_path: Path):
    """Writes the stranger's task; the folder for `--include_path`."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"question": f"Number {n}?", "answer": str(n % 7)}) + "\n" for n in range(N))
    )

    def write(settings: str = GREEDY, repeats: int = 1) -> Path:
        folder = tmp_path / "tasks"
        folder.mkdir(exist_ok=True)
        (folder / "facts.yaml").write_text(YAML.format(rows=rows, settings=settings, repeats=repeats))
        return folder

    return write


async def right(asked: Asked) -> Reply:
    """Knows every answer."""
    number = int(str(asked.prompt).split()[1].rstrip("?"))
    return Reply(chat(str(number % 7)))


def model(name: str, run: Path, **arguments: Any) -> Any:
    return get_model(f"medtasks-{name}").create_from_arg_obj({"run": str(run), **arguments}, {})


def of(server: Server, run: Path, **more: Any) -> Any:
    arguments = {"model": "m", "base_url": f"{server.url}/chat/completions", "num_concurrent": 4}
    return model("api", run, **arguments | more)


def evaluated(lm: Any, folder: Path) -> dict[str, Any]:
    try:
        return simple_evaluate(
            model=lm,
            tasks=["invented_facts"],
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            apply_chat_template=True,
            bootstrap_iters=0,
        )
    finally:
        lm.close()


def score(results: dict[str, Any]) -> float:
    return results["results"]["invented_facts"]["exact_match,none"]


def prompts(server: Server) -> Counter[str]:
    return Counter(asked.prompt for asked in server.asked)


def test_a_second_call_asks_nothing_and_gives_the_same(tmp_path: Path, task) -> None:
    with Server(right) as server:
        first = evaluated(of(server, tmp_path / "run"), task())
        assert set(prompts(server).values()) == {1}
        second = evaluated(of(server, tmp_path / "run"), task())
        assert len(server.asked) == N
    assert score(first) == score(second) == 1.0
    assert first["samples"] == second["samples"]


@pytest.mark.parametrize("stops", [(12,), pytest.param((8, 20), marks=pytest.mark.nightly)])
def test_a_killed_call_goes_on(tmp_path: Path, task, stops) -> None:
    """What was answered half a second before a kill is not asked again."""

    async def slowly(asked: Asked) -> Reply:
        await asyncio.sleep(0.05)
        return await right(asked)

    with Server(slowly) as server:
        command = [
            *(sys.executable, "-c", INCLUDED_ALONE + "from medtasks_ext.cli.main import main; main()"),
            *("lm_eval", "--model", "medtasks-api"),
            *("--model_args", f"run={tmp_path}/run,model=m,base_url={server.url}/chat/completions"),
            *("--include_path", str(task()), "--tasks", "invented_facts", "--apply_chat_template"),
            *("--output_path", str(tmp_path / "out")),
        ]  # fmt: skip
        for stop_at in stops:
            child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
            while len(server.asked) < stop_at and child.poll() is None:
                time.sleep(0.02)
            time.sleep(0.7)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "|exact_match|↑  |    1|" in done.stdout
    twice = sum(prompts(server).values()) - N
    assert len(prompts(server)) == N and twice <= len(stops) * 20, "more than a kill had in flight"
    lines = (tmp_path / "run/answers.jsonl").read_text().splitlines()
    assert len(lines) == N


def test_a_fault_is_no_answer_and_is_asked_again(tmp_path: Path, task) -> None:
    mended = False

    async def refusing(asked: Asked) -> Reply:
        if "Number 3?" in asked.prompt and not mended:
            return Reply({"error": {"message": "no"}}, status=400)
        return await right(asked)

    with Server(refusing) as server:
        with pytest.raises(MedtasksError, match=r"(?s)1 of 40 .*asks only these again"):
            evaluated(of(server, tmp_path / "run"), task())
        asked, mended = len(server.asked), True
        assert score(evaluated(of(server, tmp_path / "run"), task())) == 1.0
        assert len(server.asked) == asked + 1


def test_a_refused_key_ends_the_call_at_once(tmp_path: Path, task) -> None:
    async def closed(asked: Asked) -> Reply:
        return Reply({"error": {"message": "who are you"}}, status=401)

    with Server(closed) as server, pytest.raises(MedtasksError, match=r"(?s)40 of 40.*refuses"):
        evaluated(of(server, tmp_path / "run"), task())
    assert len(server.asked) <= 4


@pytest.mark.parametrize("change", [{"max_length": 4096}, {"eos_string": "x"}, {"model": "other"}])
def test_a_folder_holds_answers_of_one_model(tmp_path: Path, task, change) -> None:
    with Server(right) as server:
        of(server, tmp_path / "run", **change).close()  # it got no answer
        evaluated(of(server, tmp_path / "run"), task())
        with pytest.raises(MedtasksError, match=f"{next(iter(change))} was .*, is .*other"):
            of(server, tmp_path / "run", **change)
        evaluated(of(server, tmp_path / "run", num_concurrent=2, timeout=9), task())
        assert len(server.asked) == N


def test_repeats_of_a_sampled_question_are_drawn_each_with_its_own_seed(tmp_path: Path, task) -> None:
    folder = task("{until: [], max_gen_toks: 16, temperature: 0.7, do_sample: true}", repeats=3)
    with Server(right) as server:
        evaluated(of(server, tmp_path / "run"), folder)
        seeds = [asked.body["seed"] for asked in server.asked if "Number 5?" in asked.prompt]
        assert sorted(seeds) == [1234, 1235, 1236]
        evaluated(of(server, tmp_path / "run"), folder)
        assert len(server.asked) == 3 * N


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"max_gen_toks": 128}, {"max_gen_toks": "128"}),
        ({"temperature": 0}, {}),
        ({"temperature": 0.0, "do_sample": False}, {"do_sample": False}),
        ({"until": ["a", "b"]}, {"until": ["b", "a", "b"]}),
        ({"seed": 1}, {"seed": 2}),
        ({"stop": None}, {}),
        ({"temperature": 0.7}, {"temperature": "0.7"}),
    ],
)
def test_settings_that_say_the_same_are_the_same(one, other) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("settings", "sampled"),
    [
        ({"temperature": 0.7}, True),
        ({"do_sample": True}, True),
        ({"temperature": 0.7, "do_sample": False}, True),  # servers and vLLM go by the temperature
        ({"do_sample": True, "temperature": 0.0}, False),
        ({"do_sample": "false"}, False),
    ],
)
def test_what_is_drawn_is_known_from_the_settings(settings, sampled) -> None:
    assert is_sampled(normalised(settings)) is sampled


def test_likelihoods_are_kept_also_rolling_ones_and_those_behind_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("medtasks_ext.run.lm.BLOCK", 2)
    calls, blocks = Counter[str](), list[int]()
    kind = get_model("dummy")

    class Counting(kind):
        def loglikelihood(self, requests, **more):
            calls["options"] += len(requests)
            return [(-float(len(request.args[1])), len(request.args[1]) == 1) for request in requests]

        def loglikelihood_rolling(self, requests, **more):
            blocks.append(len(requests))
            return [-float(len(request.args[0])) for request in requests]

    options = [
        Instance("loglikelihood", {}, (before, option), place, metadata=("t", number, 1))
        for number, before in enumerate(["Pain?", "Fever?"])
        for place, option in enumerate([" A", "B", " no"])
    ]
    bare = [Instance("loglikelihood", {}, ("", " A"), 0, metadata=("t", 2, 1))]
    texts = [
        Instance("loglikelihood_rolling", {}, (n * "A text. ",), 0, metadata=("r", n, 1)) for n in (1, 2, 3)
    ]
    for _ in range(2):
        wrapped = Counting()
        lm = Remembering(wrapped, LmEngine(wrapped), Answers(tmp_path / "run"), "identity")
        assert lm.loglikelihood(options) == [(-2.0, False), (-1.0, True), (-3.0, False)] * 2
        assert lm.loglikelihood(bare) == [(-2.0, False)]
        assert lm.loglikelihood_rolling(texts) == [-8.0, -16.0, -24.0]
        lm.close()
    assert calls == {"options": 7} and blocks == [2, 1]


def test_no_file_holds_a_key(tmp_path: Path, task, monkeypatch) -> None:
    key = "sk-PLANTED-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with Server(right) as server:
        evaluated(of(server, tmp_path / "run", header={"X-Key": key}), task())
        assert server.asked[0].headers["x-key"] == key
    for path in (tmp_path / "run").iterdir():
        assert key not in path.read_text()


def test_text_of_a_stranger_s_task_goes_to_this_machine_alone(tmp_path: Path, task) -> None:
    lm = model("api", tmp_path / "run", model="m", base_url="http://203.0.113.7/v1/chat/completions")
    with pytest.raises(MedtasksError, match=r"(?s)invented_facts is not open.*203\.0\.113\.7"):
        evaluated(lm, task())


def test_a_folder_must_be_named() -> None:
    with pytest.raises(MedtasksError, match="add run=FOLDER"):
        get_model("medtasks-dummy").create_from_arg_string("")


@pytest.mark.parametrize("name", ["DummyLM", "HFLM"])  # transformers shares them on several GPUs alone
def test_processes_that_do_not_share_the_documents_are_refused(tmp_path: Path, monkeypatch, name) -> None:
    kind = type(name, (get_model("dummy"),), {})
    monkeypatch.setattr("medtasks_ext.harness.get_model", lambda name: kind)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(MedtasksError, match="2 processes were started that do not share the documents"):
        model("dummy", tmp_path / "run")
