"""The one interface of all engines."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeAlias

from medtasks_ext.egress import Egress, Text
from medtasks_ext.engines.records import Fault, Outcome, Request

#: How long a thread waits for a feed before it looks whether the stream has ended.
WAIT_SECONDS = 0.2
#: Called with each request and its outcome, in any thread.
Done: TypeAlias = Callable[["Request", "Outcome"], None]

Again: TypeAlias = Callable[["Request", "Fault"], bool | None]


class Feed(Protocol):
    """Requests of all tasks, in order; built ahead by a thread of its own."""

    @property
    def over(self) -> bool:
        """Whether nothing will come any more: all are taken, or the user has interrupted."""

    @property
    def dry(self) -> bool:
        """Whether `take` found nothing, and more comes only when it is waited for.

        An engine that answers in batches answers what it has before it waits.
        """

    def take(self) -> Request | None:
        """The next request; None if none is ready now, or the feed is over."""

    def wait(self, seconds: float) -> None:
        """Wait until a request is ready or the feed is over, at most so long."""


class Engine(ABC):
    window: int = 64  # requests that the engine has under way at most; the feed holds as many ready
    #: whether the model runs on this machine, so that requests that are given up cost nothing
    local: bool = True
    keeps_prefixes: bool = False  # whether it keeps the beginnings of prompts that it has read
    sends: bool = True  # False for one that only notes what is asked, which costs nothing yet
    address: str = ""  # of the server that gets the prompts; empty where no server does
    egress: Egress | None = None  # which servers may receive which text; None for the environment's policy
    ended: Fault | None = None  # why the last run ended before its feed did; None if it did not
    #: asked before a request is sent once more after a fault: whether it may be, None if not now
    again: Again = staticmethod(lambda request, fault: True)
    #: called with a request in place of `Done` where its outcome comes another way, and is not waited for
    later: Callable[[Request], None] = staticmethod(lambda request: None)

    def check(self, texts: Iterable[Text]) -> None:
        if self.address:
            (self.egress or Egress.of()).check(self.address, texts)

    def prepare(self, request: Request) -> Request | Fault:
        """Make a request ready to be sent, in the thread that builds requests: tokens, for example."""
        return request

    @abstractmethod
    def run(self, feed: Feed, done: Done) -> None:
        """Take requests as room frees up until the feed is over, and hand on each outcome as it comes.

        Returns when every request that was taken has its outcome. A request that fails is a fault, not an
        exception.
        """

    def stop(self) -> None:  # noqa: B027  most try nothing again
        """May be called from a handler of signals; requests under way come home."""

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Free what the engine holds."""


class Tasks:
    """Work under way in a loop: at the end of its block it is waited for, and the first error ends it all.

    Args:
        changed: set when some has ended.
    """

    def __init__(self, changed: asyncio.Event) -> None:
        self._all, self._changed = set[asyncio.Task[None]](), changed
        self.error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._all.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._all.discard(task)
        if not task.cancelled():
            self.error = self.error or task.exception()
        self._changed.set()

    async def wait(self) -> None:
        """Until something has changed."""
        self._changed.clear()
        await self._changed.wait()

    async def __aenter__(self) -> Tasks:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        try:
            while self._all and not (kind or self.error):
                await self.wait()
        finally:
            left = list(self._all)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        if self.error and not kind:
            raise self.error
