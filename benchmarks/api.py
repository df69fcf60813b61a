"""Requests per second of processor time that the engine for API models sends, to a server on loopback.

Requests per second of processor time that the engine for API models sends over 256 connections, to a server
on another core of this machine that answers at once; beside it aiohttp alone with like bodies. Prompts of
1,400 characters, answers of 700.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from common import Row, environment, fresh, peak_gigabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

N, CONNECTIONS, TARGET = 20_000, 256, 1500
PROMPT, ANSWER = "Is this report normal? " * 60, "No, since the heart is enlarged. " * 20


def run(quick: bool) -> Iterator[Row]:
    n = N // 10 if quick else N
    with _server() as url:
        plain = fresh("api", "aiohttp_alone", url=url, n=n)
        found = fresh("api", "asked", url=url, n=n)
    what = f"API engine: {n:,} requests over {CONNECTIONS} connections"
    yield Row(f"{what}, aiohttp alone", f"{plain:,.0f} a second of a core")
    rate = found["rate"]
    yield Row(what, f"{rate:,.0f} a second of a core", f"at least {TARGET:,}", rate >= TARGET)
    yield Row("API engine: the same, memory", f"{found['gigabytes'] * 1000:.0f} MB", "", None)


def asked(url: str, n: int) -> dict[str, float]:
    """Requests per second of this process's own time: what a core does when nothing else runs on it."""
    from lm_eval.models.openai_completions import LocalChatCompletion

    from medtasks_ext.engines import Request
    from medtasks_ext.engines.api import ApiEngine

    _one_core()
    turns = [{"role": "system", "content": "You are a radiologist."}, {"role": "user", "content": PROMPT}]
    settings = {"until": ["\n\n"], "max_gen_toks": 512, "temperature": 0}
    requests = [Request(f"{i}", "t", f"{i}", turns, settings) for i in range(n)]
    engine = ApiEngine(LocalChatCompletion(base_url=url, model="m", num_concurrent=CONNECTIONS))
    outcomes = []
    began = time.process_time()
    engine.run(_Feed(requests), lambda request, outcome: outcomes.append(outcome))
    seconds = time.process_time() - began
    assert len(outcomes) == n and all(outcome.text == ANSWER for outcome in outcomes)
    return {"rate": n / seconds, "gigabytes": peak_gigabytes()}


class _Feed:
    def __init__(self, requests: list) -> None:
        self._requests = requests[::-1]

    @property
    def over(self) -> bool:
        return not self._requests

    def take(self):
        return self._requests.pop() if self._requests else None

    def wait(self, seconds: float) -> None:
        raise AssertionError("all requests are ready")


def aiohttp_alone(url: str, n: int) -> float:
    """The same for the library with like bodies, and nothing around it."""
    import aiohttp

    _one_core()
    body = {"messages": [{"role": "user", "content": PROMPT}], "model": "m", "max_tokens": 512}

    async def work() -> None:
        left = iter(range(n))
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one() -> None:
                for _ in left:
                    async with session.post(url, json=body) as response:
                        json.loads(await response.read())

            await asyncio.gather(*(one() for _ in range(CONNECTIONS)))

    began = time.process_time()
    asyncio.run(work())
    return n / (time.process_time() - began)


def _one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# ---------------------------------------------------------------------- the server, a process of its own


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).resolve())]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


_USAGE = {"prompt_tokens": 400, "completion_tokens": 140}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
_BODY = json.dumps({"id": "1", "model": "m", "choices": [_CHOICE], "usage": _USAGE}).encode()
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_REPLY = _HEAD % len(_BODY) + _BODY


class _Answers(asyncio.Protocol):
    """Answers whatever comes with the same completion, without reading it."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport, self.got = transport, b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if end and len(body) >= length:
            self.got = body[length:]
            self.transport.write(_REPLY)


async def serve() -> None:
    """Print the address, then answer."""
    server = await asyncio.get_running_loop().create_server(_Answers, "127.0.0.1", 0, backlog=CONNECTIONS)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    asyncio.run(serve())
