"""The vLLM engine with the real vLLM on the CPU: the same texts as lm-eval's, one by one as they finish.

`python -m tests.engine.test_vllm_engine MODEL REPLICAS` is a process that answers, to be killed: it loads the
engine, then reads one JSON list of `[key, prompt, settings]` per line and writes one JSON line per event:
`loaded`, `key` with its outcome, `ran` or `failed`. SIGINT ends the feed and nothing else.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medtasks_ext.engines import LOOP, Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import text_hash
from medtasks_ext.runs.manifest import described
from tests.conftest import ROOT
from tests.engine.tiny_model import LINES, TEMPLATE, make_babbler
from tests.engines.conftest import ListFeed

pytestmark = pytest.mark.engine

PLACES = 16
#: for a machine that does other things besides
PATIENCE = 600
WORDS = [*LINES[1].split(), *LINES[4].split(), "entity", "status", "咳嗽", "内科", ","]


def loaded(model: Path, batch_size: int | str = 64, **more: Any) -> Any:
    """The engine; with a number as size of batches, lm-eval's own calls show no progress bar."""
    from medtasks_ext.engines.vllm import load

    arguments = {"pretrained": str(model), "dtype": "float32", "max_model_len": 2048, "enforce_eager": True}
    return load({**arguments, "max_num_seqs": PLACES, **more}, {"batch_size": batch_size})


def request(key: str, prompt: str, **settings: Any) -> Request:
    return Request(key, "task", key, prompt, {"until": ["\n\n"], "do_sample": False, **settings})


def prompts(n: int, longest: int = 60, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, longest))) for _ in range(n)]


def mixed(n: int) -> list[Request]:
    budgets = [1, 3, 8, 20, 45]
    return [request(str(i), text, max_gen_toks=budgets[i % 5]) for i, text in enumerate(prompts(n))]


def answered(engine: Any, requests: Iterable[Request]) -> dict[str, Any]:
    """Outcomes by key, in the order in which they came; each once."""
    outcomes: dict[str, Outcome] = {}

    def done(of: Request, outcome: Outcome) -> None:
        assert of.key not in outcomes
        outcomes[of.key] = outcome

    ready = []
    for item in requests:
        prepared = engine.prepare(item)
        if isinstance(prepared, Fault):
            done(item, prepared)
        else:
            ready.append(prepared)
    engine.run(ListFeed(ready), done)
    return outcomes


def texts(outcomes: dict[str, Any]) -> dict[str, str]:
    return {key: outcome.text for key, outcome in outcomes.items()}


def of_lm_eval(lm: Any, requests: list[Request]) -> dict[str, str]:
    """What lm-eval's own call gives."""
    from lm_eval.api.instance import Instance

    instances = [
        Instance("generate_until", {}, (item.prompt, dict(item.settings)), i)
        for i, item in enumerate(requests)
    ]
    found = lm.generate_until(instances, disable_tqdm=True)
    return {item.key: text for item, text in zip(requests, found, strict=True)}


@pytest.fixture(scope="module")
def engine(tiny, environment) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        engine = loaded(tiny)
        yield engine
        engine.close()


def test_greedy_texts_are_those_of_lm_evals_own_call(engine):
    requests = mixed(60)
    outcomes = answered(engine, requests)
    assert len(outcomes) == 60 and texts(outcomes) == of_lm_eval(engine.lm, requests)
    for item in requests:
        usage = outcomes[item.key].usage
        assert usage.prompt == len(engine.lm.tok_encode(item.prompt))
        assert 1 <= usage.completion <= item.settings["max_gen_toks"]
        assert outcomes[item.key].seconds > 0
    assert {outcome.finish for outcome in outcomes.values()} <= {"stop", "length"}
    item = request("x", " ".join(prompts(6, seed=2)), max_gen_toks=2)
    answered(engine, [item])
    usage = answered(engine, [item])["x"].usage
    assert 0 < usage.cached <= usage.prompt  # vLLM has seen it


