"""What asks an engine: money is set aside before a request, and tries that may have been charged count."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from medtasks_ext.engines import Answer, Fault, FaultKind, Request
from medtasks_ext.engines.engine import Engine
from medtasks_ext.errors import MedtasksError
from medtasks_ext.run.asker import Asker, Job
from medtasks_ext.run.charge import Budget

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


def test_a_prompt_that_cannot_be_made_ready_costs_no_other() -> None:
    class Refuses(Echo):
        def prepare(self, request):
            if request.key == "x3":
                raise ValueError("no such character")
            return request

    asks = Asks(Refuses(), requests("x", 6), Budget(), 0.0)
    job = asks.go()
    assert [fault.kind for fault in job.faults] == [FaultKind.ENGINE] and not job.unasked
    assert sum(isinstance(outcome, Answer) for outcome, _ in asks.outcomes.values()) == 5
