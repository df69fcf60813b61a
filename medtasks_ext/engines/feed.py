"""What an engine takes from: requests of all threads that ask, made ready ahead by a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from medtasks_ext.engines.records import Fault, Outcome, Request

#: Characters of prompts that wait ready at most.
WAITING = 64_000_000


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
        self._changed, self._size = threading.Condition(), 0
        self._closed = self._busy = False
        threading.Thread(target=self._make_ready, name="prompts", daemon=True).start()

    def put(self, requests: Iterable[Request], ahead: int | None = None) -> None:
        """Add requests behind those that wait.

        `ahead`: wait until at most so many wait.
        """
        with self._changed:
            if ahead is not None:
                self._changed.wait_for(lambda: self._closed or len(self._asked) + len(self._ready) <= ahead)
            self._asked.extend(requests)
            self._changed.notify_all()

    def close(self) -> None:
        """Give out nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

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
            self._changed.notify_all()
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
                self._changed.wait_for(self._may_go_on)
                if self._closed:
                    return
                request, self._busy = self._asked.popleft(), True
            ready = self._prepare(request)
            if isinstance(ready, Fault):
                self._came(request, ready)
            with self._changed:
                if isinstance(ready, Request):
                    self._ready.append(ready)
                    self._size += _size(ready)
                self._busy = False
                self._changed.notify_all()

    def _may_go_on(self) -> bool:
        room = len(self._ready) < self._ahead and self._size < WAITING
        return self._closed or bool(self._asked and (room or not self._ready))


def _size(request: Request) -> int:
    prompt = request.prompt
    return len(prompt) if isinstance(prompt, str) else sum(len(turn["content"]) for turn in prompt)