def test_the_loaded_model_says_what_it_is(engine):
    found = described(engine.lm, template=True, layout=None)
    assert (found.dtype, found.generation) == ("float32", {})
    assert found.template == text_hash(TEMPLATE)


def test_tokens_are_lm_evals_own_and_turns_get_the_models_template(engine):
    for prompt in ("a cough", "<s>a cough"):  # no second first token
        assert engine.prepare(request("x", prompt)).tokens == engine.lm.tok_encode(prompt)
    prepared = engine.prepare(Request("x", "task", "x", [{"role": "user", "content": "a cough"}], {}))
    assert prepared.tokens == engine.lm.tok_encode("<|user|>a cough<|end|><|assistant|>")


def test_stop_texts_cut_the_answer_and_where_it_reasons_what_follows_the_reasoning(engine, monkeypatch):
    asked = [request(str(i), text, max_gen_toks=60) for i, text in enumerate(prompts(12, seed=1))]
    said = texts(answered(engine, asked))
    item = next(item for item in asked if len(said[item.key]) >= 30)  # long enough to be cut
    whole = said[item.key]
    stop = whole[12:15]
    assert stop.strip()
    stopped = replace(item, key="stopped", settings={**item.settings, "until": ["\n\n", stop]})
    answer = answered(engine, [stopped])["stopped"]
    assert answer.finish == "stop" and answer.text == whole.split(stop)[0]
    assert {"stopped": answer.text} == of_lm_eval(engine.lm, [stopped])

    monkeypatch.setattr(engine.lm, "think_end_token", stop)
    before = next(part for part in (whole[3:5], whole[2:4]) if part.strip())
    stopped = replace(item, settings={**item.settings, "until": [before]})
    answer = answered(engine, [stopped])[item.key]
    assert {item.key: answer.text} == of_lm_eval(engine.lm, [stopped])
    assert before in answer.reasoning and whole.startswith(answer.reasoning)


def test_sampled_settings_run(engine):
    settings = {"do_sample": True, "temperature": 1.0, "top_p": 0.95, "top_k": 50, "max_gen_toks": 30}
    outcomes = answered(engine, [request(str(i), "The patient", **settings) for i in range(20)])
    assert all(isinstance(outcome, Answer) for outcome in outcomes.values())
    assert len(set(texts(outcomes).values())) > 10


def test_what_cannot_be_answered_is_a_fault_and_the_rest_is_answered(engine):
    bad = [
        request("long", " ".join(prompts(1)[0] for _ in range(500)), max_gen_toks=100),
        request("half", "a cough \ud83d", max_gen_toks=5),
        request("half stop", "a cough", until=["\ud83d"], max_gen_toks=5),
        request("empty", "", max_gen_toks=5),
        request("settings", "a cough", do_sample=True, temperature=1.0, top_p=5, max_gen_toks=5),
        request("unknown", "a cough", no_such_setting=1, max_gen_toks=5),
        request("nothing", "a cough", max_gen_toks=0),
    ]
    good = mixed(20)
    outcomes = answered(engine, [*good[:10], *bad, *good[10:]])
    assert all(isinstance(outcomes[item.key], Answer) for item in good)
    too_long = outcomes["long"]
    assert too_long.kind is FaultKind.TOO_LONG and "1,948" in too_long.reason and too_long.remedy
    for key in ("half stop", "empty", "settings", "unknown", "nothing"):
        assert outcomes[key].kind is FaultKind.ENGINE, key
    assert isinstance(outcomes["half"], Answer | Fault)
    assert all("cough" not in item.reason for item in outcomes.values() if isinstance(item, Fault))


def test_the_engine_is_kept_full_and_short_answers_come_before_long_ones_that_were_asked_earlier(engine):
    long = long_requests(4, 200)
    short = [request(f"short{i}", text, max_gen_toks=2) for i, text in enumerate(prompts(8))]
    order = list(answered(engine, [*long, *short]))
    assert set(order[:8]) == {item.key for item in short}
    assert engine.window == 2 * PLACES
    feed = ListFeed(engine.prepare(item) for item in mixed(150))
    under_way = []
    engine.run(feed, lambda *_: under_way.append(150 - len(feed.left) - len(under_way)))
    assert len(under_way) == 150 and max(under_way) == engine.window


