"""A lease on a run's folder: one process writes to it.

The lease is a file that names host, process and command; its holder touches it while it lives. On one machine
a lease is taken over where its process is gone, however long it slept; from another machine, where nobody has
touched it for a while by the file system's own clock, and nobody touches it while one looks. A holder looks
before each write whether the lease is still its own: one that slept, and was taken over, writes nothing more.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from medtasks_ext.atomic import cannot_write, checked, is_private, make_private, private_files
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, json_bytes

FILE = ".lease"
#: Seconds between two signs of life, and after which a lease without one may be stale.
HEARTBEAT, STALE = 10.0, 90.0
#: Signs of life that one waits for before a lease from elsewhere is taken over.
_LOOKS = 2.5
#: Seconds for which a look at the lease holds: thousands of answers a second need no look each.
MOMENT = 0.01


@dataclass(frozen=True)
class LeaseState:
    content: bytes
    touched: float  # by the file system's clock
    file: tuple[int, int]  # device and number of the file


class Machine:
    """What a lease stands on: processes, clocks and a disk. A test may have another one."""

    @cached_property
    def place(self) -> str:
        """Where process numbers mean the same: host, its start, and the container."""
        parts = [socket.gethostname()]
        with suppress(OSError):
            parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
            parts.append(str(Path("/proc/self/ns/pid").readlink()))
        return " ".join(parts)

    @property
    def pid(self) -> int:
        return os.getpid()

    def born(self, pid: int) -> str:
        """When a process began, where the system tells (Linux): a number is given to many in turn."""
        with suppress(OSError, IndexError):
            return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
        return ""

    def lives(self, pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except (OSError, OverflowError):
            return True
        return True

    def create(self, path: Path, content: bytes, own: Path) -> bool:
        """Whether the name was free; `own` is a name that no other process has."""
        own.write_bytes(content)
        try:
            self.link(own, path)  # fails where the name is taken, also on network disks
        except FileExistsError:
            return False
        except OSError:  # a disk without links
            with suppress(FileExistsError), path.open("xb") as file:
                file.write(content)
                return True
            return False
        finally:
            own.unlink()
        return True

    def look(self, path: Path) -> LeaseState | None:
        """Also where a network disk remembers an older one; None if there is none."""
        try:
            with path.open("rb") as file:
                content, state = file.read(), os.fstat(file.fileno())
        except FileNotFoundError:
            return None
        return LeaseState(content, state.st_mtime, (state.st_dev, state.st_ino))

    def is_file(self, path: Path, file: tuple[int, int]) -> bool:
        """Asked thousands of times in a second."""
        try:
            state = os.stat(path)  # noqa: PTH116  half the time of Path.stat
        except FileNotFoundError:
            return False
        return (state.st_dev, state.st_ino) == file

    def steady(self) -> float:
        """Seconds of a clock that nobody sets, and that goes on while the process or the machine sleeps."""
        clock = getattr(time, "CLOCK_BOOTTIME", None)  # others than Linux
        return time.monotonic() if clock is None else time.clock_gettime(clock)

    def touch(self, path: Path) -> None:
        os.utime(path)

    def now(self, own: Path) -> float:
        """The file system's own clock, since clocks of machines that share a disk differ."""
        own.write_bytes(b"")
        try:
            return own.stat().st_mtime
        finally:
            own.unlink()

    def rename(self, path: Path, to: Path) -> None:
        path.rename(to)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def link(self, path: Path, to: Path) -> None:
        os.link(path, to)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def repeat_beat(self, beat: Callable[[], None]) -> Callable[[], None]:
        """Until what is returned is called."""
        ended = threading.Event()

        def live() -> None:
            while not ended.wait(HEARTBEAT):
                beat()

        thread = threading.Thread(target=live, name="lease", daemon=True)
        thread.start()

        def end() -> None:
            ended.set()
            thread.join()

        return end


