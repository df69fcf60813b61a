"""An engine that asks servers over HTTP: which gets the next request, and how many each has at a time.

A server that does not answer when the run begins stops it: an address may be mistyped. One that refuses a
request (429, 503) has that request wait, for as long as it asks (`Retry-After`, at most 60 s). One that
refuses a quarter of the requests of a round trip has its connections halved; each further round trip without
that adds one. Halved at every refusal, one that refuses one request in twenty at random would be left with
about five. A refusal costs a request none of its tries where another has been answered since its last one.

One that breaks connections is tried again after 1, 2, 4, … 60 s, and its requests go to the others at once.
One that refuses the key, or does not know the model, ends the run. Which server answered changes no
condition of a score.
"""

from __future__ import annotations

import asyncio
import math
import random
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import islice
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
from medtasks_ext.engines.http import Client, Clock
from medtasks_ext.engines.replies import Reader, Server
from medtasks_ext.privacy import shows_text, what_happened

#: Requests that may wait for another try, beside those that have a connection; more where there are more
#: connections.
LEAST_WAITING = 8
#: Full jitter: after try n a pause drawn from 0 to FIRST_PAUSE x 2^n seconds, at most LONGEST_PAUSE.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Share of refusals in a round trip from which on connections are halved, and replies that are looked at
#: at least: fewer would show such a share by chance.
MANY, LEAST = 0.25, 32
#: Seconds of a server's wish to wait from which on the user is told.
TOLD_FROM = 5.0
#: Seconds that a server rests after its connections have failed; doubled each time, at most the latter.
FIRST_REST, LONGEST_REST = 1.0, 60.0
#: Statuses by which a server says that it has too much to do.
_REFUSALS = frozenset({429, 503, 529})


class Endpoint:
    """One server: how many requests it has, how many it may have, and whether it is well.

    Attributes:
        under_way: requests that it has now.
        ill: its last connection failed, so that one request at a time looks whether it is back.
    """

    def __init__(self, client: Client, now: Callable[[], float]) -> None:
        self.client, self._now, self.under_way, self.ill = client, now, 0, False
        self._allowed = float(client.server.connections)
        self._replies: deque[bool] = deque(maxlen=max(LEAST, client.server.connections))  # whether it refused
        self._rests_until = -math.inf
        self._failures = 0  # of connections, since its last answer

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    def takes(self, *, well: bool) -> bool:
        """`well`: whether one of several is; where none is, all are asked as a single one would be."""
        if well and self._rests_until > self._now():
            return False
        return self.under_way < (1 if self.ill and well else self.allowed)

    def answered(self) -> bool:
        """Whether it was ill."""
        was_ill, self.ill, self._failures = self.ill, False, 0
        self._rests_until = -math.inf
        self._replies.append(False)
        self._allowed = min(self.client.server.connections, self._allowed + 1 / self._allowed)
        return was_ill

    def failed(self, fault: Fault) -> None:
        if fault.kind is FaultKind.UNREACHABLE:
            rest = min(LONGEST_REST, FIRST_REST * 2.0**self._failures)
            self._rests_until = self._now() + rest
            self.ill, self._failures = True, self._failures + 1
        if fault.status not in _REFUSALS:
            return
        self._replies.append(True)
        trip = list(islice(reversed(self._replies), max(LEAST, self.allowed)))
        if len(trip) >= max(LEAST, self.allowed) and sum(trip) >= MANY * len(trip):
            self._allowed = max(1.0, self._allowed / 2)
            self._replies.clear()


def pause_after(tries: int, after: float | None = None) -> float:
    """Seconds until the next try: what the server asks for, and a random time that keeps requests apart."""
    return (after or 0.0) + random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 64)))


def may_quote(request: Request) -> bool:
    """Whether the fault of a request may quote the server, which may quote the row."""
    return request.text.is_open or shows_text()


