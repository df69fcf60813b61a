"""The queue of a stream: requests built ahead by a thread of its own.

One thread is enough: it builds and tokenises 430,000 prompt tokens a second on one core (0.5 ms to build
a request and 2 ms to tokenise it, over the sample rows of all tasks, with a vocabulary of 49,000), and
eight H100 read 200,000 with a model of 8 billion parameters, by the assumptions of `plan`. They read
1,600,000 with one of 1 billion; but the process itself ends at about 850 requests a second, so that more
threads would gain a factor of two.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator

from medtasks_ext.engines.records import Request

#: Bytes of prompts that wait in the queue at most: long notes would fill the memory.
WAITING_BYTES = 64_000_000


class ThreadedFeed:
    """Takes requests from an iterator in a thread, as many ahead as the engine may want at once.

    An error of the iterator ends the feed and is raised to the reader by `close`.

    Args:
        requests: in order; closed in the thread that ran it.
        ahead: how many to have ready.
        may: called with a request before it is given out; False if it has to wait.
        taken: called with each request when it is given out.
        more: whether requests may still be added once the iterator is at its end.
    """

    def __init__(
        self,
        requests: Generator[Request, None, None],
        ahead: int,
        *,
        may: Callable[[Request], bool] = lambda request: True,
        taken: Callable[[Request], None] = lambda request: None,
        more: Callable[[], bool] | None = None,
    ) -> None:
        self._requests, self._ahead, self._may, self._taken, self._more = requests, ahead, may, taken, more
        self._ready: deque[tuple[Request, int]] = deque()
        self._held = False  # whether the next request has to wait
        self._bytes = 0
        self._changed = threading.Condition()
        self._stopped = self._exhausted = False
        self._dry = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._fill, name="feed", daemon=True)

    def start(self) -> ThreadedFeed:
        self._thread.start()
        return self

    def _fill(self) -> None:
        try:
            for request in self._requests:
                size = _size(request)
                with self._changed:
                    while self._full(size) and not self._stopped:
                        self._changed.wait()
                    if self._stopped:
                        return
                    self._ready.append((request, size))
                    self._bytes += size
                    self._changed.notify_all()
        except BaseException as error:
            self._error = error
        finally:
            self._requests.close()
            with self._changed:
                self._exhausted = True
                self._changed.notify_all()

    def _full(self, size: int) -> bool:
        return bool(self._ready) and (len(self._ready) >= self._ahead or self._bytes + size > WAITING_BYTES)

    @property
    def over(self) -> bool:
        with self._changed:
            if self._stopped or self._ready or not self._exhausted:
                return self._stopped
        return self._more is None or not self._more()

    @property
    def ready(self) -> bool:
        return bool(self._ready)

    @property
    def busy(self) -> bool:
        """Asked without the lock."""
        return not self._stopped and (bool(self._ready) or not self._exhausted)

    def take(self) -> Request | None:
        with self._changed:
            waits = self._exhausted and self._more is not None
            self._dry = waits and not self._ready
            if self._stopped or not self._ready:
                return None
            request, size = self._ready[0]
            self._held = not self._may(request)
            if self._held:
                self._dry = True  # money may come back once what was taken is answered
                return None
            self._ready.popleft()
            self._bytes -= size
            self._changed.notify_all()
        self._taken(request)
        return request

    @property
    def dry(self) -> bool:
        return self._dry

    def wait(self, seconds: float) -> None:
        with self._changed:
            if self._dry:
                self._dry = False
                self._changed.notify_all()
            comes = not self._exhausted or self._more is not None
            if not self._stopped and (self._held if self._ready else comes):
                self._changed.wait(seconds)

    def add(self, request: Request) -> None:
        """Give out a request before all others; it follows from an outcome."""
        with self._changed:
            self._ready.appendleft((request, size := _size(request)))
            self._bytes += size
            self._changed.notify_all()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, wait for the thread, and raise what ended it before its time."""
        self.stop()
        self._thread.join()
        if self._error is not None:
            raise self._error


def _size(request: Request) -> int:
    prompt = request.prompt
    text = len(prompt) if isinstance(prompt, str) else sum(len(turn["content"]) for turn in prompt)
    return text + 4 * len(request.tokens or ())