class Lease:
    """Held while a process writes to a folder; a context manager.

    Where the folder is its owner's alone, so is all that the process writes meanwhile. Nothing
    is written there once another process has taken it over.
    """

    def __init__(
        self, folder: Path, what: str, *, private: bool = False, machine: Machine | None = None
    ) -> None:
        """A `private` folder is made its owner's alone, since it gets text that is not open."""
        self.path = folder / FILE
        self._what, self._private, self.token = what, private, secrets.token_hex(8)
        self._machine = machine or Machine()
        self._files = ExitStack()
        self._stop: Callable[[], None] | None = None
        self._file: tuple[int, int] | None = None  # the lease's own
        self._seen = -math.inf  # when it was last seen to be so
        self._open: int | None = None  # holds its number: no other file gets it meanwhile

    def __enter__(self) -> Lease:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while not self._create():
                self._remove_if_stale()
            self._open = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._clear()
        if self._private and not is_private(self.path.parent):
            make_private(self.path.parent)
        self._files.enter_context(private_files(is_private(self.path.parent)))
        self._files.enter_context(checked(self.path.parent, self.check))
        self._stop = self._machine.repeat_beat(self._beat)
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        if self._stop is not None:
            self._stop()
        if self._open is not None:
            os.close(self._open)
            self._open = None
        if self._is_own():
            with suppress(OSError):
                self._machine.unlink(self.path)

    def check(self) -> None:
        """Make sure that the lease is still this process's: it may have slept, or the disk been away.

        What was seen a moment ago holds: nobody takes a lease over that was touched in the last minute.
        """
        now = self._machine.steady()
        if now - self._seen < MOMENT:
            return
        if self._file is not None and self._machine.is_file(self.path, self._file):
            self._seen = now
            return
        seen = self._machine.look(self.path)
        if seen is not None and _token_of(seen.content) == self.token:  # a disk that numbers files anew
            self._file = seen.file
            return
        other = "" if seen is None else f" ({_process(_record_of(seen.content))})"
        raise MedtasksError(
            f"this process was away for a while, and another one{other} has taken the folder over: this one "
            "writes nothing more",
            where=self.path.parent,
            remedy="what this process stored stays; the same command goes on once the other one has ended",
        )

    def _clear(self) -> None:
        """Remove what killed processes left half written; what somebody may be writing stays."""
        with suppress(OSError):
            now = self.path.stat().st_mtime
            for pattern in (".*.part", f"{FILE}.*"):
                for path in self.path.parent.rglob(pattern):
                    if now - path.stat().st_mtime > STALE:
                        path.unlink()

    def _beside(self, what: str = "") -> Path:
        return self.path.with_name(f"{FILE}.{self.token}{what}")

    def _create(self) -> bool:
        """Write the file under a name of its own, then give it the lease's name unless that is taken."""
        made = self._machine.create(self.path, json_bytes(self._record()), self._beside())
        seen = self._machine.look(self.path) if made else None
        if seen is None or _token_of(seen.content) != self.token:
            return False
        self._file = seen.file
        return True

    def _record(self) -> Json:
        machine = self._machine
        return {
            "host": socket.gethostname(),
            "place": machine.place,
            "pid": machine.pid,
            "born": machine.born(machine.pid),
            "command": self._what,
            "since": time.strftime("%Y-%m-%dT%H:%M:%S"),
            "token": self.token,
        }

    def _remove_if_stale(self) -> None:
        seen = self._machine.look(self.path)
        if seen is None:
            return
        holder = _record_of(seen.content)
        if holder.get("place") == self._machine.place:
            stale = not self._holder_lives(holder, seen)
        else:  # of another machine, being written, or damaged
            stale = self._is_silent(seen)
        if stale:
            self._remove(holder.get("token"))
            return
        raise MedtasksError(
            f"{holder.get('command', 'another process')} works in this folder ({_process(holder)})",
            where=self.path.parent,
            remedy="wait for it to end; what it stores is not asked for again",
        )

    def _holder_lives(self, holder: Json, seen: LeaseState) -> bool:
        pid = holder.get("pid")
        if not isinstance(pid, int) or not self._machine.lives(pid):
            return False
        if born := self._machine.born(pid):
            return born == holder.get("born")
        return not self._is_silent(seen)  # a system that does not tell: the number may be another process's

    def _is_silent(self, seen: LeaseState) -> bool:
        """Whether nobody has touched the lease for long, and nobody touches it now: clocks may jump."""
        age = self._machine.now(self._beside(".now")) - seen.touched
        if -HEARTBEAT <= age <= STALE:
            return False
        self._machine.sleep(_LOOKS * HEARTBEAT)
        return self._machine.look(self.path) == seen

    def _remove(self, token: str | None) -> None:
        """Take a stale lease away; of two processes that try, one does."""
        stale = self._beside(".stale")
        with suppress(FileNotFoundError):
            self._machine.rename(self.path, stale)
            seen = self._machine.look(stale)
            if seen is not None and _token_of(seen.content) != token:
                with suppress(OSError):  # another process was faster, and this is its new lease
                    self._machine.link(stale, self.path)
            self._machine.unlink(stale)

    def _is_own(self) -> bool:
        with suppress(OSError):
            seen = self._machine.look(self.path)
            return seen is not None and _token_of(seen.content) == self.token
        return False

    def _beat(self) -> None:
        if self._is_own():
            with suppress(OSError):
                self._machine.touch(self.path)


def holder_of(folder: Path) -> str | None:
    """The command of the process that works in a folder; None where none does. Nothing is written.

    A process elsewhere works there if it gave a sign of life lately by this machine's clock.
    """
    machine = Machine()
    seen = machine.look(folder / FILE)
    if seen is None:
        return None
    holder = _record_of(seen.content)
    pid = holder.get("pid")
    if holder.get("place") == machine.place and isinstance(pid, int):
        works = machine.lives(pid) and machine.born(pid) == holder.get("born")
    else:
        works = abs(time.time() - seen.touched) <= STALE
    return str(holder.get("command", "another process")) if works else None


def _record_of(content: bytes) -> Json:
    with suppress(ValueError):
        record = json.loads(content)
        if isinstance(record, dict):
            return record
    return {}


def _token_of(content: bytes) -> str | None:
    token = _record_of(content).get("token")
    return token if isinstance(token, str) else None


def _process(holder: Json) -> str:
    said = {name: holder.get(name, "?") for name in ("pid", "host", "since")}
    return f"process {said['pid']} on {said['host']}, since {said['since']}"
