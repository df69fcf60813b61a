"""One process writes into a folder: a file that names host and process, and that is touched while they live.

Locks of the system do not hold on many network disks. So the file is made by a call that fails where it is
there, and its time says whether the holder lives: a process of this machine is asked for, one elsewhere has
to touch the file.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from contextlib import suppress
from pathlib import Path

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError

NAME = ".writing.lock"
#: Seconds between two touches, and without one after which a holder elsewhere is taken for dead.
TOUCH, DEAD = 5.0, 60.0


class FolderLock:
    """Held from its making until `release`; MedtasksError where another process holds it.

    `command`: what the process does, for the message that others get.
    """

    def __init__(self, folder: Path, command: str = "another process") -> None:
        self.path = folder / NAME
        said = {"command": command, "host": socket.gethostname(), "place": _place(), "process": os.getpid()}
        said |= {"started": _began(os.getpid()), "token": secrets.token_hex(8)}
        self._mine = json.dumps(said).encode()
        try:
            while not self._made(self.path):
                self._take_from_the_dead()
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._last = time.time()

    def check(self) -> None:
        """Make sure that this process still holds it."""
        if _content(self.path) != self._mine:
            raise MedtasksError(
                "another process writes to this folder by now: this one stood still",
                where=self.path.parent,
                remedy="wait for the other one; what is written is kept",
            )

    def touch(self) -> None:
        """Show that this process lives, and make sure as `check` does, where the last time is long ago."""
        if abs(time.time() - self._last) >= TOUCH:  # the clock may have been set
            self.check()
            os.utime(self.path)
            self._last = time.time()

    def release(self) -> None:
        """Give the folder free."""
        if _content(self.path) == self._mine:
            self.path.unlink(missing_ok=True)

    def _made(self, path: Path) -> bool:
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        os.write(file, self._mine)
        os.close(file)
        return True

    def _take_from_the_dead(self) -> None:
        """Remove the lock of a process that is no more.

        Two processes that find the same one dead must not remove each other's lock: the right to remove that
        of one holder is a file of its own, and who has the right looks once more.
        """
        if (held := _content(self.path)) is None:
            return
        said = _said(held)
        if self._lives(held):
            raise MedtasksError(
                f"{said.get('command', 'another process')} works in this folder (process "
                f"{said.get('process', '?')} on {said.get('host', 'an unknown host')})",
                where=self.path.parent,
                remedy="wait for it to end; what it stores is not asked for again",
            )
        right = self.path.with_name(f"{NAME}.{said.get('token', 'damaged')}")
        if not self._made(right):
            time.sleep(1)
            if time.time() - _touched(right) > DEAD:  # its maker died, too
                right.unlink(missing_ok=True)
            return
        if _content(self.path) == held:
            self.path.unlink(missing_ok=True)
        right.unlink(missing_ok=True)

    def _lives(self, held: bytes) -> bool:
        """Whether the holder lives; elsewhere, or before it has said who it is, its touches say so."""
        if (here := _lives_here(_said(held))) is not None:
            return here
        last = _touched(self.path)
        for _ in range(int(DEAD)):
            time.sleep(1)
            if _touched(self.path) != last or _content(self.path) != held:
                return True
        return False


def holder_of(folder: Path) -> str | None:
    """The command of the process that works in a folder; None where none does. Nothing is written."""
    if (held := _content(folder / NAME)) is None:
        return None
    if (lives := _lives_here(said := _said(held))) is None:
        lives = abs(time.time() - _touched(folder / NAME)) <= DEAD
    return str(said.get("command", "another process")) if lives else None


def _content(path: Path) -> bytes | None:
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return None


def _touched(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return time.time()


def _said(held: bytes) -> dict[str, object]:
    with suppress(ValueError, TypeError):
        return dict(json.loads(held) or {})
    return {}


def _lives_here(said: dict[str, object]) -> bool | None:
    """Whether a process of this machine lives; None of one elsewhere."""
    if said.get("place") != _place():
        return None
    return _began(int(str(said.get("process", 0)))) == said.get("started")


def _place() -> str:
    """Where the numbers of processes mean the same: the host, its start, and the container."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _began(process: int) -> str | None:
    """When a process began, whose number may be another one's by now; None of one that is no more."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    with suppress(PermissionError):  # of another user
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return None
    return ""  # no system says it
