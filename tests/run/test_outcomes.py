"""The outcomes of a run by task and document: questions, money, texts of any kind, a killed writer."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks_ext.engines import Answer, Engine, Fault, FaultKind, Likelihood, Request, Usage
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.asker import Asker, Job
from medtasks_ext.run.charge import Budget
from medtasks_ext.run.store import Answers, Asked
from tests.conftest import ROOT

TASK = "bridge_mie"
ANSWER = Answer("A", "stop", Usage(3, 1), "because", "served/model", "id-1", 0.25)
FAULT = Fault(FaultKind.BUSY, "HTTP 503", status=503, tries=4, maybe_paid=2)
#: A line: the key's letter, what is put (or dollars of a request to come), and what the line says besides.
Line = tuple[str, Any, dict[str, Any]]


def stored(folder: Path, *lines: Line) -> Answers:
    """The outcomes of a folder as they are read again; what the writer knew is the same."""
    answers = Answers(folder)
    for name, outcome, about in lines:
        if isinstance(outcome, float):
            answers.note(name * 32, "intent", TASK, f"document {name}", {"cost": outcome})
        else:
            answers.put(name * 32, outcome, TASK, f"document {name}", about)
    answers.close()
    again = Answers(folder, write=False)
    for name in ("asked", "faults", "unsettled"):
        assert getattr(again, name) == getattr(answers, name)
    return again


def plain(*lines: tuple[str, Any]) -> list[Line]:
    return [(name, outcome, {}) for name, outcome in lines]


def test_a_fault_is_no_answer_and_an_answer_settles_it(tmp_path):
    lines = plain(("a", 1.0), ("a", FAULT), ("b", 2.0))
    first = stored(tmp_path / "one", *lines)
    assert not first.answered(TASK) and first.faults == {(TASK, "document a"): FAULT.reason}
    assert first.unsettled == {(TASK, "a" * 32): [1.0], (TASK, "b" * 32): [2.0]}
    then = stored(tmp_path / "two", *lines, ("a", ANSWER, {"settles": 1.0}))
    assert then.answered(TASK) == {"document a": Asked("a" * 32, "")} and not then.faults
    assert then.unsettled == {(TASK, "b" * 32): [2.0]}


BROKEN, PAID = replace(FAULT, maybe_paid=1), replace(ANSWER, cost=0.25)


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        # the try without a reply, and the first of two before the answer
        ([("a", 1.0), ("a", BROKEN), ("b", 2.0), ("b", 2.0), ("b", PAID, 2.0)], 3.0),
        # of a killed call, whatever comes later: asked again, or from a batch
        ([("a", 1.0), ("a", 1.0), ("a", ANSWER, 1.0)], 1.0),
        ([("a", 1.0), ("a", 1.0), ("a", ANSWER)], 2.0),
        ([("a", 1.0), ("a", 1.0), ("a", replace(FAULT, maybe_paid=0), 1.0)], 1.0),
        ([("a", 1.0), ("a", 1.0), ("a", replace(FAULT, maybe_paid=0))], 2.0),
    ],
)
def test_what_a_request_may_have_cost_stays_until_a_reply_says_it(tmp_path, lines, left):
    made = [(name, outcome, {"settles": more[0]} if more else {}) for name, outcome, *more in lines]
    answers = stored(tmp_path, *made)
    assert answers.unsettled.total() == answers.unsettled.total(TASK) == left
    assert answers.unsettled.total("another task") == 0


def test_a_reader_follows_what_another_process_adds_and_needs_no_right_to_write(tmp_path):
    writer = Answers(tmp_path)
    reader, before = Answers(tmp_path, write=False), sorted(tmp_path.iterdir())
    for number, name in enumerate("abc", start=1):
        writer.put(name * 32, ANSWER, TASK, name)
        reader.refresh()
        assert len(reader.answered(TASK)) == number and name * 32 in reader
        assert sorted(tmp_path.iterdir()) == before
    writer.close()


CHANGES = {
    "a changed answer": lambda found: [found[0].replace(b'"A"', b'"B"'), *found[1:]],
    "no hash": lambda found: [b'{"key": "k", "document": "d", "text": "A"}\n', *found[1:]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_line_that_is_not_the_one_that_was_written_is_named_and_the_rest_is_used(tmp_path, change):
    stored(tmp_path, *plain(*((name, ANSWER) for name in "abcd")))
    path = tmp_path / "answers.jsonl"
    before = path.read_bytes()
    path.write_bytes(b"".join(change(before.splitlines(keepends=True))))
    assert path.read_bytes() != before
    again = Answers(tmp_path, write=False)
    assert again.damaged == ["answers.jsonl, line 1"]
    assert list(again.answered(TASK)) == [f"document {name}" for name in "bcd"]


KILLED = """
import sys
from pathlib import Path
from medtasks_ext.engines import Answer
from medtasks_ext.run.store import Answers
answers = Answers(Path(sys.argv[1]))
for number in range(10**9):
    answers.put(f"{number:032}", Answer("x" * (number % 300)), "bridge_mie", str(number))
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_whole_lines_and_the_next_process_goes_on(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", KILLED, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout is not None
        for number in range(500):
            assert int(writer.stdout.readline()) == number
        writer.send_signal(signal.SIGKILL)
    again = Answers(tmp_path)
    kept = [int(document) for document in again.answered("bridge_mie")]
    assert kept == list(range(len(kept))) and kept and not again.damaged
    again.put(f"{len(kept):032}", ANSWER, "bridge_mie", str(len(kept)))
    again.close()
    assert len(Answers(tmp_path, write=False).answered("bridge_mie")) == len(kept) + 1


LOST = Fault(FaultKind.TIMEOUT, "no reply", maybe_paid=1)
#: A store that knows no answer.
NOTHING: Any = ()


def requests(name: str, n: int) -> list[Request]:
    return [Request(f"{name}{i}", "task", f"{name}{i}", "a prompt", {}) for i in range(n)]


class Echo(Engine):
    """Answers one after the other, with the faults that a test sets before its answers."""

    window, local = 8, False

    def __init__(self, faults: dict[str, int] | None = None) -> None:
        self.faults, self.seen = Counter(faults or {}), list[str]()

    def run(self, feed, done):
        while not feed.over:
            if (one := feed.take()) is None:
                feed.wait(0.02)
            else:
                done(one, self.answer(one))

    def answer(self, one):
        tries = 0
        while True:
            self.seen.append(one.key)
            tries += 1
            if not self.faults[one.key]:
                return Answer(f"answer to {one.key}")
            self.faults[one.key] -= 1
            if not self.again(one, LOST):
                return Fault(LOST.kind, LOST.reason, tries=tries, maybe_paid=tries)


class Asks(Asker):
    """Each request may cost a dollar at most, and costs what a test sets."""

    def __init__(self, engine: Engine, asked: list[Request], budget: Budget, spent: float) -> None:
        super().__init__(engine, NOTHING, budget)
        self.asked, self.spent = asked, spent
        self.sent, self.outcomes = list[tuple[str, float | None]](), dict[str, Any]()

    def most(self, request):
        return 1.0

    def sending(self, request, intent):
        self.sent.append((request.key, intent))

    def keep(self, request, outcome, settles):
        self.outcomes[request.key] = outcome, settles
        if len(self.outcomes) == len(self.asked):
            self.stop()
        return self.spent if isinstance(outcome, Answer) else 0.0

    def go(self) -> Job:
        job = Job()
        self.add(job, self.asked)
        self.serve()
        return job


def test_money_is_set_aside_before_a_request_and_given_back_after_it() -> None:
    budget = Budget(6.0)
    asks = Asks(Echo(), requests("x", 50), budget, 0.25)
    job = asks.go()
    assert budget.exhausted and not budget.unsure
    assert 5.0 <= budget.spent <= 6.0 and budget.spent == 0.25 * len(asks.outcomes)
    assert all(intent == 1.0 for _, intent in asks.sent)
    assert job.unasked == 50 - len(asks.outcomes) and not job.faults


def test_a_try_that_may_have_been_charged_counts_as_spent_and_the_next_needs_money_of_its_own() -> None:
    engine, budget = Echo({"x0": 2, "x1": 99}), Budget(6.6)
    asks = Asks(engine, requests("x", 2), budget, 0.5)
    asks.go()
    assert asks.outcomes["x0"] == (Answer("answer to x0"), 1.0)
    fault, settles = asks.outcomes["x1"]
    assert isinstance(fault, Fault) and settles is None  # nothing is left of what was set aside for it
    assert budget.spent == 0.5 and budget.unsure == 6.0
    assert sorted(asks.sent) == sorted((name, 1.0) for name in engine.seen)


def test_a_disk_that_takes_nothing_ends_what_asks() -> None:
    class Full(Asks):
        def keep(self, request, outcome, settles):
            raise MedtasksError("no space left")

    asks, job = Full(Echo(), requests("x", 500), Budget(), 0.0), Job()
    asks.add(job, asks.asked)
    with pytest.raises(MedtasksError, match="no space left"):
        asks.serve()
    assert job.over.is_set() and job.unasked == 500


def test_what_many_threads_ask_is_asked_once_and_all_get_the_answer(tmp_path: Path) -> None:
    answers, echo, found = Answers(tmp_path), Echo(), list[dict[str, str]]()
    asker, same = Asker(echo, answers), [f"{n:032}" for n in range(200)]

    def ask(seed: int) -> None:
        keys = Random(seed).sample(same, len(same))
        asked = [Request(key, f"task {seed}", key, "a prompt", {}) for key in keys]
        got: dict[str, str] = {}
        for begin in range(0, len(asked), 5):  # what was just answered is asked again, too
            got |= {key: answer.text for key, answer in asker.ask(asked[begin : begin + 5]).items()}
        found.append(got)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    asker.begin()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asker.end()
    answers.close()
    assert sorted(echo.seen) == same
    assert found == [{key: f"answer to {key}" for key in same}] * len(threads)


HALVES = st.text(st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF), max_size=2)
PARTS = st.lists(st.text(max_size=20) | HALVES, max_size=4)
#: two halves that meet in a text are one character after reading, as JSON has it
TEXTS = PARTS.map(lambda parts: json.loads(json.dumps("".join(parts))))
COUNTS = st.integers(0, 9)
ANY_ANSWERS = st.builds(
    Answer,
    text=TEXTS,
    finish=st.sampled_from(["", "stop", "length"]),
    usage=st.none() | st.builds(Usage, COUNTS, COUNTS, cached=st.none() | COUNTS),
    reasoning=TEXTS,
    model=TEXTS,
    seconds=st.none() | st.floats(0, 9),
    likelihoods=st.lists(st.builds(Likelihood, st.floats(-9, 0), st.booleans()), max_size=2).map(tuple),
)  # fmt: skip
ANY_FAULTS = st.builds(Fault, st.sampled_from(FaultKind), TEXTS, tries=st.integers(0, 5))


