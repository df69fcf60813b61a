"""One process writes into a folder: a file that names host and process, and is touched while they live.

Locks of the system do not hold on many network disks, so the file is made by a call that fails where it is
there. Its holder lives where the process does, on this machine, or touches the file, from another one.
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
    """Held until `release`; MedtasksError where another process holds it, which says its `command`."""

    def __init__(self, folder: Path, command: str = "another process", name: str = NAME) -> None:
        self.path = folder / name
        process = {"process": os.getpid(), "started": _began(os.getpid()), "token": secrets.token_hex(8)}
        self._mine = {"command": command, "host": socket.gethostname(), "place": _place(), **process}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            while (held := _held(self.path)) != self._mine:
                if held is None:
                    self._make(self.path)
                elif self._lives(held):
                    who = f"process {held.get('process', '?')} on {held.get('host', '?')}"
                    what = f"{held.get('command', 'another process')} works in this folder ({who})"
                    remedy = "wait for it to end; what it stores is not asked for again"
                    raise MedtasksError(what, where=folder, remedy=remedy)
                else:  # of several that find it dead, the last one has it
                    part = self.path.with_name(f"{name}.{self._mine['token']}.part")
                    self._make(part)
                    if _held(self.path) == held:  # a slow disk may have made the file late
                        part.replace(self.path)
                    time.sleep(1)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._last = time.time()

    def check(self) -> None:
        """Make sure that this process still holds it."""
        if _held(self.path) != self._mine:
            what = "another process writes to this folder by now: this one stood still"
            remedy = "wait for the other one; what is written is kept"
            raise MedtasksError(what, where=self.path.parent, remedy=remedy)

    def touch(self) -> None:
        """Show that this process lives, and make sure as `check` does, where the last time is long ago."""
        if abs(time.time() - self._last) >= TOUCH:  # the clock may have been set
            self.check()
            os.utime(self.path)
            self._last = time.time()

    def release(self) -> None:
        if _held(self.path) == self._mine:
            self.path.unlink(missing_ok=True)

    def _make(self, path: Path) -> None:
        with suppress(FileExistsError):
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.write(file, json.dumps(self._mine).encode())
            os.close(file)

    def _lives(self, held: dict[str, object]) -> bool:
        """Whether the holder lives; elsewhere, or before it has said who it is, its touches say so."""
        if (here := _lives_here(held)) is not None:
            return here
        last = _touched(self.path)
        for _ in range(int(DEAD)):
            time.sleep(1)
            if _touched(self.path) != last or _held(self.path) != held:
                return True
        return False


def holder_of(folder: Path) -> str | None:
    """The command of the process that works in a folder; None where none does. Nothing is written."""
    if (held := _held(folder / NAME)) is None:
        return None
    if (lives := _lives_here(held)) is None:
        lives = abs(time.time() - _touched(folder / NAME)) <= DEAD
    return str(held.get("command", "another process")) if lives else None


def _held(path: Path) -> dict[str, object] | None:
    """What a lock says, nothing where it is damaged; None where there is none."""
    with suppress(FileNotFoundError):
        content = path.read_bytes()
        with suppress(ValueError, TypeError):
            return dict(json.loads(content) or {})
        return {}
    return None


def _touched(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return time.time()


def _lives_here(held: dict[str, object]) -> bool | None:
    """Whether a process of this machine lives; None of one elsewhere, or where no system says it."""
    if held.get("place") != _place():
        return None
    process = int(str(held.get("process", 0)))
    if not held.get("started"):  # macOS: a number that is there may be another one's by now
        try:
            os.kill(process, 0)
        except OSError as error:
            return None if isinstance(error, PermissionError) else False
        return None
    return _began(process) == held["started"]


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
    return None