def test_a_run_that_is_left_leaves_nothing_to_the_next(engine):
    def leave(*_):
        raise LookupError

    with pytest.raises(LookupError):
        engine.run(ListFeed(engine.prepare(item) for item in mixed(40)), leave)
    assert texts(answered(engine, mixed(10))) == of_lm_eval(engine.lm, mixed(10))


def test_an_answer_that_repeats_itself_is_ended_where_that_is_asked_for(tmp_path, environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    engine = loaded(make_babbler(tmp_path, ["B", "\n\nQuestion", ": What", " is next?", "\nAnswer: "]))
    babbled = "B\n\nQuestion: What is next?\nAnswer: "
    try:
        usual = request("usual", LINES[1], until=[], max_gen_toks=20)
        loops = {**usual.settings, "repetition_detection": {"max_pattern_size": 8, "min_count": 3}}
        outcomes = answered(engine, [usual, replace(usual, key="loops", settings=loops)])
        assert texts(outcomes) == {"usual": babbled * 4, "loops": babbled * 3}
        assert outcomes["loops"].finish == LOOP
    finally:
        engine.close()


# ---------------------------------------------------------------------- processes that are killed


def main(model: str, replicas: int) -> None:
    """The process."""
    engine = loaded(Path(model), "auto", data_parallel_size=replicas)
    say(loaded=engine.window)
    for line in sys.stdin:
        asked = [engine.prepare(request(key, prompt, **more)) for key, prompt, more in json.loads(line)]
        feed = ListFeed(asked)
        came: list[str] = []
        signal.signal(signal.SIGINT, lambda *_, feed=feed: feed.left.clear())
        try:
            engine.run(feed, lambda of, outcome, came=came: (came.append(of.key), report(of, outcome)))
        except MedtasksError as error:
            say(failed=str(error))
        else:
            say(ran=len(came))
    engine.close()


def report(of: Request, outcome: Outcome) -> None:
    if isinstance(outcome, Answer):
        say(key=of.key, text=outcome.text, finish=outcome.finish)
    else:
        say(key=of.key, fault=outcome.reason)


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


class Streaming:
    """A process that answers requests, with its descendants as they were once it had loaded."""

    def __init__(self, model: Path, replicas: int, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.test_vllm_engine", str(model), str(replicas)], cwd=ROOT,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, start_new_session=True,
        )  # fmt: skip
        self.window = self.read()["loaded"]
        self.descendants = psutil.Process(self.process.pid).children(recursive=True)

    def read(self) -> dict[str, Any]:
        """The next event; other lines come from vLLM."""
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                return json.loads(line)
        raise AssertionError("the process has ended")

    def ask(
        self, requests: list[Request], each: Callable[[int], None] = lambda n: None
    ) -> tuple[dict[str, dict], dict]:
        """Outcomes by key, each once, and the event after the last; `each` is called with their number."""
        rows = [[item.key, item.prompt, dict(item.settings)] for item in requests]
        self.process.stdin.write(json.dumps(rows) + "\n")
        self.process.stdin.flush()
        outcomes: dict[str, dict] = {}
        while "key" in (event := self.read()):
            assert event["key"] not in outcomes
            outcomes[event["key"]] = event
            each(len(outcomes))
        return outcomes, event

    def engines(self) -> list[psutil.Process]:
        return [process for process in self.descendants if "EngineCore" in process.name()]

    def all_gone(self) -> bool:
        self.process.wait(PATIENCE)
        return not psutil.wait_procs(self.descendants, timeout=PATIENCE)[1]


@contextmanager
def streaming(*arguments: Any) -> Iterator[Streaming]:
    started = Streaming(*arguments)
    try:
        yield started
    finally:
        started.process.kill()
        assert started.all_gone()


def long_requests(n: int, budget: int = 150) -> list[Request]:
    return [
        request(str(i), text, max_gen_toks=budget, ignore_eos=True, until=[])
        for i, text in enumerate(prompts(n))
    ]


@pytest.mark.nightly
def test_two_replicas_give_the_texts_of_one_and_die_together(engine, tiny, environment):
    requests = mixed(100)
    with streaming(tiny, 2, environment) as stream:
        assert stream.window == 4 * PLACES and len(stream.engines()) == 2
        outcomes, last = stream.ask(requests)
        assert last["ran"] == len(outcomes) == 100
        assert texts(answered(engine, requests)) == {key: event["text"] for key, event in outcomes.items()}

        # a replica that dies ends the run with one message, after what has come
        replica = stream.engines()[1]
        outcomes, last = stream.ask(long_requests(200), lambda n: replica.kill() if n == 20 else None)
        assert len(outcomes) >= 20 and "vLLM's engine has died" in last["failed"], last
        assert "gpu_memory_utilization" in last["failed"]

        # what it leaves, and the rest, ends with this process
        stream.process.kill()
        assert stream.all_gone()


def test_ctrl_c_reaches_no_engine_and_kill_leaves_none(tiny, environment):
    with streaming(tiny, 1, {**environment, "TQDM_DISABLE": "1"}) as stream:
        outcomes, last = stream.ask(
            long_requests(200), lambda n: os.killpg(stream.process.pid, signal.SIGINT) if n == 20 else None
        )
        assert last["ran"] == len(outcomes) and 20 <= len(outcomes) < 200  # not all were asked
        # none was broken off; a random model writes the text of its last token now and then: 5 of all 200
        finishes = {event.get("finish", event.get("fault")) for event in outcomes.values()}
        assert "length" in finishes and finishes <= {"length", "stop"}
        assert stream.ask(mixed(10))[1]["ran"] == 10
        stream.process.kill()
        assert stream.all_gone()


@pytest.mark.nightly
def test_an_engine_that_is_killed_ends_the_run_with_what_has_come(tiny, environment):
    with streaming(tiny, 1, environment) as stream:
        [core] = stream.engines()
        outcomes, last = stream.ask(long_requests(200), lambda n: core.kill() if n == 20 else None)
        assert len(outcomes) >= 20 and all("text" in event for event in outcomes.values())
        assert "vLLM's engine has died" in last["failed"] and "max_model_len" in last["failed"]
        stream.process.stdin.close()
        assert stream.all_gone() and stream.process.returncode == 0


# The watcher: nothing that a process has started outlives it, however it ends.

psutil = pytest.importorskip("psutil")  # vLLM brings it

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
from medtasks_ext.engines.vllm import start_watcher
start_watcher()
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}])
if os.fork() == 0:
    time.sleep(1000)
time.sleep(1)
print("ready", flush=True)
{{then}}
"""


def parent(then: str) -> tuple[subprocess.Popen, list]:
    """A process that has started the watcher and children; they, the watcher first."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS_CHILDREN.format(then=then)], cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    while len(found := psutil.Process(process.pid).children(recursive=True)) < 4:
        pass
    watchers = [child for child in found if "watched" in " ".join(child.cmdline())]
    assert len(watchers) == 1 and len(found) == 4
    return process, watchers + [child for child in found if child not in watchers]


def all_end(processes: list) -> bool:
    return not psutil.wait_procs(processes, timeout=120)[1]


def test_a_killed_process_leaves_nothing():
    process, started = parent("time.sleep(1000)")
    process.kill()
    assert process.wait() == -signal.SIGKILL and all_end(started)


def test_the_watcher_ends_after_a_normal_end_and_ends_what_is_left():
    process, started = parent("sys.stdin.read(); os._exit(0)")
    process.stdin.close()
    assert process.wait(120) == 0 and all_end(started)


def test_ctrl_c_does_not_reach_the_watcher():
    process, (watching, *others) = parent("time.sleep(1000)")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(120) != 0 and os.getsid(watching.pid) == watching.pid
    assert all_end([watching, *others])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
