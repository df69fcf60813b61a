"""A lease on a run's folder: one process writes to it.

The lease is a file that names host, process and command; its holder touches it while it lives. A lease whose
process is gone (on this host), or that nobody has touched for a while (from another one), is taken over. The
ages are taken from the file system's own clock, since clocks of machines that share a disk differ.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from medtasks_ext.atomic import cannot_write, is_private, make_private, private_files
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, json_bytes

FILE = ".lease"
#: Seconds between two signs of life, and after which a lease without one is stale.
HEARTBEAT, STALE = 10.0, 90.0


class Lease:
    """Held while a process writes to a folder; a context manager.

    Where the folder is its owner's alone, so is all that the process writes meanwhile.
    """

    def __init__(self, folder: Path, what: str, *, private: bool = False) -> None:
        """Prepare a lease.

        Args:
            what: the command, for the message that others get.
            private: the folder is made its owner's alone, since it gets text that is not open.
        """
        self.path = folder / FILE
        self._what, self._private, self._token = what, private, secrets.token_hex(8)
        self._files = ExitStack()
        self._ended = threading.Event()
        self._beat: threading.Thread | None = None

    def __enter__(self) -> Lease:
        """Take the lease.

        Raises:
            MedtasksError: another process holds it, or the folder cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while not self._create():
                self._remove_if_stale()
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._clear()
        if self._private and not is_private(self.path.parent):
            make_private(self.path.parent)
        self._files.enter_context(private_files(is_private(self.path.parent)))
        self._beat = threading.Thread(target=self._live, name="lease", daemon=True)
        self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        self._ended.set()
        if self._beat is not None:
            self._beat.join()
        if self._is_own():
            with suppress(OSError):
                self.path.unlink()

    def _clear(self) -> None:
        """Remove what killed processes left half written; what somebody may be writing stays."""
        with suppress(OSError):
            now = self.path.stat().st_mtime
            for pattern in (".*.part", f"{FILE}.*"):
                for path in self.path.parent.rglob(pattern):
                    if now - path.stat().st_mtime > STALE:
                        path.unlink()

    def _create(self) -> bool:
        """Write the file under a name of its own, then give it the lease's name unless that is taken."""
        own = self.path.with_name(f"{FILE}.{self._token}")
        own.write_bytes(json_bytes(self._record()))
        try:
            os.link(own, self.path)  # fails where the name is taken, also on network disks
        except FileExistsError:
            return False
        except OSError:  # a disk without links
            with suppress(FileExistsError), self.path.open("xb") as file:
                file.write(json_bytes(self._record()))
            return self._is_own()
        finally:
            own.unlink()
        return True

    def _record(self) -> Json:
        return {
            "host": socket.gethostname(),
            "place": _place(),
            "pid": os.getpid(),
            "born": _born(os.getpid()),
            "command": self._what,
            "since": time.strftime("%Y-%m-%dT%H:%M:%S"),
            "token": self._token,
        }

    def _remove_if_stale(self) -> None:
        try:
            holder = json.loads(self.path.read_bytes())
            age = self._now() - self.path.stat().st_mtime
            here = holder["place"] == _place()
            gone = here and (not _lives(holder["pid"]) or _born(holder["pid"]) != holder["born"])
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):  # being written, or damaged
            holder, gone = {}, False
            age = self._now() - self.path.stat().st_mtime
        if gone or age > STALE:
            self._remove(holder.get("token"))
            return
        said = {name: holder.get(name, "?") for name in ("pid", "host", "since")}
        raise MedtasksError(
            f"{holder.get('command', 'another process')} works in this folder (process {said['pid']} on "
            f"{said['host']}, since {said['since']})",
            where=self.path.parent,
            remedy="wait for it to end; what it stores is not asked for again",
        )

    def _remove(self, token: str | None) -> None:
        """Take a stale lease away; of two processes that try, one does."""
        stale = self.path.with_name(f"{FILE}.{self._token}.stale")
        with suppress(FileNotFoundError):
            self.path.rename(stale)
            if _token_of(stale) != token:  # another process was faster, and this is its new lease
                with suppress(FileExistsError):
                    os.link(stale, self.path)
            stale.unlink()

    def _now(self) -> float:
        probe = self.path.with_name(f"{FILE}.{self._token}.now")
        probe.write_bytes(b"")
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink()

    def _is_own(self) -> bool:
        return _token_of(self.path) == self._token

    def _live(self) -> None:
        while not self._ended.wait(HEARTBEAT):
            if self._is_own():
                with suppress(OSError):
                    os.utime(self.path)


def _token_of(path: Path) -> str | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        token: str = json.loads(path.read_bytes())["token"]
        return token
    return None


def _place() -> str:
    """Where process numbers mean the same: host, its start, and the container."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _born(pid: int) -> str:
    """When a process began, where the system tells (Linux): a number is given to many processes in turn."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return ""