def key(number: int) -> str:
    return f"{number:032x}"


def stored_in_order(folder: Path, *outcomes: Answer | Fault) -> None:
    answers = Answers(folder)
    for number, outcome in enumerate(outcomes):
        answers.put(key(number), outcome, "task", str(number))
    answers.close()


@given(st.lists(ANY_ANSWERS | ANY_FAULTS, max_size=8))
def test_what_is_put_comes_back_and_faults_are_no_answers(tmp_path_factory, outcomes) -> None:
    folder = tmp_path_factory.mktemp("run")
    stored_in_order(folder, *outcomes)
    again = Answers(folder, write=False)
    known = {key(n): outcome for n, outcome in enumerate(outcomes) if isinstance(outcome, Answer)}
    assert again.known(map(key, range(len(outcomes)))) == known
    faults = ((str(n), outcome) for n, outcome in enumerate(outcomes) if isinstance(outcome, Fault))
    assert again.faults == {("task", name): fault.reason or fault.kind for name, fault in faults}
    for line in (folder / "answers.jsonl").read_bytes().splitlines():
        assert isinstance(json.loads(line.decode("utf-8")), dict)


@given(st.lists(ANY_ANSWERS, min_size=1, max_size=4), st.floats(0, 1))
def test_a_torn_end_costs_only_its_own_request(tmp_path_factory, outcomes, share) -> None:
    folder = tmp_path_factory.mktemp("run")
    stored_in_order(folder, *outcomes)
    path = folder / "answers.jsonl"
    whole = path.read_bytes()
    cut = int(share * len(whole))  # a share, because a line holds the time and its length differs
    path.write_bytes(whole[:cut])
    n = whole[:cut].count(b"\n")
    again = Answers(folder)
    assert again.known(map(key, range(len(outcomes)))) == {key(i): outcomes[i] for i in range(n)}
    for number in range(n, len(outcomes)):
        again.put(key(number), outcomes[number], "task", str(number))
    again.close()
    read = Answers(folder, write=False)
    assert read.known(map(key, range(len(outcomes)))) == {key(i): one for i, one in enumerate(outcomes)}
    assert len(path.read_bytes().splitlines()) == len(outcomes) and not read.damaged


