"""An engine that asks servers over HTTP: which gets the next request, and how many each has at a time.

One that refuses a request (429, 503) has it wait as long as it asks (`Retry-After`); of many refusals it has
its connections halved, and each round trip adds one again. One that breaks connections is tried again after
1, 2, 4, … 60 s, and its requests go to the others at once.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

from medtasks_ext.egress import Egress, is_loopback
from medtasks_ext.engines import (
    WAIT_SECONDS,
    Answer,
    Done,
    Engine,
    Fault,
    FaultKind,
    Feed,
    Outcome,
    Request,
    together,
)
from medtasks_ext.engines.http import Client
from medtasks_ext.engines.replies import Reader, Server
from medtasks_ext.privacy import shows_text, what_happened

#: Full jitter: after try n a pause drawn from 0 to FIRST_PAUSE x 2^n seconds, at most LONGEST_PAUSE.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Share of refusals in a round trip from which on connections are halved, and replies that make a round trip
#: at least: fewer would show such a share by chance.
MANY, LEAST = 0.25, 32
#: Seconds that a server rests after its connections have failed; doubled each time, at most LONGEST_PAUSE.
FIRST_REST = 1.0
#: Seconds of a server's wish to wait from which on the user is told.
TOLD_FROM = 5.0
#: Statuses by which a server says that it has too much to do.
_REFUSALS = frozenset({429, 503, 529})


class Endpoint:
    """One server: how many requests it has, how many it may have, and whether it is well."""

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self.client, self._now = client, now
        self.under_way, self.allowed = 0, float(client.server.connections)
        self.failures = 0  # of connections, since its last answer
        self._refused = 0.0  # share of the last replies, the latest of which count most
        self._rests_until = -math.inf

    def takes(self, *, well: bool) -> bool:
        """`well`: whether one of several is; where none is, all are asked as a single one would be.

        An ill one is asked by one request at a time, which looks whether it is back.
        """
        if well and self.failures:
            return not self.under_way and self._rests_until <= self._now()
        return self.under_way < int(self.allowed)

    def answered(self) -> None:
        self.failures = 0
        self._refused -= self._refused / max(LEAST, self.allowed)
        self.allowed = min(self.client.server.connections, self.allowed + 1 / self.allowed)

    def failed(self, fault: Fault) -> None:
        if fault.kind is FaultKind.UNREACHABLE:
            if not self.failures or self._rests_until <= self._now():  # others that broke at once say no more
                rest = min(LONGEST_PAUSE, FIRST_REST * 2.0 ** min(self.failures, 64))
                self._rests_until, self.failures = self._now() + rest, self.failures + 1
        elif fault.status in _REFUSALS:
            self._refused += (1 - self._refused) / max(LEAST, self.allowed)
            if self._refused >= MANY:
                self.allowed, self._refused = max(1.0, self.allowed / 2), 0.0


def may_quote(request: Request) -> bool:
    """Whether the fault of a request may quote the server, which may quote the row."""
    return request.text.is_open or shows_text()


class ServerEngine(Engine):
    """Asks servers of one model for completions, each as many at a time as it has connections.

    A fault that no other request would escape (the key, the account, the model's name) ends the run; `ended`
    holds it. A request that waits for another try holds no connection.

    `max_retries`: of one request, after its first try.
    """

    now: Callable[[], float] = staticmethod(time.monotonic)
    tokenises: bool = False  # whether a thread makes requests ready, since the loop would stand still

    def __init__(
        self,
        servers: Sequence[Server],
        max_retries: int,
        read: Reader,
        *,
        say: Callable[[str], None] = lambda line: None,
        egress: Egress | None = None,
    ) -> None:
        self._servers, self._max_retries, self._read, self._say = servers, max_retries, read, say
        self._answers, self._told_until = 0, -math.inf  # of all servers; when a wait is said again
        self.window = sum(one.connections for one in servers)
        self.addresses = [one.url for one in servers]
        self.egress: Egress = egress or Egress.of()
        self.local = all(is_loopback(one.url) for one in servers)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looks = False  # whether something waits for the feed
        self.endpoints: list[Endpoint] = []

    @abstractmethod
    def body(self, request: Request) -> Any: ...

    async def send(self, client: Client, request: Request, body: Any) -> Outcome:
        return await client.ask(body, self._read, quote=may_quote(request), text=request.text)

    def client(self, server: Server) -> Client:
        return Client(server, self.egress)

    async def pause(self, seconds: float) -> None:
        """Wait, unless nothing is sent again."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    def may_pass(self, fault: Fault) -> bool:
        """Whether a request that has failed so is sent again."""
        return fault.kind.is_transient and fault.tries <= self._max_retries

    def run(self, feed: Feed, done: Done) -> None:
        asyncio.run(self._ask(feed, done))

    def wake(self) -> None:
        if self._looks:
            self._looks = False
            self._call(self._changed.set)

    def stop(self) -> None:
        """Send nothing again: a request that waits for another try ends with the fault of the last."""
        self._call(self._stop)

    def _call(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the run has just ended
            if self._loop:
                self._loop.call_soon_threadsafe(function)

    def give_up(self, fault: Fault) -> None:
        """Take nothing more, and send nothing again, for a fault that others would not escape."""
        self.ended = self.ended or fault
        self._stop()

    def _stop(self) -> None:
        self._stopped.set()
        self._changed.set()

    def _tick(self) -> None:
        """It is time to look again: at the feed, and at servers that have rested."""
        self._changed.set()
        asyncio.get_running_loop().call_later(WAIT_SECONDS, self._tick)

    async def _ask(self, feed: Feed, done: Done) -> None:
        self.ended, self._stopped, self._loop = None, asyncio.Event(), asyncio.get_running_loop()
        self._changed, self._new, self._further = asyncio.Event(), asyncio.Lock(), asyncio.Lock()
        self._tick()
        async with AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(self.client(one)) for one in self._servers]
            self.endpoints = [Endpoint(client, self.now) for client in clients]
            # as many as have a connection may wait for another try, and some more
            await together(self._work(feed, done) for _ in range(2 * self.window + 8))

    async def _work(self, feed: Feed, done: Done) -> None:
        while taken := (not self.tokenises and await self._taken(feed)) or await self._next(feed):
            outcome = await self._outcome(*taken)
            if isinstance(outcome, Fault) and outcome.kind.ends_all:
                self.give_up(outcome)
            done(taken[0], outcome)

    async def _taken(self, feed: Feed) -> tuple[Request, Endpoint] | None:
        """A request and its place, if there is one now; a further try comes before requests that are new."""
        if self.ended or self._further.locked() or not (endpoint := self._free()):
            return None
        endpoint.under_way += 1
        request = None if self.tokenises else feed.take()
        if request is None:
            self._looks = True  # what came since the first look wakes nobody
            request = await asyncio.to_thread(feed.take) if self.tokenises else feed.take()
        if request is None:
            endpoint.under_way -= 1
            return None
        return request, endpoint

    async def _next(self, feed: Feed) -> tuple[Request, Endpoint] | None:
        """The same, as soon as there is one; None if nothing is asked any more. One worker waits for it."""
        self._changed.set()  # what was asked before may have left a place
        async with self._new:
            while not (self.ended or feed.over):
                self._changed.clear()
                if taken := await self._taken(feed):
                    return taken
                await self._changed.wait()
        return None

    async def _outcome(self, request: Request, endpoint: Endpoint) -> Outcome:
        tries = maybe_paid = spared = 0
        answers = self._answers  # to others, when it was asked last
        try:
            body = self.body(request)
        except Exception as error:
            endpoint.under_way -= 1
            return Fault(FaultKind.ENGINE, what_happened(error), tries=0)
        while True:
            try:
                got = await self.send(endpoint.client, request, body)
            except Exception as error:
                got = Fault(FaultKind.ENGINE, what_happened(error), maybe_paid=1)
            finally:
                endpoint.under_way -= 1
            if isinstance(got, Answer):
                self._answers += 1
                if endpoint.failures and len(self.endpoints) > 1:
                    self._say(f"{endpoint.client.server.shown} answers again")
                endpoint.answered()
                return got
            was_ill = endpoint.failures > 0
            endpoint.failed(got)
            if got.after >= TOLD_FROM and self.now() >= self._told_until:
                self._told_until = self.now() + got.after
                shown = endpoint.client.server.shown
                self._say(f"{shown} asks to wait (HTTP {got.status}): {got.after:.0f} s")
            tries, maybe_paid = tries + got.tries, maybe_paid + got.maybe_paid
            fault = replace(got, tries=tries, maybe_paid=maybe_paid, after=0.0)
            if got.status in _REFUSALS and self._answers > answers:
                spared += got.tries  # the server has too much to do, and works
            answers = self._answers
            elsewhere = got.kind is FaultKind.UNREACHABLE and self._well()
            if elsewhere and not was_ill:
                self._say(f"{got.reason}; the other servers go on without it until it answers")
            if not self.may_pass(replace(fault, tries=tries - spared)):
                return fault
            self._changed.set()
            if not elsewhere:
                longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 64))
                await self.pause(got.after + random.uniform(0, longest))
            while not self._stopped.is_set() and (may := self.again(request, got)) is None:
                await self.pause(WAIT_SECONDS)
            if self._stopped.is_set() or not may or (found := await self._place()) is None:
                return fault
            endpoint = found

    def _well(self) -> bool:
        """Whether one of several servers is well."""
        return len(self.endpoints) > 1 and not all(one.failures for one in self.endpoints)

    def _free(self) -> Endpoint | None:
        """The server for the next request: of those with a place, the one that is least full."""
        if len(self.endpoints) == 1:  # each request asks
            return self.endpoints[0] if self.endpoints[0].takes(well=False) else None
        well = self._well()
        found = [one for one in self.endpoints if one.takes(well=well)]
        return min(found, key=lambda one: one.under_way / one.allowed, default=None)

    async def _place(self) -> Endpoint | None:
        """A place for a further try; None once nothing is sent again."""
        async with self._further:
            while not self._stopped.is_set():
                if found := self._free():
                    found.under_way += 1
                    return found
                await self._wait()
        return None

    async def _wait(self) -> None:
        """Until something has changed, or it is time to look again."""
        self._changed.clear()
        await self._changed.wait()
