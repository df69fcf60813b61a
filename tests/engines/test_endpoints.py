"""Several servers of one model: unequal ones, one that dies, one that comes back, one that refuses us."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from medtasks_ext.egress import UNKNOWN_TEXT, Egress
from medtasks_ext.engines import Answer, FaultKind
from medtasks_ext.engines.api import ApiEngine
from medtasks_ext.errors import MedtasksError
from tests.engines.conftest import ListFeed, asking, model
from tests.engines.server import HANG_UP, Reply, Server, chat


@pytest.fixture
def servers():
    with ExitStack() as opened:
        yield [opened.enter_context(Server()) for _ in range(3)]


def taking(seconds):
    async def script(asked):
        await asyncio.sleep(seconds)
        return Reply(chat(asked.prompt))

    return script


def ask(servers, n, clock=None, **settings):
    """Outcomes of all of them, what the user was told, the engine."""
    lines, outcomes = [], []
    urls = [f"{server.url}/chat/completions" for server in servers]
    lm = model(servers[0], **{"num_concurrent": 2, **settings})
    engine = ApiEngine(lm, say=lines.append, replicas=urls[1:])
    if clock:
        clock.rule(engine)
    engine.run(ListFeed(asking(n)), lambda request, outcome: outcomes.append(outcome))
    return outcomes, lines, engine


def test_every_server_gets_what_it_can_do(servers):
    """Two of them give an answer while the first gives ten."""
    first = servers[0]

    async def slow(asked):
        then = len(first.asked)
        while len(first.asked) < then + 10 and sum(len(server.asked) for server in servers) < 200:
            await asyncio.sleep(0.001)
        return Reply(chat(asked.prompt))

    first.script = taking(0)
    servers[1].script = servers[2].script = slow
    outcomes, lines, engine = ask(servers, 200)
    assert all(isinstance(got, Answer) for got in outcomes) and not lines
    assert engine.window == 6 and all(server.most_connections == 2 for server in servers)
    fast, *slow = (len(server.asked) for server in servers)
    assert fast + sum(slow) == 200 and fast > 2 * max(slow) and min(slow) > 0


def test_a_server_that_dies_loses_no_request(servers):
    async def script(asked):
        if asked.number == 10:
            servers[1].die()
        return await taking(0.002)(asked)

    servers[0].script = servers[2].script = taking(0.002)
    servers[1].script = script
    outcomes, lines, _ = ask(servers, 200, max_retries=3)
    assert len(outcomes) == 200 and all(isinstance(got, Answer) for got in outcomes)
    assert len(lines) == 1 and servers[1].url in lines[0]
    assert "the other servers go on without it until it answers" in lines[0]
    # those under way at its end are asked once more elsewhere, no others
    assert sum(len(server.asked) for server in servers) <= 200 + 2


def test_a_server_that_comes_back_is_asked_again(servers):
    """It breaks all its connections at once; what looks a second later whether it is back finds it well."""

    async def script(asked):
        return HANG_UP if asked.number < 16 else await taking(0.001)(asked)

    servers[1].script, servers[0].script = script, taking(0.001)
    fast = SimpleNamespace(rule=lambda engine: setattr(engine, "now", lambda: 100 * time.monotonic()))
    outcomes, lines, _ = ask(servers[:2], 300, fast, num_concurrent=16)
    assert len(outcomes) == 300 and all(isinstance(got, Answer) for got in outcomes)
    assert len(servers[1].asked) > 50 and lines[-1] == f"{servers[1].url}/chat/completions answers again"


@pytest.mark.parametrize(("status", "kind"), [(401, FaultKind.KEY), (404, FaultKind.MODEL)])
def test_a_server_that_takes_no_request_ends_the_run(servers, clock, status, kind):
    async def script(asked):
        return Reply({}, status)

    servers[0].script = script
    outcomes, _, engine = ask(servers, 500, clock)
    assert engine.ended.kind is kind and len(outcomes) < 500 and sum(one == engine.ended for one in outcomes)


def test_where_all_are_dead_each_request_has_its_tries(clock, servers):
    for server in servers[:2]:
        server.call(server.die)
    outcomes, _, _ = ask(servers[:2], 800, clock, max_retries=2)
    assert [(got.kind, got.tries) for got in outcomes] == [(FaultKind.UNREACHABLE, 3)] * 800


def test_no_server_gets_a_text_that_it_may_not_receive(servers):
    """One of them is far: what is not open goes to none, and is refused before anything is asked."""
    far = "http://gpu.example.org/v1/chat/completions"
    engine = ApiEngine(model(servers[0]), egress=Egress(), replicas=[far])
    assert not engine.local
    with pytest.raises(MedtasksError, match=r"gpu\.example\.org"):
        engine.check([UNKNOWN_TEXT])
    [request] = asking()
    fault = engine.prepare(request)
    assert fault.kind is FaultKind.WITHHELD and "gpu.example.org" in fault.reason
