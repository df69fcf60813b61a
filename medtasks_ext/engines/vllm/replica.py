"""A replica: the same model in a process of its own, fed by this one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines.records import Outcome, Request
from medtasks_ext.engines.vllm.engine import VllmEngine
from medtasks_ext.engines.vllm.lanes import (
    DROP,
    END,
    MEMORY_REMEDY,
    Ended,
    Events,
    Lane,
    LaneResult,
    create,
)
from medtasks_ext.engines.vllm.stepper import Stepper
from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from medtasks_ext.registry.yamlfile import Config

#: how often to see whether the other side lives, where nothing comes from it
LOOK = 1.0
#: how long a replica may take to end vLLM before it is killed
PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Ready:
    window: int


class Replica(Lane):
    """Feeds one replica. Start all, then load this process's own model, then wait for each."""

    def __init__(self, number: int, model_args: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        """The process begins to load; replica 0 is the starting process itself."""
        context = get_context("spawn")  # a fork would share what this process has loaded
        self.name = f"replica {number}"
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, dict(model_args), dict(extra)), name=f"medtasks {self.name}"
        )
        self._process.start()
        theirs.close()
        self._thread: threading.Thread | None = None

    def wait(self) -> None:
        message = next(self._messages(), None) or self._ended()
        if isinstance(message, Ended):
            raise MedtasksError(message.what, where=self.name, remedy=message.remedy)
        self.window = message.window

    def report_to(self, events: Events) -> None:
        self._thread = threading.Thread(target=self._read, args=(events,), name=self.name, daemon=True)
        self._thread.start()

    def send(self, ticket: int, request: Request) -> None:
        """If the process has died, the reading thread says so."""
        with suppress(OSError):
            self._connection.send(
                replace(request, key=str(ticket), prompt="", settings=dict(request.settings), row=None)
            )

    def drop(self) -> None:
        with suppress(OSError):
            self._connection.send(DROP)

    def lost(self) -> Ended | None:
        """Whether the reading thread has ended; it sees the process end, after all that this has sent."""
        return None if self._thread and self._thread.is_alive() else self._ended()

    def stop(self) -> None:
        with suppress(OSError):
            self._connection.send(END)

    def close(self) -> None:
        self._process.join(PATIENCE)
        self.kill()

    def kill(self) -> None:
        """End the process at once. The watcher sees to what it leaves."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _read(self, events: Events) -> None:
        for event in self._messages():
            if isinstance(event, Ended):
                events.put(replace(event, where=self.name))
                return
            events.put(event)
        events.put(self._ended())

    def _messages(self) -> Iterator[Any]:
        """What the process sends as long as it lives: `Ready` first, then events."""
        with suppress(EOFError, OSError):
            while self._connection.poll(LOOK) or self._process.is_alive() or self._connection.poll(0):
                if self._connection.poll(0):
                    yield self._connection.recv()

    def _ended(self) -> Ended:
        self._process.join(LOOK)
        return Ended(f"the process has ended (exit code {self._process.exitcode})", self.name, MEMORY_REMEDY)


class GivenUpError(Exception):
    """The starting process wants no more of what is under way."""


class PipeFeed:
    """A thread reads all the time. Both sides could otherwise wait for each other with full pipes."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._starter = connection, os.getppid()
        self._ready: SimpleQueue[Request | str] = SimpleQueue()
        self._next: Request | str | None = None
        self.ended = False  # whether the starting process wants nothing any more, or is gone
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._ready.put(self._connection.recv())
        self._ready.put(END)

    @property
    def over(self) -> bool:
        """GivenUpError where what is under way is to be given up, asked for also by a full engine."""
        self.wait(0)
        if self._next in (DROP, END) or os.getppid() != self._starter:
            # engine processes that were forked may hold the pipe open, so its end alone does not tell
            self.ended = self._next != DROP
            self._next = None
            raise GivenUpError
        return False

    @property
    def dry(self) -> bool:
        """More comes without being waited for."""
        return False

    def take(self) -> Request | None:
        if self.over:
            return None
        request, self._next = self._next, None
        return request if isinstance(request, Request) else None

    def wait(self, seconds: float) -> None:
        if self._next is None:
            with suppress(Empty):
                self._next = self._ready.get(timeout=seconds)


def _serve(connection: Connection, model_args: Config, extra: Config) -> None:
    def done(request: Request, outcome: Outcome) -> None:
        connection.send(LaneResult(int(request.key), outcome))

    try:
        lm, processes = create(model_args, extra)
        engine = VllmEngine(lm, [Stepper(lm, processes)])
    except Exception as error:
        connection.send(_said(error))
        return
    try:
        connection.send(Ready(engine.window))
        requests = PipeFeed(connection)
        while not requests.ended:
            with suppress(GivenUpError):
                engine.run(requests, done)
    except OSError:
        pass  # the starting process is gone
    except Exception as error:
        with suppress(OSError):
            connection.send(_said(error))
    finally:
        engine.close()


def _said(error: Exception) -> Ended:
    if isinstance(error, MedtasksError):
        return Ended(error.what, str(error.where or ""), error.remedy)
    return Ended(f"{type(error).__name__}: {error}", "", MEMORY_REMEDY)