def test_of_one_key_the_first_answer_counts(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    for outcome in (Fault(FaultKind.BUSY, "later"), Answer("first"), Answer("second")):
        answers.put(key(0), outcome, "task", "0")
    assert answers.known([key(0)]) == {key(0): Answer("first")}
    answers.close()
    assert [row["outcome"] for row in answers.rows()] == ["fault", "answer"]


def test_files_of_two_machines_are_joined_by_copying(tmp_path: Path) -> None:
    stored_in_order(tmp_path / "one", Answer("a"))
    stored_in_order(tmp_path / "two", Answer("a"), Answer("b"))
    shutil.copy(tmp_path / "two/answers.jsonl", tmp_path / "one/answers-two.jsonl")
    assert Answers(tmp_path / "one", write=False).known([key(0), key(1)]) == {
        key(0): Answer("a"),
        key(1): Answer("b"),
    }


def test_a_full_disk_is_said_and_what_came_is_written_once_there_is_room(tmp_path: Path, monkeypatch) -> None:
    answers, write, room = Answers(tmp_path), os.write, [40]

    def written(file: int, content: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n = write(file, content[: room[0]])
        room[0] -= n
        return n

    monkeypatch.setattr("medtasks_ext.run.store.os.write", written)
    answers.put(key(0), Answer("a"), "task", "0")
    with pytest.raises(MedtasksError, match="No space left"):
        answers.flush()
    with pytest.raises(MedtasksError, match="No space left"):
        answers.known([key(0)])
    assert (tmp_path / "answers.jsonl").stat().st_size == 0, "no half line stays"
    room[0] = 10_000
    answers.close()
    assert Answers(tmp_path, write=False).known([key(0)]) == {key(0): Answer("a")}


def test_a_signal_that_strikes_behind_a_write_doubles_no_line(tmp_path, monkeypatch):
    def struck(*line: Any) -> None:
        written(*line)
        raise KeyboardInterrupt

    answers, written = Answers(tmp_path), os.write
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("medtasks_ext.run.store.os.write", struck)
        answers.put(key(0), Answer("a"), "task", "0")
    answers.put(key(1), Answer("b"), "task", "1")
    assert answers.known([key(0), key(1)]) == {key(0): Answer("a"), key(1): Answer("b")}
    assert len([*answers.rows()]) == 2
    answers.close()


def test_a_slow_disk_holds_up_nobody_who_looks_up_or_puts(tmp_path: Path, monkeypatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(file: int) -> None:
        begun.set()
        assert go_on.wait(60)

    answers = Answers(tmp_path)
    monkeypatch.setattr("medtasks_ext.run.store.os.fsync", slow)
    answers.put(key(0), Answer("a"), "task", "0")
    assert begun.wait(60), "it is written without a call"
    answers.put(key(1), Answer("b"), "task", "1")
    assert answers.known([key(0), key(1)]) == {key(0): Answer("a"), key(1): Answer("b")}
    # who is killed now has both: the disk's slowness costs no answer that was paid for
    assert len((tmp_path / "answers.jsonl").read_bytes().splitlines()) == 2
    go_on.set()
    answers.close()


def test_a_slow_write_keeps_no_other_outcome_waiting(tmp_path, monkeypatch):
    begun, go_on, written = threading.Event(), threading.Event(), os.write

    def slow(file: int, content: bytes) -> int:
        begun.set()
        assert go_on.wait(60)
        return written(file, content)

    answers = Answers(tmp_path)
    monkeypatch.setattr("medtasks_ext.run.store.os.write", slow)
    first = threading.Thread(target=answers.put, args=(key(0), Answer("a"), "task", "0"))
    charged = threading.Thread(target=answers.note, args=(key(2), "intent", "task", "2", {"cost": 1.0}))
    first.start()
    assert begun.wait(60)
    charged.start()
    answers.put(key(1), Answer("b"), "task", "1")  # returns while the other one is written
    charged.join(0.2)
    assert key(1) in answers and charged.is_alive(), "what may be charged is noted before it is sent"
    go_on.set()
    charged.join()
    assert answers.known([key(0), key(1)]) == {key(0): Answer("a"), key(1): Answer("b")}
    answers.close()
