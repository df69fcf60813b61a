"""What refusals cost, and how near several servers of one model come to what they can do together.

Servers on loopback have as many places as they may have connections; a reply takes lognormal seconds (median
1, sigma 0.7, at most 6) drawn from a hash of its question, times the slowness of the server. The ideal is
list scheduling: each question begins as soon as one of the places is free, in the order in which they are
asked. Of a server that dies, what it has begun is asked again elsewhere, in the ideal as well.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from common import Row, environment, fresh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLACES, N = 64, 2560
#: How many times as long as the fastest each of eight servers takes, with eight places each.
SLOWNESS, EACH = (1.0, 1.0, 1.25, 1.5, 1.5, 2.0, 2.5, 3.0), 8
#: The server that dies, and at which of its requests.
DYING, AT = 2, 60
SHARE = 0.05


def run(quick: bool) -> Iterator[Row]:
    n, name = (N // 4 if quick else N), f"endpoints: {N // 4 if quick else N:,} requests, {PLACES} places"
    for what, wish in (("", ""), (" that ask for a second", "1")):
        with ExitStack() as opened:
            urls = [opened.enter_context(_Server(share=SHARE, wish=wish)).url]
            found = fresh("endpoints", "asked", urls=urls, connections=PLACES, n=n)
        ratio = found["span"] / _ideal([1.0], PLACES, n)
        yield Row(
            f"{name}, {SHARE:.0%} of 429{what}, over the ideal without",
            f"{ratio:.3f} times ({found['span']:.1f} s, {found['cpu']:.1f} s of processor time)",
            "at most 1.1",
            ratio <= 1.1 and found["answers"] == n,
        )
    with ExitStack() as opened:
        servers = [
            opened.enter_context(_Server(slow=slow, dies=AT if i == DYING else 0))
            for i, slow in enumerate(SLOWNESS)
        ]
        found = fresh("endpoints", "asked", urls=[one.url for one in servers], connections=EACH, n=n)
    died = found["died"]
    ratio = found["span"] / _ideal(SLOWNESS, EACH, n, {DYING: died})
    yield Row(
        f"endpoints: {n:,} requests, eight servers of unequal speed, one dies ({died:.1f} s), over the ideal",
        f"{ratio:.3f} times ({found['span']:.1f} s, {found['cpu']:.1f} s of processor time)",
        "at most 1.05",
        ratio <= 1.05 and found["answers"] == n,
    )


def _question(i: int) -> str:
    return f"Is it? {i}"


def _seconds(text: str) -> float:
    rng = random.Random(sha256(text.encode()).digest())
    return min(6.0, math.exp(rng.gauss(0, 0.7)))


def _ideal(slowness: Sequence[float], places: int, n: int, deaths: dict[int, float] | None = None) -> float:
    """Seconds of list scheduling over the places of all servers."""
    free = [(0.0, i) for i in range(len(slowness)) for _ in range(places)]
    heapq.heapify(free)
    left, ends = [_seconds(_question(i)) for i in reversed(range(n))], [0.0]
    while left:
        moment, i = heapq.heappop(free)
        dies = (deaths or {}).get(i, math.inf)
        if moment >= dies:
            continue
        seconds = left.pop()
        if (end := moment + seconds * slowness[i]) > dies:
            left.append(seconds)  # it is asked again, by another; this place is no more
            continue
        ends.append(end)
        heapq.heappush(free, (end, i))
    return max(ends)


# ---------------------------------------------------------------------- the client, in a fresh process


def asked(urls: list[str], connections: int, n: int) -> dict[str, Any]:
    """Ask all questions; seconds from the first to the last answer, and when a server was found dead."""
    from lm_eval.models.openai_completions import LocalChatCompletion
    from stream_vllm import Ready

    from medtasks_ext.engines import Answer, Request
    from medtasks_ext.engines.api import ApiEngine

    lm = LocalChatCompletion(
        model="m", base_url=urls[0], num_concurrent=connections, max_retries=6, timeout=60
    )
    answers, died = 0, 0.0

    def requests() -> Iterator[Request]:
        for i in range(n):
            prompt = [{"role": "user", "content": _question(i)}]
            yield Request(f"k{i}", "t", f"d{i}", prompt, {"max_gen_toks": 8})

    def done(request: Request, outcome: Any) -> None:
        nonlocal answers
        answers += isinstance(outcome, Answer)

    def say(line: str) -> None:
        nonlocal died
        died = died or time.perf_counter() - began

    engine = ApiEngine(lm, replicas=urls[1:], say=say)
    feed = Ready([engine.prepare(request) for request in requests()])
    began, cpu = time.perf_counter(), time.process_time()
    engine.run(feed, done)
    span = time.perf_counter() - began
    return {"span": span, "cpu": time.process_time() - cpu, "answers": answers, "died": died}


# ---------------------------------------------------------------------- a server, a process of its own


class _Server:
    def __init__(self, share: float = 0.0, wish: str = "", slow: float = 1.0, dies: int = 0) -> None:
        self._given = json.dumps({"share": share, "wish": wish, "slow": slow, "dies": dies})

    def __enter__(self) -> _Server:
        command = [sys.executable, __file__, self._given]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1/chat/completions"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


async def _serve(share: float, wish: str, slow: float, dies: int) -> None:
    import os

    from aiohttp import web

    n, chance = 0, random.Random(0)

    async def answer(request: web.Request) -> web.Response:
        nonlocal n
        n += 1
        if n == dies:
            os._exit(0)
        text = (await request.json())["messages"][-1]["content"]
        if chance.random() < share:
            return web.json_response({}, status=429, headers={"Retry-After": wish} if wish else {})
        await asyncio.sleep(_seconds(text) * slow)
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": "yes"}}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return web.json_response({"id": str(n), "model": "m", "choices": [choice], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=512).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(**json.loads(sys.argv[1])))
