"""Append-only files of JSON lines, each line chained to the one before it by a hash.

A line ends with `"chain": "…"`: SHA-256 over the chain of the line before it and over this line without its
own chain, shortened to 128 bits. The first line is chained to the file's name. A chain shows that a line was
changed, taken out or put in; that lines are missing at the end shows against a sealed head alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from medtasks_ext.atomic import cannot_write, check_of, sync_folder
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, json_bytes
from medtasks_ext.secret_values import Secrets

_DIGITS = 32  # hexadecimal
_MARK = b', "chain": "'
_TAIL = len(_MARK) + _DIGITS + len(b'"}')


@dataclass(frozen=True, slots=True)
class Seal:
    """The state of a file: its lines, its bytes, and the chain of its last line."""

    lines: int
    bytes: int
    head: str


def _start(path: Path) -> str:
    return sha256(path.name.encode()).hexdigest()[:_DIGITS]


def _next(head: str, body: bytes) -> str:
    return sha256(head.encode() + body).hexdigest()[:_DIGITS]


def _checked(path: Path, number: int, line: bytes, head: str) -> tuple[Json, str]:
    body, mark = line[:-_TAIL], line[-_TAIL:]
    try:
        record = json.loads(line)
        chain = record.pop("chain")
        whole = mark.startswith(_MARK) and isinstance(chain, str)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        whole, record, chain = False, {}, ""
    expected = _next(head, body)
    if not whole or chain != expected:
        raise MedtasksError(
            f"line {number} is damaged, or not the one that was written there",
            where=path,
            remedy="delete this line and those after it; only what they hold is asked for again",
        )
    return record, expected


def holds_head(path: Path, size: int, head: str) -> bool:
    if size == 0:
        return head == _start(path)
    try:
        with path.open("rb") as file:
            file.seek(max(0, size - len(head) - 3))
            return file.read(len(head) + 3) == f'{head}"}}\n'.encode()
    except OSError:
        return False


def sealed_head(path: Path, seal: Seal) -> bool:
    """By the last sealed line alone."""
    return seal.lines == 0 or holds_head(path, seal.bytes, seal.head)


class FollowedFile:
    """Reads such a file while another process appends to it: each line once, as it comes.

    Nothing is written or locked. A line that is not whole yet is left for the next time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seal = Seal(0, 0, _start(path))  # of what was read

    @property
    def has_more(self) -> bool:
        try:
            return self.path.stat().st_size != self.seal.bytes
        except FileNotFoundError:
            return self.seal.bytes > 0

    def further(self) -> Iterator[Json]:
        """MedtasksError where a line is damaged, or lines that were read are gone."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            if self.seal.bytes:
                self._refuse_shorter()
            return
        with file:
            if os.fstat(file.fileno()).st_size < self.seal.bytes:
                self._refuse_shorter()
            file.seek(self.seal.bytes)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                seal = self.seal
                record, head = _checked(self.path, seal.lines + 1, line.rstrip(b"\n"), seal.head)
                self.seal = Seal(seal.lines + 1, seal.bytes + len(line), head)
                yield record

    def _refuse_shorter(self) -> None:
        raise MedtasksError(
            "is shorter than it was", where=self.path, remedy="look again: it was made anew, or cut off"
        )


class ChainedFile:
    """Appends to such a file.

    Lines reach the operating system as they are added, so that a killed process has lost nothing; `sync`
    makes them survive a power cut. A line that a crash cut short is dropped when the file is opened.
    Nothing is appended to a file that is longer or shorter than this process left it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seal = Seal(0, 0, _start(path))  # of what was read and added; to be kept elsewhere
        self._file: int | None = None
        self._secrets: Secrets | None = None  # known when the first record is added
        self._check: Callable[[], None] | None = None  # of the folder, known likewise

    def read(self) -> Iterator[Json]:
        """To be read to their end before the first `add`."""
        followed = FollowedFile(self.path)
        yield from followed.further()
        self.seal = followed.seal

    def add(self, record: Mapping[str, Any]) -> None:
        self.guard()
        assert self._secrets is not None
        body = self._secrets.hidden(json_bytes(record)[:-1])
        head = _next(self.seal.head, body)
        line = body + _MARK + head.encode() + b'"}\n'
        try:
            file = self._opened()
            self._check_size(os.fstat(file).st_size)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(file, rest) :]
        except OSError as error:
            self._drop_part()
            raise cannot_write(self.path, error) from None
        self.seal = Seal(self.seal.lines + 1, self.seal.bytes + len(line), head)

    def guard(self) -> None:
        """Raises what the folder's check refuses with."""
        if self._secrets is None or self._check is None:
            self._secrets, self._check = Secrets.known(), check_of(self.path)
        self._check()

    def _opened(self) -> int:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._drop_torn(self._file)
            sync_folder(self.path.parent)
        return self._file

    def _drop_torn(self, file: int) -> None:
        """Take off the line that a crash cut short; whole lines behind those that were read are another's."""
        size = os.fstat(file).st_size
        if size > self.seal.bytes:
            with os.fdopen(os.dup(file), "rb") as content:
                content.seek(self.seal.bytes)
                if b"\n" not in content.readline():
                    os.ftruncate(file, self.seal.bytes)
                    return
        self._check_size(size)

    def _check_size(self, size: int) -> None:
        if size != self.seal.bytes:
            raise MedtasksError(
                f"has {size:,} bytes, and this process left it with {self.seal.bytes:,}: another process has "
                "written there",
                where=self.path,
                remedy="call the same command again, once; what is stored is not asked for again",
            )

    def _drop_part(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, self.seal.bytes)

    def sync(self) -> None:
        if self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise cannot_write(self.path, error) from None

    def close(self) -> None:
        self.sync()
        if self._file is not None:
            os.close(self._file)
            self._file = None
