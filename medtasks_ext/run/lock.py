"""One process writes into a folder: a file that names host and process, and that is touched while they live.

Locks of the system do not hold on many network disks. So the file is made by a call that fails where it is
there, and its time says whether the holder lives: a process of this host is asked for, one of another host
has to touch the file.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError

NAME = "writing.lock"
#: Seconds between two touches, and without one after which a holder on another host is taken for dead.
TOUCH, DEAD = 5.0, 30.0


class FolderLock:
    """Held from its making until `release`.

    Raises:
        MedtasksError: another process holds it, or the folder cannot be written.
    """

    def __init__(self, folder: Path, sleep: Callable[[float], None] = time.sleep) -> None:
        self.path, self._sleep = folder / NAME, sleep
        said = {"host": socket.gethostname(), "process": os.getpid(), "started": _started(os.getpid())}
        self._mine = json.dumps({**said, "token": secrets.token_hex(8)}).encode()
        try:
            while not self._made(self.path):
                self._take_from_the_dead()
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._touched = time.monotonic()

    def touch(self) -> None:
        """Show that this process lives, where the last time is long ago.

        Raises:
            MedtasksError: another process has taken the folder, since this one stood still.
        """
        if time.monotonic() - self._touched < TOUCH:
            return
        if _content(self.path) != self._mine:
            raise MedtasksError(
                "another process writes to this folder by now: this one stood still",
                where=self.path.parent,
                remedy="wait for the other one; what is written is kept",
            )
        os.utime(self.path)
        self._touched = time.monotonic()

    def release(self) -> None:
        """Give the folder free."""
        if _content(self.path) == self._mine:
            self.path.unlink(missing_ok=True)

    def _made(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._mine)
        return True

    def _take_from_the_dead(self) -> None:
        """Remove the lock of a process that is no more.

        Two processes that find the same one dead must not remove each other's lock: the right to remove that
        of one holder is a file of its own, and who has the right looks once more.
        """
        held = _content(self.path)
        if held is None:
            return
        if self._lives(held):
            raise MedtasksError(
                f"another process writes to this folder ({_shown(held)})",
                where=self.path.parent,
                remedy="wait until it is done, or name another folder",
            )
        right = self.path.with_name(f"{NAME}.{_said(held).get('token', 'damaged')}")
        if not self._made(right):
            self._sleep(1)
            with suppress(FileNotFoundError):
                if time.time() - right.stat().st_mtime > DEAD:  # its maker died, too
                    right.unlink()
            return
        try:
            if _content(self.path) == held:
                self.path.unlink()
        finally:
            right.unlink(missing_ok=True)

    def _lives(self, held: bytes) -> bool:
        """Whether the holder of a lock lives; of another host, or before it has said who it is, its touches
        say so."""
        said = _said(held)
        if said.get("host") == socket.gethostname():
            process = int(str(said.get("process", 0)))
            return _runs(process) and said.get("started") == _started(process)
        last = self._time()
        for _ in range(int(DEAD)):
            self._sleep(1)
            if self._time() != last or _content(self.path) != held:
                return True
        return False

    def _time(self) -> float:
        with suppress(OSError):
            return self.path.stat().st_mtime
        return 0.0


def _content(path: Path) -> bytes | None:
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return None


def _said(held: bytes) -> dict[str, object]:
    try:
        said = json.loads(held)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _shown(held: bytes) -> str:
    said = _said(held)
    return f"process {said.get('process', '?')} on {said.get('host', 'an unknown host')}"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


def _started(process: int) -> str:
    """When a process began, where the system says it: its number may have been given to another one since."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return ""
