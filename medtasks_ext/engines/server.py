"""An engine that asks servers over HTTP, as many requests at a time as they may have under way."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

from medtasks_ext.egress import Egress, Text, is_loopback
from medtasks_ext.engines.completion import Reader
from medtasks_ext.engines.endpoints import Endpoint, Endpoints
from medtasks_ext.engines.engine import WAIT_SECONDS, Done, Engine, Feed
from medtasks_ext.engines.http import Client, Clock, Failed, Pace, Retry, Server
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.privacy import shows_text, what_happened

#: Requests that may wait for another try, beside those that have a connection; more where there are more
#: connections.
LEAST_WAITING = 8


class ServerEngine(Engine):
    """Asks servers for completions, each as many at a time as it has connections.

    A fault that no other request would escape (the key, the account, the model's name) ends the run: `run`
    returns, what it has not taken from the feed has no outcome, and `ended` holds the fault. Of several
    servers one is left out by such a fault, and the others go on. A request that waits for another try holds
    no connection.

    Args:
        quotes: whether the fault of a request may quote the server, which may quote the row.
    """

    def __init__(
        self,
        server: Server,
        retry: Retry,
        read: Reader,
        *,
        pace: Pace | None = None,
        quotes: Callable[[Request], bool] = lambda request: shows_text(),
        say: Callable[[str], None] = lambda line: None,
        clock: Clock | None = None,
        egress: Egress | None = None,
        replicas: Sequence[Server] = (),
    ) -> None:
        self._servers, self._retry, self._read = [server, *replicas], retry, read
        self._pace, self._quotes, self._say, self._clock = pace or Pace(None), quotes, say, clock
        self.window = sum(one.connections for one in self._servers)
        self.address, self.egress = server.url, egress or Egress.of()
        self.local = all(is_loopback(one.url) for one in self._servers)
        self.ended: Fault | None = None  # why the last run ended before its feed did; None if it did not
        self._loop: asyncio.AbstractEventLoop | None = None
        self._endpoints: Endpoints | None = None

    def check(self, texts: Iterable[Text]) -> None:
        held = list(texts)
        for server in self._servers:
            (self.egress or Egress.of()).check(server.url, held)

    @abstractmethod
    def body(self, request: Request) -> Any: ...

    async def send(self, client: Client, request: Request, body: Any) -> Answer | Failed:
        return await client.ask(body, self._read, quote=self._quotes(request), text=request.text)

    def client(self, server: Server) -> Client:
        return Client(server, clock=self._clock, egress=self.egress)

    def run(self, feed: Feed, done: Done) -> None:
        asyncio.run(self.ask(feed, done))

    def stop(self) -> None:
        """Send nothing again: a request that waits for another try ends with the fault of the last.

        New ones are taken until the feed is over. May be called from any thread and from a handler of
        signals.
        """
        if self._endpoints and self._loop:
            with suppress(RuntimeError):  # the run has just ended
                self._loop.call_soon_threadsafe(self._endpoints.stop)

    def give_up(self, fault: Fault) -> None:
        """Take nothing more, and send nothing again, for a fault that others would not escape."""
        self.ended = self.ended or fault
        assert self._endpoints is not None
        self._endpoints.stop()

    async def ask(self, feed: Feed, done: Done) -> None:
        self.ended = None
        async with AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(self.client(one)) for one in self._servers]
            self._loop, self._endpoints = asyncio.get_running_loop(), Endpoints(clients, self._say)
            under_way: set[asyncio.Task[None]] = set()
            errors: list[BaseException] = []

            def ends(task: asyncio.Task[None]) -> None:
                under_way.discard(task)
                if not task.cancelled() and (error := task.exception()):
                    errors.append(error)
                assert self._endpoints is not None
                self._endpoints.wake()

            try:
                while not errors and (taken := await self._next(feed, self._endpoints, under_way, errors)):
                    task = asyncio.ensure_future(self._work(*taken, self._endpoints, done))
                    under_way.add(task)
                    task.add_done_callback(ends)
                while under_way and not errors:
                    await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            finally:
                left = list(under_way)
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)
            if errors:
                raise errors[0]

    async def _next(
        self,
        feed: Feed,
        endpoints: Endpoints,
        under_way: Collection[asyncio.Task[None]],
        errors: Sequence[BaseException],
    ) -> tuple[Request, Endpoint] | None:
        """The next request and its place, as soon as a server may be asked; None if there is none any more.

        A thread waits for the feed, which cannot wake this loop.
        """
        while not (self.ended or feed.over or errors):
            full = endpoints.awaited or len(under_way) >= self.window + max(self.window, LEAST_WAITING)
            if full or not (endpoint := endpoints.free()):
                await endpoints.wait()
            elif left := self._pace.left:
                await endpoint.client.pause(min(left, WAIT_SECONDS))
            elif request := feed.take():
                self._pace.wait()
                return request, endpoints.begin(request, endpoint)
            else:
                await asyncio.to_thread(feed.wait, WAIT_SECONDS)
        return None

    async def _work(self, request: Request, endpoint: Endpoint, endpoints: Endpoints, done: Done) -> None:
        outcome = await self._outcome(request, endpoint, endpoints)
        if isinstance(outcome, Fault) and outcome.kind.ends_all:
            self.give_up(outcome)
        done(request, outcome)

    async def _outcome(self, request: Request, endpoint: Endpoint, endpoints: Endpoints) -> Outcome:
        tries = maybe_paid = 0
        try:
            body = self.body(request)
        except Exception as error:
            endpoints.leave(endpoint)
            return Fault(FaultKind.ENGINE, what_happened(error), tries=0)
        while True:
            try:
                got = await self.send(endpoint.client, request, body)
            except Exception as error:
                tries, maybe_paid = tries + 1, maybe_paid + 1
                return Fault(FaultKind.ENGINE, what_happened(error), tries=tries, maybe_paid=maybe_paid)
            finally:
                endpoints.leave(endpoint)
            if isinstance(got, Answer):
                endpoints.answered(endpoint, got)
                return got
            tries += got.fault.tries
            maybe_paid += got.fault.maybe_paid
            fault = replace(got.fault, tries=tries, maybe_paid=maybe_paid)
            elsewhere = endpoints.failed(endpoint, got)
            if not (self._retry.again(fault, tries) or (elsewhere and fault.kind.ends_all)):
                return fault
            client = endpoint.client
            if not elsewhere:
                await client.pause(self._retry.pause(tries, got.after))
            await client.pause(self._pace.wait())
            while not endpoints.stopped and (may := self.again(request, got.fault)) is None:
                await client.pause(WAIT_SECONDS)
            if endpoints.stopped or not may or (found := await endpoints.place()) is None:
                return fault
            endpoint = found
