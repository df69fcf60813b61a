"""The one interface of all engines, and what they take from: requests of all threads that ask, made ready
ahead by a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias

from medtasks_ext.egress import Egress, Text
from medtasks_ext.engines import Fault, Outcome, Request

#: Characters of prompts that wait at most.
WAITING = 64_000_000
#: Share of what may wait at which threads go on that found no room. At every request that is taken they would
#: wake to make one more, and waking costs more than making it.
GOES_ON = 0.5


class Feed:
    """A feed that requests are put into until it is closed.

    `prepare`: makes a request ready, or says why it cannot be. `came`: takes the outcome of those that
    cannot. `ahead`: requests that are ready at most. `may`: asked for the request that is next; False if it
    has to wait. `taken`: called with each that is taken.

    Attributes:
        more: whether somebody is about to put more.
    """

    def __init__(
        self,
        prepare: Callable[[Request], Request | Fault],
        came: Callable[[Request, Outcome], None],
        ahead: int,
        may: Callable[[Request], bool] = lambda request: True,
        taken: Callable[[Request], None] = lambda request: None,
    ) -> None:
        self._prepare, self._came, self._ahead = prepare, came, ahead
        self._may, self._taken = may, taken
        self.more = self._held = False
        self._asked, self._ready = deque[Request](), deque[Request]()
        self._size, lock = 0, threading.RLock()
        self._changed, self._new, self._room = (threading.Condition(lock) for _ in range(3))
        self._without_room: list[Callable[[float], bool]] = []  # of each thread that waits, whether it has
        self._closed = self._busy = False
        threading.Thread(target=self._make_ready, name="prompts", daemon=True).start()

    def put(self, requests: Iterable[Request], ahead: int | None = None) -> None:
        """Add requests behind those that wait.

        `ahead`: wait until at most so many wait, and no more characters than `WAITING`.
        """
        with self._changed:
            if ahead is not None:
                self._wait_for_room(
                    lambda most: self._waiting <= most * ahead and self._size < most * WAITING
                )
            for request in requests:
                self._asked.append(request)
                self._size += _size(request)
            self._new.notify()

    def _wait_for_room(self, has_room: Callable[[float], bool]) -> None:
        """Until there is room, or the feed is closed. `has_room`: whether there is, in a share of it."""
        if not has_room(1):
            self._without_room.append(has_room)
            self._room.wait_for(lambda: self._closed or has_room(GOES_ON))
            self._without_room.remove(has_room)

    @property
    def _waiting(self) -> int:
        return len(self._asked) + len(self._ready)

    def close(self) -> None:
        """Give out nothing more."""
        with self._changed:
            self._closed = True
            for condition in (self._changed, self._new, self._room):
                condition.notify_all()

    @property
    def over(self) -> bool:
        """Whether nothing comes any more: all are taken, or the user has interrupted."""
        return self._closed

    @property
    def dry(self) -> bool:
        """Whether nothing comes until somebody asks again, or what was taken is answered.

        An engine that answers in batches answers what it has before it waits.
        """
        return self._held or not (self._asked or self._ready or self._busy or self.more)

    def take(self) -> Request | None:
        """The next request that is ready."""
        with self._changed:
            if self._closed or not self._ready:
                return None
            request = self._ready[0]
            self._held = not self._may(request)
            if self._held:
                return None
            self._ready.popleft()
            self._size -= _size(request)
            if any(has_room(GOES_ON) for has_room in self._without_room):
                self._room.notify_all()
        self._taken(request)
        return request

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until a request is ready or the feed is over, at most so long."""
        with self._changed:
            if (self._held or not self._ready) and not self._closed:
                self._changed.wait(seconds)

    def _make_ready(self) -> None:
        while True:
            with self._changed:
                self._wait_for_room(lambda most: not self._ready or len(self._ready) < most * self._ahead)
                self._new.wait_for(lambda: self._closed or self._asked)
                if self._closed:
                    return
                request, self._busy = self._asked.popleft(), True
            ready = self._prepare(request)
            if isinstance(ready, Fault):
                self._came(request, ready)
            with self._changed:
                if isinstance(ready, Request):
                    self._ready.append(ready)
                else:
                    self._size -= _size(request)
                self._busy = False
                self._changed.notify_all()


def _size(request: Request) -> int:
    prompt = request.prompt
    return len(prompt) if isinstance(prompt, str) else sum(len(turn["content"]) for turn in prompt)


#: Seconds that a thread waits for a feed before it looks whether that is over.
WAIT_SECONDS = 0.2
#: Called with each request and its outcome, in any thread.
Done: TypeAlias = Callable[["Request", "Outcome"], None]

Again: TypeAlias = Callable[["Request", "Fault"], bool | None]


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
