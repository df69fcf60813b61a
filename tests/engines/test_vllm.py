"""Requests over several vLLMs, with lanes that only pretend; the real ones are in tests/engine."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import replace
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from medtasks_ext.engines import Answer, Fault, FaultKind, Request
from medtasks_ext.engines.vllm import VllmEngine
from medtasks_ext.engines.vllm.lanes import DROP, Ended, Lane, LaneResult
from medtasks_ext.engines.vllm.load import cpu_threads, device_slices, environment
from medtasks_ext.engines.vllm.replica import GivenUpError, PipeFeed
from medtasks_ext.errors import MedtasksError


class Feed:
    """Requests that are all ready."""

    def __init__(self, n: int) -> None:
        self.left = deque(Request(str(i), "task", str(i), f"question {i}", {}) for i in range(n))
        self.taken = 0

    @property
    def over(self) -> bool:
        return not self.left

    def take(self) -> Request | None:
        self.taken += bool(self.left)
        return self.left.popleft() if self.left else None

    def wait(self, seconds: float) -> None:
        raise AssertionError("all are ready")


class Pretends(Lane):
    """Answers when it is full, or has the last; then the newest first. It may end after some answers."""

    def __init__(self, name: str, window: int, *, last: int = -1, ends_after: int = -1, dies_after: int = -1):
        self.name, self.window = name, window
        self.last, self.ends_after, self.dies_after = last, ends_after, dies_after
        self.held, self.most, self.dropped, self.ended = [], 0, 0, []
        self.gone = False

    def report_to(self, events) -> None:
        self.events = events

    def send(self, ticket, request) -> None:
        self.held.append(ticket)
        self.most = max(self.most, len(self.held))
        while self.held and (len(self.held) == self.window or ticket >= self.last >= 0):
            if self.gone:
                return
            self.events.put(LaneResult(self.held.pop(), Answer(self.name)))
            self.ends_after -= 1
            self.dies_after -= 1
            if self.ends_after == 0:
                self.events.put(Ended("no memory", self.name, "buy some"))
            if self.ends_after == 0 or self.dies_after == 0:
                self.gone = True

    def drop(self) -> None:
        self.dropped += 1

    def lost(self) -> Ended | None:
        return Ended("killed", self.name) if self.dies_after <= 0 and self.gone else None

    def stop(self) -> None:
        self.ended.append("stop")

    def close(self) -> None:
        self.ended.append("close")


@pytest.fixture
def engine_of():
    """An engine over these lanes, closed at the end."""
    engines = []

    def make(*lanes: Lane, lm=None) -> VllmEngine:
        engines.append(VllmEngine(lm, lanes))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def test_requests_go_to_the_lane_that_is_least_full(engine_of):
    small, large = Pretends("small", 4, last=80), Pretends("large", 12, last=80)
    engine, answers = engine_of(small, large), {}
    assert engine.window == 16
    engine.run(Feed(90), lambda request, outcome: answers.setdefault(request.key, outcome.text))
    assert len(answers) == 90 and (small.most, large.most) == (4, 12)
    shares = [list(answers.values()).count(name) for name in ("small", "large")]
    assert shares == [small.answered, large.answered] and min(shares) > 20
    assert small.dropped == large.dropped == 0


def test_requests_of_one_record_go_to_one_lane(engine_of):
    """Two requests a record, and lanes that hold an odd number of them."""
    lanes = Pretends("a", 3, last=80), Pretends("b", 5, last=80)
    engine, answers, feed = engine_of(*lanes), {}, Feed(90)
    feed.left = deque(replace(request, record=f"r{int(request.key) // 2}") for request in feed.left)
    engine.run(feed, lambda request, outcome: answers.setdefault(request.key, outcome.text))
    assert all(answers[str(2 * i)] == answers[str(2 * i + 1)] for i in range(45))
    assert min(list(answers.values()).count(name) for name in ("a", "b")) > 20


def test_what_has_come_is_handed_on_before_a_lane_that_ended_ends_the_run(engine_of):
    good, bad = Pretends("good", 5), Pretends("replica 1", 5, ends_after=7)
    engine, answers = engine_of(good, bad), []
    with pytest.raises(MedtasksError, match="replica 1: no memory\n  → buy some"):
        engine.run(Feed(100), lambda request, outcome: answers.append((request.key, outcome.text)))
    assert [text for _, text in answers].count("replica 1") == 7 and len(dict(answers)) == len(answers)
    assert good.dropped == 1 and bad.dropped == 1


def test_a_lane_that_dies_without_a_word_ends_the_run(engine_of):
    engine, answers = engine_of(Pretends("good", 5), Pretends("replica 1", 5, dies_after=7)), []
    with pytest.raises(MedtasksError, match="replica 1: killed"):
        engine.run(Feed(100), lambda *came: answers.append(came))
    assert len(answers) >= 7


def test_what_was_given_up_is_nobodys_answer_in_the_next_run(engine_of):
    lane = Pretends("one", 3, last=0)
    engine, answers = engine_of(lane), []

    def leave(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(Feed(3), leave)
    lane.events.put(LaneResult(1, Answer("late")))
    engine.run(Feed(3), lambda request, outcome: answers.append((request.key, outcome.text)))
    assert sorted(answers) == [("0", "one"), ("1", "one"), ("2", "one")] and lane.under_way == 0


def test_all_lanes_are_told_to_stop_before_any_is_waited_for(engine_of):
    told = []
    lanes = [Pretends("a", 1), Pretends("b", 1)]
    for lane in lanes:
        lane.ended = told
    engine_of(*lanes).close()
    assert told == ["stop", "stop", "close", "close"]


def eventually(what):
    for _ in range(1000):
        if (found := what()) is not None:
            return found
        time.sleep(0.01)
    raise AssertionError("never")


def test_a_replica_gives_up_at_once_also_when_it_is_full():
    starter, replica = Pipe()
    feed = PipeFeed(replica)
    assert feed.take() is None and not feed.over
    starter.send(Request("7", "", "", "", {}, tokens=[1, 2]))
    assert eventually(feed.take).tokens == [1, 2]
    for words, ended in ((lambda: starter.send(DROP), False), (starter.close, True)):
        words()
        with pytest.raises(GivenUpError):
            eventually(lambda: feed.over or None)  # a full engine takes nothing, but asks
        assert feed.ended is ended


def model(context: int = 100) -> SimpleNamespace:
    return SimpleNamespace(
        max_length=context,
        max_gen_toks=40,
        tok_encode=lambda text: [len(word) for word in text.encode().decode().split()],
        apply_chat_template=lambda turns: " ".join(turn["content"] for turn in turns),
        modify_gen_kwargs=lambda settings, default_max_gen_toks: (
            {}, [], int(settings.get("max_gen_toks", default_max_gen_toks))
        ),
    )  # fmt: skip


def prepared(engine: VllmEngine, prompt, **settings):
    return engine.prepare(Request("key", "task", "key", prompt, settings))


def test_a_prompt_that_does_not_fit_is_a_fault_with_its_numbers(engine_of):
    engine = engine_of(Pretends("one", 1), lm=model())
    assert len(prepared(engine, "word " * 60).tokens) == 60
    fault = prepared(engine, "word " * 61)
    assert fault.kind is FaultKind.TOO_LONG and "61 tokens" in fault.reason and "room for 60" in fault.reason
    assert "max_model_len" in fault.remedy and "word" not in fault.reason
    assert prepared(engine, "word", max_gen_toks=100).kind is FaultKind.TOO_LONG
    assert "room for 0" in prepared(engine, "word", max_gen_toks=101).reason


def test_what_cannot_become_tokens_is_a_fault_without_text_of_the_row(engine_of):
    engine = engine_of(Pretends("one", 1), lm=model())
    assert prepared(engine, "a secret \ud83d") == Fault(
        FaultKind.ENGINE, "the prompt cannot be made into tokens (UnicodeEncodeError)"
    )
    assert prepared(engine, "word", max_gen_toks="many").kind is FaultKind.ENGINE
    assert prepared(engine, [{"role": "user", "content": "two words"}]).tokens == [3, 5]


def test_replicas_get_equal_slices_of_the_devices():
    assert device_slices(["4", "5", "6", "7"], 2, 2) == [["4", "5"], ["6", "7"]]
    assert device_slices(["GPU-a", "GPU-b", "GPU-c"], 2, 1) == [["GPU-a"], ["GPU-b"]]
    with pytest.raises(MedtasksError, match="2 replicas with 2 devices each need 4 devices; 3 are visible"):
        device_slices(["0", "1", "2"], 2, 2)


def test_replicas_on_a_cpu_share_its_cores():
    assert cpu_threads(None, range(8), 2, 1) == ["0,1,2,3", "4,5,6,7"]
    assert cpu_threads("auto", [2, 3, 8, 9], 2, 2) == ["2|3", "8|9"]
    assert cpu_threads(None, [0], 2, 1) == ["nobind"] * 2 == cpu_threads("nobind", range(8), 2, 1)
    assert cpu_threads("0-3|4-7", [0], 2, 1) == ["0-3", "4-7"]
    with pytest.raises(MedtasksError, match="1 lists of cores for 2 workers"):
        cpu_threads("0-7", range(8), 2, 1)


def test_other_environment_variables_last_for_a_while(monkeypatch):
    monkeypatch.setenv("MEDTASKS_ONE", "1")
    monkeypatch.delenv("MEDTASKS_TWO", raising=False)
    with environment({"MEDTASKS_ONE": "a", "MEDTASKS_TWO": "b"}):
        assert (os.environ["MEDTASKS_ONE"], os.environ["MEDTASKS_TWO"]) == ("a", "b")
    assert os.environ["MEDTASKS_ONE"] == "1" and "MEDTASKS_TWO" not in os.environ


def model_with(*added: str, template: str | None = None, think_end: str | None = None) -> SimpleNamespace:
    """What is looked at of lm-eval's model to know whether it may reason."""
    tokenizer = SimpleNamespace(get_added_vocab=lambda: dict.fromkeys(added, 1), chat_template=template)
    return SimpleNamespace(tokenizer=tokenizer, think_end_token=think_end)
