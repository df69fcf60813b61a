"""The one stream: several planners and engines, what follows from outcomes, money, and the end."""

import threading
from collections import Counter

import pytest

from medtasks_ext.engines.budget import Budget
from medtasks_ext.engines.engine import Engine
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Request
from medtasks_ext.engines.stream import Planner, Settled, Stream
from medtasks_ext.errors import MedtasksError

LOST = Fault(FaultKind.TIMEOUT, "no reply", maybe_paid=1)


def request(name: str) -> Request:
    return Request(name, "task", name, f"prompt {name}", {})


class Echo(Engine):
    """Answers in batches, with the faults that a test sets before its answers."""

    window, batch, local = 8, 4, False

    def __init__(self, faults: dict[str, int] | None = None) -> None:
        self.faults = Counter(faults or {})
        self.seen: list[str] = []
        self.sizes: list[int] = []

    def run(self, feed, done):
        group = []
        while not feed.over or group:
            if len(group) < self.batch and (one := feed.take()):
                group.append(one)
            elif group and (len(group) == self.batch or feed.over or feed.dry):
                self.sizes.append(len(group))
                for one in group:
                    done(one, self.answer(one))
                group = []
            else:
                feed.wait(0.02)

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


class Asks(Planner):
    """Asks a list of an engine, and for each answer of one what follows of another."""

    def __init__(self, engine, names, follow=None, cost=None, spent=0.0):
        super().__init__()
        self.engine, self.names, self.to, self.cost, self.spent = engine, names, follow, cost, spent
        self.follows = follow is not None
        self.outcomes, self.sent, self.visits, self.closed = {}, [], 0, 0

    def requests(self, engine):
        yield from (request(name) for name in self.names if engine == self.engine)

    def highest_cost(self, one):
        return self.cost

    def sending(self, one, intent):
        self.sent.append((one.key, intent))

    def outcome(self, one, outcome, settles):
        assert one.key not in self.outcomes
        self.outcomes[one.key] = (outcome, settles)
        if self.to and not one.key.endswith("'"):
            return Settled(self.spent, [(self.to, request(f"{one.key}'"))])
        return Settled(self.spent)

    def visit(self):
        self.visits += 1

    def close(self):
        self.closed += 1


def names(prefix, n):
    return [f"{prefix}{i}" for i in range(n)]


@pytest.mark.parametrize("to", ["a", "b"], ids=["the same engine", "another engine"])
def test_planners_share_engines_and_what_follows_is_asked(to):
    engines = {"a": Echo(), "b": Echo()}
    one, two = Asks("a", names("x", 30), follow=to), Asks("b", names("y", 20))
    Stream([one, two], engines).go()
    assert set(one.outcomes) == {*names("x", 30), *(f"{name}'" for name in names("x", 30))}
    assert set(two.outcomes) == set(names("y", 20))
    assert sum(name.endswith("'") for name in engines[to].seen) == 30
    assert len(engines["a"].seen) + len(engines["b"].seen) == 80
    assert one.closed == two.closed == 1 and one.visits


def test_an_engine_that_waits_for_whole_batches_answers_what_it_has_where_more_may_follow():
    engine, planner = Echo(), Asks("a", names("x", 6), follow="a")
    Stream([planner], {"a": engine}).go()
    assert len(planner.outcomes) == 12 and max(engine.sizes) == 4


def test_an_engine_that_nothing_is_asked_of_is_not_run():
    class Never(Echo):
        def run(self, feed, done):
            raise AssertionError

    planner = Asks("a", names("x", 3), follow="a")
    Stream([planner], {"a": Echo(), "b": Never()}).go()
    assert len(planner.outcomes) == 6


def test_money_is_set_aside_before_a_request_and_given_back_after_it():
    engine, planner = Echo(), Asks("a", names("x", 50), cost=1.0, spent=0.25)
    budget = Budget(6.0)
    Stream([planner], {"a": engine}, budget=budget).go()
    assert budget.exhausted and not budget.unsure
    assert 5.0 <= budget.spent <= 6.0 and budget.spent == 0.25 * len(planner.outcomes)
    assert all(intent == 1.0 for _, intent in planner.sent)


def test_a_try_that_may_have_been_charged_counts_as_spent_and_the_next_needs_money_of_its_own():
    engine, planner = Echo({"x0": 2, "x1": 99}), Asks("a", ["x0", "x1"], cost=1.0, spent=0.5)
    budget = Budget(6.6)
    Stream([planner], {"a": engine}, budget=budget).go()
    assert planner.outcomes["x0"] == (Answer("answer to x0"), 1.0)
    fault, settles = planner.outcomes["x1"]
    assert isinstance(fault, Fault) and settles is None  # nothing is left of what was set aside for it
    assert budget.spent == 0.5 and budget.unsure == 6.0
    assert planner.sent == [(name, 1.0) for name in engine.seen] or sorted(planner.sent) == sorted(
        (name, 1.0) for name in engine.seen
    )


def test_a_disk_that_takes_nothing_ends_the_stream():
    full = MedtasksError("no space left")

    class Full(Asks):
        def visit(self):
            raise full

    class Slow(Echo):
        def answer(self, one):
            threading.Event().wait(0.05)
            return super().answer(one)

    planner = Full("a", names("x", 500))
    with pytest.raises(MedtasksError, match="no space left"):
        Stream([planner], {"a": Slow()}).go()
    assert len(planner.outcomes) < 500 and planner.closed == 1


def test_a_planner_that_wants_no_more_ends_alone():
    class Enough(Asks):
        def outcome(self, one, outcome, settles):
            self.over = len(self.outcomes) >= 3
            return super().outcome(one, outcome, settles)

    enough, other = Enough("a", names("x", 200)), Asks("a", names("y", 30))
    Stream([enough, other], {"a": Echo()}).go()
    assert len(enough.outcomes) < 200 and len(other.outcomes) == 30