class ServerEngine(Engine):
    """Asks servers for completions, each as many at a time as it has connections.

    A fault that no other request would escape (the key, the account, the model's name) ends the run: `run`
    returns, what it has not taken from the feed has no outcome, and `ended` holds the fault. A request that
    waits for another try holds no connection.

    `servers`: of one model. `max_retries`: of one request, after its first try.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        max_retries: int,
        read: Reader,
        *,
        say: Callable[[str], None] = lambda line: None,
        clock: Clock | None = None,
        egress: Egress | None = None,
    ) -> None:
        self._servers, self._max_retries, self._read = servers, max_retries, read
        self._say, self._clock = say, clock or Clock()
        self._answers, self._told_until = 0, -math.inf  # of all servers; when the user is told again
        self.window = sum(one.connections for one in servers)
        self.addresses, self.egress = [one.url for one in servers], egress or Egress.of()
        self.local = all(is_loopback(one.url) for one in servers)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.endpoints: list[Endpoint] = []

    @abstractmethod
    def body(self, request: Request) -> Any: ...

    async def send(self, client: Client, request: Request, body: Any) -> Outcome:
        return await client.ask(body, self._read, quote=may_quote(request), text=request.text)

    def client(self, server: Server) -> Client:
        return Client(server, self.egress)

    async def pause(self, seconds: float) -> None:
        """Wait, unless nothing is sent again."""
        if seconds > 0 and not self._stopped.is_set():
            await self._clock.pause(seconds, self._stopped)

    def may_pass(self, fault: Fault) -> bool:
        """Whether a request that has failed so is sent again."""
        return fault.kind.is_transient and fault.tries <= self._max_retries

    def run(self, feed: Feed, done: Done) -> None:
        asyncio.run(self._ask(feed, done))

    def stop(self) -> None:
        """Send nothing again: a request that waits for another try ends with the fault of the last.

        New ones are taken until the feed is over. May be called from any thread and from a handler of
        signals.
        """
        with suppress(RuntimeError):  # the run has just ended
            if self._loop:
                self._loop.call_soon_threadsafe(self._stop)

    def give_up(self, fault: Fault) -> None:
        """Take nothing more, and send nothing again, for a fault that others would not escape."""
        self.ended = self.ended or fault
        self._stop()

    def _stop(self) -> None:
        """Those that wait for a place get none, pauses end."""
        self._stopped.set()
        self._changed.set()

    async def _ask(self, feed: Feed, done: Done) -> None:
        self.ended, self._stopped, self._loop = None, asyncio.Event(), asyncio.get_running_loop()
        self._changed, self._new, self._further = asyncio.Event(), asyncio.Lock(), asyncio.Lock()
        async with AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(self.client(one)) for one in self._servers]
            self.endpoints = [Endpoint(client, self._clock.now) for client in clients]
            most = self.window + max(self.window, LEAST_WAITING)
            await together(self._work(feed, done) for _ in range(most))

    async def _work(self, feed: Feed, done: Done) -> None:
        """Ask requests, one after the other."""
        while taken := self._taken(feed) or await self._next(feed):
            outcome = await self._outcome(*taken)
            if isinstance(outcome, Fault) and outcome.kind.ends_all:
                self.give_up(outcome)
            done(taken[0], outcome)

    def _taken(self, feed: Feed) -> tuple[Request, Endpoint] | None:
        """A request and its place, if there is one now; a further try comes before requests that are new."""
        if self.ended or self._further.locked() or not (endpoint := self._free()):
            return None
        if (request := feed.take()) is None:
            return None
        endpoint.under_way += 1
        return request, endpoint

    async def _next(self, feed: Feed) -> tuple[Request, Endpoint] | None:
        """The same, as soon as there is one; None if nothing is asked any more.

        One worker waits for it. A thread waits for the feed, which cannot wake this loop.
        """
        self._changed.set()  # what was asked before may have left a place
        async with self._new:
            while not (self.ended or feed.over):
                if taken := self._taken(feed):
                    return taken
                if self._further.locked() or not self._free():
                    await self._wait()
                else:
                    await asyncio.to_thread(feed.wait, WAIT_SECONDS)
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
            client = endpoint.client
            try:
                got = await self.send(client, request, body)
            except Exception as error:
                got = Fault(FaultKind.ENGINE, what_happened(error), maybe_paid=1)
            finally:
                endpoint.under_way -= 1
            if isinstance(got, Answer):
                self._answers += 1
                if endpoint.answered() and len(self.endpoints) > 1:
                    self._say(f"{client.server.shown} answers again")
                return got
            tries, maybe_paid = tries + got.tries, maybe_paid + got.maybe_paid
            fault = replace(got, tries=tries, maybe_paid=maybe_paid, after=None)
            if got.status in _REFUSALS and self._answers > answers:
                spared += got.tries  # the server has too much to do, and works
            answers, elsewhere = self._answers, self._failed(endpoint, got)
            if (wish := got.after or 0.0) >= TOLD_FROM and self._clock.now() >= self._told_until:
                self._told_until = self._clock.now() + wish
                self._say(f"{client.server.shown} asks to wait (HTTP {got.status}): {wish:.0f} s")
            if not self.may_pass(replace(fault, tries=tries - spared)):
                return fault
            self._changed.set()
            if not elsewhere:
                await self.pause(pause_after(tries, got.after))
            while not self._stopped.is_set() and (may := self.again(request, got)) is None:
                await self.pause(WAIT_SECONDS)
            if self._stopped.is_set() or not may or (found := await self._place()) is None:
                return fault
            endpoint = found

    def _failed(self, endpoint: Endpoint, fault: Fault) -> bool:
        """Whether another server can be asked at once."""
        was_ill = endpoint.ill
        endpoint.failed(fault)
        if fault.kind is not FaultKind.UNREACHABLE or all(one.ill for one in self.endpoints):
            return False
        if not was_ill:
            self._say(f"{fault.reason}; the other servers go on without it until it answers")
        return True

    def _free(self) -> Endpoint | None:
        """The server for the next request: of those with a place, the one that is least full."""
        well = len(self.endpoints) > 1 and not all(one.ill for one in self.endpoints)
        found = [one for one in self.endpoints if one.takes(well=well)]
        return min(found, key=lambda one: one.under_way / one.allowed) if found else None

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
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), WAIT_SECONDS)
