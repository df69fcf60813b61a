"""Whatever a server says of its tokens, its bill stays within the limit.

Servers are generated: each request is worked on or not, counted or not, and ends as chance has it. They
stand in this process, so that thousands can be tried; `tests/judge/test_money.py` asks some over sockets.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from medtasks_ext.engines import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.engines.http import Client
from medtasks_ext.engines.replies import Server, chat_answer
from medtasks_ext.engines.servers import ServerEngine
from medtasks_ext.results.prices import Price
from medtasks_ext.run.asker import Asker, Job
from medtasks_ext.run.charge import Budget, Charge

PRICE = Price(10.0, 100.0)
#: A store that knows no answer.
NOTHING: Any = ()
#: What becomes of a request: `True` where the model works, which is charged.
ENDS = {
    "answer": True, "empty": True, "malformed": True, "error": True, "gateway": True, "broken": True,
    "late": True, "busy": False, "refused": False, "unreachable": False,
}  # fmt: skip
COUNTS = ("right", "missing", "zero", "negative", "text", "low", "no prompt", "null")


class GeneratedServer:
    """Answers as chance has it, up to so many times beyond the limit of tokens; knows what it charged."""

    def __init__(self, seed: int, beyond: int = 1) -> None:
        self.chance, self.beyond, self.bill, self.dearest = random.Random(seed), beyond, 0.0, 0.0
        self.ends = self.chance.sample(sorted(ENDS), self.chance.randint(1, len(ENDS)))
        self.counts = self.chance.sample(COUNTS, self.chance.randint(1, len(COUNTS)))
        if beyond > 1:  # without a count nobody can see it
            self.ends, self.counts = ["answer"], ["right"]

    def reply(self, body: dict[str, Any]) -> Outcome:
        end, n_bytes = self.chance.choice(self.ends), len(body["text"].encode())
        prompt = self.chance.randint(max(1, n_bytes // 6), n_bytes + 8)
        completion = self.chance.randint(1, body["limit"]) * self.beyond
        if ENDS[end]:
            cost = PRICE.of(prompt, completion)
            self.bill, self.dearest = self.bill + cost, max(self.dearest, cost)
        faults = {
            "error": Fault(FaultKind.BUSY, "HTTP 500", status=500, maybe_paid=1),
            "gateway": Fault(FaultKind.BUSY, "HTTP 504", status=504, maybe_paid=1),
            "broken": Fault(FaultKind.UNREACHABLE, "the connection broke", maybe_paid=1),
            "late": Fault(FaultKind.TIMEOUT, "no reply", maybe_paid=1),
            "busy": Fault(FaultKind.BUSY, "HTTP 503", status=503),
            "refused": Fault(FaultKind.REFUSED, "HTTP 422", status=422),
            "unreachable": Fault(FaultKind.UNREACHABLE, "no server"),
        }
        if end in faults:
            return faults[end]
        written = "" if end == "empty" else "word " * self.chance.randint(1, max(1, min(completion, 60)))
        message = None if end == "malformed" else {"content": written}
        pairs: dict[str, Any] = {
            "right": (prompt, completion), "zero": (0, 0), "negative": (-prompt, -completion),
            "text": (str(prompt), "many"), "low": (n_bytes // 40, 0), "no prompt": (0, completion),
            "null": (None, None), "missing": (),
        }  # fmt: skip
        said = pairs[self.chance.choice(self.counts)]
        usage = {"usage": {"prompt_tokens": said[0], "completion_tokens": said[1]}} if said else {}
        return chat_answer({"choices": [{"message": message, "finish_reason": "stop"}], **usage})


class InProcess(Client):
    """A client whose server stands in this process; nothing waits."""

    def __init__(self, server: Server, script: GeneratedServer) -> None:
        super().__init__(server)
        self.script = script

    async def __aenter__(self) -> InProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ask(self, body: Any, *_: Any, **__: Any) -> Outcome:
        return self.script.reply(body)


class GeneratedEngine(ServerEngine):
    def __init__(self, script: GeneratedServer, window: int, max_retries: int) -> None:
        super().__init__([Server("http://127.0.0.1:9/", connections=window)], max_retries, chat_answer)
        self.script = script

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def client(self, server: Server) -> Client:
        return InProcess(server, self.script)

    def body(self, request: Request) -> Any:
        return {"text": request.prompt, "limit": request.settings["max_gen_toks"]}


class Questions(Asker):
    """Asks texts, and pays for the answers as a run does."""

    def __init__(self, engine: ServerEngine, n: int, charge: Charge, budget: Budget) -> None:
        super().__init__(engine, NOTHING, budget, charge)
        self.n, self.charge, self.outcomes = n, charge, list[Outcome]()

    def sending(self, request: Request, intent: float | None) -> None:
        """Nothing is put on record."""

    def keep(self, request: Request, outcome: Outcome, settles: float | None) -> float:
        self.outcomes.append(outcome)
        if len(self.outcomes) == self.n:
            self.stop()
        return self.charge.of(request, outcome) if isinstance(outcome, Answer) else 0.0


def ask(seed: int, beyond: int = 1) -> tuple[GeneratedServer, Budget, int, list[Outcome], int]:
    """One generated server, asked under a generated limit."""
    chance = random.Random(-seed)
    server, window = GeneratedServer(seed, beyond), chance.randint(1, 4)
    requests = [
        Request(f"k{n}", "t", str(n), "a patient " * chance.randint(1, 30), {"max_gen_toks": limit})
        for n, limit in enumerate(chance.choices(range(1, 201), k=chance.randint(1, 12)))
    ]
    charge = Charge(PRICE)
    every = sum(map(charge.most, requests))
    budget = Budget(every * chance.uniform(0, 1.3))
    engine = GeneratedEngine(server, window, chance.randint(0, 3))
    asker = Questions(engine, len(requests), charge, budget)
    asker.add(Job(), requests)
    asker.serve()
    return server, budget, window, asker.outcomes, len(requests)


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(1000, 11_000), marks=pytest.mark.nightly)])
def test_no_generated_server_charges_more_than_the_limit(seeds):
    stopped = 0
    for seed in seeds:
        server, budget, _, outcomes, n = ask(seed)
        assert budget.limit is not None
        assert server.bill <= budget.limit + 1e-9, seed
        assert server.bill <= budget.spent + budget.unsure + 1e-9, seed
        assert len(outcomes) == n or budget.exhausted, seed
        stopped += budget.exhausted
    assert 0 < stopped < len(seeds)  # both ends were tried


def test_a_server_that_keeps_no_limit_of_tokens_is_left_with_what_was_under_way():
    stopped = 0
    for seed in range(60):
        server, budget, window, outcomes, n = ask(seed, beyond=20)
        assert budget.limit is not None
        assert server.bill <= budget.limit + window * server.dearest
        if server.bill > budget.limit:
            stopped += 1
            assert budget.exhausted or len(outcomes) == n
            assert budget.spent == pytest.approx(server.bill)
    assert stopped
