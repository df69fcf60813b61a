"""A command in a process of its own, with a fault at one of its operations on files and sockets; and changes
to every file of a run's folder, as a careless or a hostile hand makes them.

The process is forked, so that hundreds of cases need no start of Python. Operations are what Python's audit
hooks see (files that are opened for writing, renames, links, removals, folders, connections), and `os.write`
and `os.fsync`, through which records go. Only those below one folder, and connections, count.
"""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks_ext.runs.folder import SUMS, changed_in

KINDS = ("kill", "full disk", "input/output error")
_EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "os.truncate"}
_SOCKET = "socket.connect"
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int  # negative for a signal
    err: str
    operations: int  # that it did, where no fault was put in


class _Fault:
    def __init__(self, folder: Path, at: int, kind: str) -> None:
        self.folder, self.at, self.kind, self.count = str(folder), at, kind, 0
        self.write, self.sync = os.write, os.fsync

    def install(self) -> None:
        os.write = self._written  # type: ignore[assignment]
        os.fsync = self._synced  # type: ignore[assignment]
        sys.addaudithook(self._event)

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == _SOCKET:
            self._operation()
        elif event == "open":
            path, _, flags = arguments
            if flags is not None and flags & (os.O_WRONLY | os.O_RDWR) and self._inside(path):
                self._operation()
        elif event in _EVENTS and self._inside(arguments[0]):
            self._operation()

    def _written(self, file: int, content: Any) -> int:
        if self._inside(self._name(file)):
            self._operation()
        return self.write(file, content)

    def _synced(self, file: int) -> None:
        if self._inside(self._name(file)):
            self._operation()
        self.sync(file)

    def _name(self, file: int) -> str:
        try:
            return str(Path(f"/proc/self/fd/{file}").readlink())
        except OSError:
            return ""

    def _inside(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and str(path).startswith(self.folder)

    def _operation(self) -> None:
        self.count += 1
        if self.kind == "kill" and self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "full disk" and self.count >= self.at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.kind == "input/output error" and self.count == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def call(command: Sequence[str], folder: Path, *, at: int = 0, kind: str = "") -> Ended:
    """Run a `medtasks` command; operation `at` (from 1) on a folder goes wrong, as `kind` says."""
    log, counted = folder.parent / "faults.err", folder.parent / "faults.count"
    child = os.fork()
    if child == 0:
        _run(list(command), _Fault(folder, at, kind), log, counted)
    _, status = os.waitpid(child, 0)
    operations = int(counted.read_text() or 0) if counted.is_file() else 0
    counted.unlink(missing_ok=True)
    return Ended(os.waitstatus_to_exitcode(status), log.read_text(errors="replace"), operations)


def _run(command: list[str], fault: _Fault, log: Path, counted: Path) -> None:
    """Of the child; never returns."""
    code = 70
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        from medtasks_ext.cli.main import main

        sys.argv = ["medtasks", *command]
        fault.install()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:
            fault.kind = ""
            traceback.print_exc()
        fault.kind = ""
        sys.stderr.flush()
        counted.write_text(str(fault.count))
    finally:
        os._exit(code)


def fresh(place: Path, source: Path | None = None) -> None:
    """Begin a folder anew: empty, or as a copy."""
    for path in place.parent.glob(f".{place.name}*"):
        shutil.rmtree(path)
    shutil.rmtree(place, ignore_errors=True)
    if source:
        shutil.copytree(source, place)


def at_every_operation(
    command: list[str], place: Path, prepare: Callable[[], None], check: Callable[[str], None]
) -> None:
    """Put each kind of fault at each operation on a place, then call the command again without one.

    `prepare` makes the folder as it is before, `check` holds it against what it must be.
    """
    prepare()
    n = call(command, place).operations
    assert n > 5
    ends: Counter[tuple[str, int]] = Counter()
    for kind in KINDS:
        for at in range(1, n + 1):
            prepare()
            ended = call(command, place, at=at, kind=kind)
            said = f"{kind} at operation {at} of {n}: code {ended.code}\n{ended.err[-2000:]}"
            assert ended.code in ((KILLED,) if kind == "kill" else (0, 1, 2)) or at > n - 2, said
            assert "Traceback" not in ended.err, said
            again = call(command, place)
            assert again.code == 0, f"{said}\nagain: {again.err[-2000:]}"
            check(said)
            ends[kind, ended.code] += 1
    print(f"\n{command[0]}: {n} operations, {sum(ends.values())} faults: {dict(ends)}")


FLIPS = 6  # places of a file at which one bit is turned


def files_of(folder: Path) -> list[str]:
    """All files of a folder but hidden ones."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    names = (path.relative_to(folder) for path in paths)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def changed_contents(name: str, content: bytes, chance: random.Random) -> Iterator[tuple[str, bytes | None]]:
    """What was done to a file, in words, and what it holds then; None where it is gone."""
    for place in sorted(chance.sample(range(len(content)), min(FLIPS, len(content)))):
        flipped = content[place] ^ (1 << chance.randrange(7))
        yield f"a bit of byte {place} turned", content[:place] + bytes([flipped]) + content[place + 1 :]
    lines = content.splitlines(keepends=True)
    yield "end cut off", content[:-9]
    yield "last line cut off", b"".join(lines[:-1])
    yield "emptied", b""
    yield "taken away", None
    yield "a line more", content + (lines[-1] if lines else b"{}\n")
    if name.endswith(".jsonl") and len(lines) > 1 and lines[0] != lines[1]:
        yield "lines swapped", b"".join([lines[1], lines[0], *lines[2:]])
    if name.endswith(".json"):
        yield "a number changed", re.sub(rb"\d", lambda found: b"%d" % (9 - int(found[0])), content, count=1)


def named(folder: Path) -> set[str]:
    """The files that whatever reads the folder names; the hashes, where they are gone."""
    changed = changed_in(folder)
    return {SUMS} if changed is None else set(changed)


def all_named(folder: Path, copies: Path) -> Counter[str]:
    """Make every change to a copy; each must be named. Returns how many were made, by file."""
    made: Counter[str] = Counter()
    chance, copy = random.Random(1), copies / "copy"
    assert named(folder) == set()
    for name in files_of(folder):
        for what, changed in changed_contents(name, (folder / name).read_bytes(), chance):
            shutil.copytree(folder, copy)
            if changed is None:
                (copy / name).unlink()
            else:
                (copy / name).write_bytes(changed)
            # of damaged hashes, those files are named whose lines are gone or others
            seen = named(copy)
            assert seen if name == SUMS else name in seen, (name, what)
            made[name] += 1
            shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    (copy / "more.bak").write_bytes(b"")
    assert "more.bak" in named(copy)
    shutil.rmtree(copy)
    return made
