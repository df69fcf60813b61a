"""An engine that asks a server over HTTP, as many requests at a time as it may have under way."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from medtasks_ext.egress import Egress, is_loopback
from medtasks_ext.engines.completion import Reader
from medtasks_ext.engines.engine import WAIT_SECONDS, Done, Engine, Feed
from medtasks_ext.engines.http import Client, Clock, Failed, Pace, Retry, Server
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.privacy import shows_text, what_happened


class ServerEngine(Engine):
    """Asks a server for completions, as many at a time as it has connections.

    A fault that no other request would escape (the key, the account, the model's name) ends the run: `run`
    returns, what it has not taken from the feed has no outcome, and `ended` holds the fault.

    Args:
        read: makes an answer of a reply.
        pace: of the requests, retries included.
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
    ) -> None:
        self._server, self._retry, self._read, self._pace = server, retry, read, pace or Pace(None)
        self._quotes, self._say, self._clock = quotes, say, clock
        self.window = server.connections
        self.address, self.egress = server.url, egress or Egress.of()
        self.local = is_loopback(self.address)
        self.ended: Fault | None = None  # why the last run ended before its feed did; None if it did not
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None

    @abstractmethod
    def body(self, request: Request) -> Any:
        """What is sent for a request."""

    async def send(self, client: Client, request: Request, body: Any) -> Answer | Failed:
        """Try once."""
        return await client.ask(body, self._read, quote=self._quotes(request), text=request.text)

    def client(self) -> Client:
        """What sends the requests."""
        return Client(self._server, self._retry, say=self._say, clock=self._clock, egress=self.egress)

    def run(self, feed: Feed, done: Done) -> None:
        """Ask until the feed is over, or a fault ends it all.

        Raises:
            MedtasksError: certificates cannot be read, or the key holds a line break.
        """
        asyncio.run(self.ask(feed, done))

    def stop(self) -> None:
        """Send nothing again: a request that waits for another try ends with the fault of the last.

        Requests under way come home, and new ones are taken until the feed is over. May be called from any
        thread and from a handler of signals.
        """
        if self._client and self._loop:
            with suppress(RuntimeError):  # the run has just ended
                self._loop.call_soon_threadsafe(self._client.stop)

    def give_up(self, fault: Fault) -> None:
        """Take nothing more, and send nothing again, for a fault that others would not escape."""
        self.ended = self.ended or fault
        assert self._client is not None
        self._client.stop()

    async def ask(self, feed: Feed, done: Done) -> None:
        """Ask until the feed is over, or a fault ends it all."""
        self.ended = None
        taking = asyncio.Lock()
        async with self.client() as client:
            self._loop, self._client = asyncio.get_running_loop(), client
            workers = [
                asyncio.ensure_future(self._work(client, feed, taking, done)) for _ in range(self.window)
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, client: Client, feed: Feed, taking: asyncio.Lock, done: Done) -> None:
        """One connection: a request after the other."""
        while request := await self._next(client, feed, taking):
            outcome = await self._outcome(client, request)
            if isinstance(outcome, Fault) and outcome.kind.ends_all:
                self.give_up(outcome)
            done(request, outcome)

    async def _next(self, client: Client, feed: Feed, taking: asyncio.Lock) -> Request | None:
        """The next request, as soon as the server may be asked; None if there is none any more.

        One worker looks at a time. A thread waits for the feed, which cannot wake this loop.
        """
        async with taking:
            while not (self.ended or feed.over):
                if client.held:
                    await client.turn(at_most=WAIT_SECONDS)
                elif left := self._pace.left:
                    await client.pause(min(left, WAIT_SECONDS))
                elif request := feed.take():
                    self._pace.wait()
                    return request
                else:
                    await asyncio.to_thread(feed.wait, WAIT_SECONDS)
        return None

    async def _outcome(self, client: Client, request: Request) -> Outcome:
        sent = 0
        try:
            body = self.body(request)
            sent = 1
            return await client.repeated(
                lambda: self.send(client, request, body),
                lambda fault: self.again(request, fault),
                self._pace,
            )
        except Exception as error:
            return Fault(FaultKind.ENGINE, what_happened(error), tries=sent, maybe_paid=sent)
