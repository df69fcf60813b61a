"""Processes that share a run's folder, in a world with a clock, hosts and a scheduler of its own.

Each process is a thread that runs alone between two calls of its `Machine`, where the scheduler may let
another one go on, stop it for a while (SIGSTOP), kill it, or let the clock of the file system jump. Lease and
files of outcomes are the product's; what is asked, and by whom, is counted here.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError
from medtasks_ext.runs import OutcomeLog
from medtasks_ext.runs.lease import HEARTBEAT, Lease, LeaseState, Machine

REQUESTS = [f"request {number}" for number in range(24)]
PROCESSES, STARTS = 8, 24  # at once, and in all
IN_FLIGHT = 3  # requests of one process
_START = 1_700_000_000.0  # seconds since 1970


class Killed(BaseException):
    """The process is gone; nothing of it is done any more."""


@dataclass
class Process:
    """One call of the command.

    Attributes:
        read: when it had read what is stored, in steps of the world; None before.
        asked: request -> when it was let go, in steps.
        said: the message with which it ended early.
        storing: whether it is about to store an answer.
    """

    world: World
    host: str
    pid: int
    read: int | None = None
    asked: dict[str, int] = field(default_factory=dict)
    said: str = ""
    storing: bool = False
    done: bool = False
    killed: bool = False
    wakes: float = 0.0  # when a sleep or a stop ends
    beat: Callable[[], None] | None = None
    beaten: float = 0.0  # when the last sign of life was given
    lease: Lease | None = None

    def __post_init__(self) -> None:
        self.baton = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def step(self) -> None:
        """Let the scheduler choose who goes on."""
        self.world.baton.release()
        self.baton.acquire()
        if self.killed:
            raise Killed

    def sleep(self, seconds: float) -> None:
        """Do nothing for a while."""
        self.wakes = self.world.time + seconds
        self.step()

    def _live(self) -> None:
        self.baton.acquire()
        try:
            if not self.killed:
                self._run()
        except Killed:
            pass
        except MedtasksError as error:
            self.said = str(error)
        finally:
            self.done = True
            self.world.baton.release()

    def _run(self) -> None:
        """What `medtasks run` does: take the folder, read, ask what has no answer, store what comes."""
        self.lease = Lease(self.world.folder, "medtasks run", machine=Simulated(self))
        with self.lease:
            log = OutcomeLog(self.world.folder / "responses", "task")
            try:
                log.load()
                self.read = self.world.steps
                self.step()
                left = [name for name in REQUESTS if name not in log.answered]
                flying: list[str] = []
                while left or flying:
                    if left and len(flying) < IN_FLIGHT:
                        log.guard()
                        self.asked[left[0]] = self.world.steps
                        flying.append(left.pop(0))
                        self.step()
                    else:
                        self.sleep(self.world.chance.uniform(0, 40))
                        name = flying.pop(self.world.chance.randrange(len(flying)))
                        self.storing = True
                        log.add(name, name, Answer(f"{name}, by {self.pid}"))
                        self.storing = False
            finally:
                log.close()


class Simulated(Machine):
    """The machine of a process: real files, times and processes of the world."""

    def __init__(self, process: Process) -> None:
        self._process, self._world = process, process.world

    @property
    def place(self) -> str:  # type: ignore[override]
        return self._process.host

    @property
    def pid(self) -> int:
        return self._process.pid

    def born(self, pid: int) -> str:
        return str(pid) if self._world.tells_birth else ""

    def lives(self, pid: int) -> bool:
        return any(
            not other.done and other.pid == pid and other.host == self._process.host
            for other in self._world.processes
        )

    def create(self, path: Path, content: bytes, own: Path) -> bool:
        self._process.step()
        made = super().create(path, content, own)
        if made:
            self._touch(path)
        return made

    def look(self, path: Path) -> LeaseState | None:
        self._process.step()
        return super().look(path)

    def is_file(self, path: Path, file: tuple[int, int]) -> bool:
        self._process.step()
        found = super().is_file(path, file)
        if self._process.storing:  # it may fall asleep between this look and the write that follows
            self._process.step()
        return found

    def steady(self) -> float:
        return self._world.time

    def touch(self, path: Path) -> None:
        self._touch(path)

    def _touch(self, path: Path) -> None:
        os.utime(path, (self._world.clock, self._world.clock))

    def now(self, own: Path) -> float:
        self._process.step()
        return self._world.clock

    def rename(self, path: Path, to: Path) -> None:
        self._process.step()
        super().rename(path, to)

    def unlink(self, path: Path) -> None:
        self._process.step()
        super().unlink(path)

    def link(self, path: Path, to: Path) -> None:
        if not self._world.links:
            raise PermissionError("a disk without links")
        super().link(path, to)

    def sleep(self, seconds: float) -> None:
        self._process.sleep(seconds)

    def repeat_beat(self, beat: Callable[[], None]) -> Callable[[], None]:
        self._process.beat, self._process.beaten = beat, self._world.time

        def end() -> None:
            self._process.beat = None

        return end


class World:
    """One schedule.

    Args:
        folder: of the run.
        seed: from which all follows.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.links, self.tells_birth = self.chance.random() < 0.7, self.chance.random() < 0.8
        self.hosts = ["a"] if self.chance.random() < 0.2 else ["a", "b", "c"]
        self.time, self.steps = 0.0, 0
        self._jumped = 0.0  # seconds by which the clock of the file system is off
        self.baton = threading.Semaphore(0)
        self.processes: list[Process] = []
        self.running: Process | None = None

    @property
    def clock(self) -> float:
        """Of the file system."""
        return _START + self.time + self._jumped

    def check_of(self, path: Path) -> Callable[[], None]:
        """Of the folder, as the process that runs has it."""
        return self.running.lease.check if self.running and self.running.lease else lambda: None

    def go(self) -> None:
        """Let processes come and go; then one more, which nothing disturbs, finishes the run."""
        while len(self.processes) < STARTS or self._alive():
            alive = self._alive()
            if len(self.processes) < STARTS and len(alive) < PROCESSES and self.chance.random() < 0.008:
                self._start(self.chance.choice(self.hosts))
                continue
            if not alive:
                self.time += 1
                continue
            self._advance()
        for _ in range(2):  # what a damaged beginning costs is one more call
            self.time += 1000
            last = self._start("z")
            while not last.done:
                self._advance(quiet=True)
            if not last.said:
                return

    def end(self) -> None:
        """End what is left."""
        for process in self._alive():
            process.killed = True
            self._let(process)

    def _alive(self) -> list[Process]:
        return [process for process in self.processes if not process.done]

    def _start(self, host: str) -> Process:
        self.processes.append(process := Process(self, host, len(self.processes) + 1))
        return process

    def _advance(self, *, quiet: bool = False) -> None:
        """A step of a process that may go on, unless it is disturbed before; else time passes."""
        self.steps += 1
        self.time += self.chance.expovariate(2)
        ready = [process for process in self._alive() if process.wakes <= self.time]
        for process in ready:
            if process.beat and self.time - process.beaten >= HEARTBEAT:
                process.beaten = self.time
                self._beat(process)
        if not ready:
            return
        process, draw = self.chance.choice(ready), 1.0 if quiet else self.chance.random()
        if draw < 0.05:
            process.wakes = self.time + self.chance.choice([5, 60, 95, 400, 1000])
            return
        if draw < 0.06:
            self._jumped += self.chance.choice([-86400, -100, -20, 20, 100, 86400])
        process.killed = 0.06 <= draw < 0.07
        self._let(process)

    def _beat(self, process: Process) -> None:
        """A sign of life, which another thread of the process gives."""
        path = self.folder / ".lease"
        with suppress(OSError):
            if process.lease is not None and process.lease.token.encode() in path.read_bytes():
                os.utime(path, (self.clock, self.clock))

    def _let(self, process: Process) -> None:
        self.running = process
        process.baton.release()
        self.baton.acquire()
        self.running = None


def asked_twice(world: World) -> list[str]:
    """Requests that a process let go after another one, which asks them too, had read what is stored.

    What was let go before that was in flight, and nobody could know what became of it.
    """
    found = []
    for one, other in combinations([item for item in world.processes if item.read is not None], 2):
        assert one.read is not None and other.read is not None
        first, later = sorted((one, other), key=lambda item: item.read or 0)
        found += [
            f"{name}: by {first.pid} at {first.asked[name]}, and by {later.pid}, which read at {later.read}"
            for name in first.asked.keys() & later.asked.keys()
            if first.asked[name] > (later.read or 0)
        ]
    return found
