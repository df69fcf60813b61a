"""The one interface of all engines, and what they take from."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from medtasks_ext.egress import Egress, Text
from medtasks_ext.engines import Fault, Outcome, Request

#: Seconds that a thread waits for a feed before it looks whether that is over.
WAIT_SECONDS = 0.2


class Feed(Protocol):
    """Requests that are ready, as `run.asker.Asker` has them."""

    @property
    def over(self) -> bool: ...
    @property
    def dry(self) -> bool: ...
    def take(self) -> Request | None: ...
    def wait(self, seconds: float) -> None: ...


#: Called with each request and its outcome, in any thread.
Done: TypeAlias = Callable[[Request, Outcome], None]
Again: TypeAlias = Callable[[Request, Fault], bool | None]


class Engine(ABC):
    window: int = 64  # requests that the engine has under way at most; the feed holds as many ready
    #: whether the model runs on this machine, so that requests that are given up cost nothing
    local: bool = True
    keeps_prefixes: bool = False  # whether it keeps the beginnings of prompts that it has read
    sends: bool = True  # False for one that only notes what is asked, which costs nothing yet
    file: str = ""  # in which it notes that
    addresses: Sequence[str] = ()  # of the servers that get the prompts
    egress: Egress | None = None  # which servers may receive which text; None for the environment's policy
    ended: Fault | None = None  # why the last run ended before its feed did; None if it did not
    #: asked before a request is sent once more after a fault: whether it may be, None if not now
    again: Again = staticmethod(lambda request, fault: True)
    #: called with a request in place of `Done` where its outcome comes another way, and is not waited for
    later: Callable[[Request], None] = staticmethod(lambda request: None)

    def check(self, texts: Iterable[Text]) -> None:
        held = list(texts)
        for address in self.addresses:
            (self.egress or Egress.of()).check(address, held)

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


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all works beside each other; the first error ends them all."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
