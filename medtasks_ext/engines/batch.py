"""Batch files: requests as lines of a file that is given away whole, results as lines of what comes back.

OpenAI's format, which `vllm run-batch` and most providers share, and Anthropic's:

{"custom_id": …, "method": "POST", "url": …, "body": …}  gives  {"custom_id": …, "response": …, "error": …}
{"custom_id": …, "params": …}                            gives  {"custom_id": …, "result": …}
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from medtasks_ext.atomic import beside, cannot_write, check_regular, sync_folder
from medtasks_ext.engines.budget import n_bytes
from medtasks_ext.engines.completion import FILTERED, Reader, chat_answer, message_answer, text_answer
from medtasks_ext.engines.engine import WAIT_SECONDS, Done, Engine, Feed
from medtasks_ext.engines.faults import ServerNames, error_message, is_filtered, status_fault
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, JsonError, parse_json

#: What OpenAI takes in one file, the smallest of the large providers' limits.
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000

#: Where nobody is named.
NOBODY = ServerNames("")
_ENDED = {
    "batch_expired": "the batch expired before this request was worked on",
    "expired": "the batch expired before this request was worked on",
    "batch_cancelled": "the batch was cancelled before this request was worked on",
    "canceled": "the batch was cancelled before this request was worked on",
}


@dataclass(frozen=True)
class Interface:
    """What one kind of request looks like in a batch."""

    url: str  # of the request in OpenAI's format; empty for Anthropic's
    read: Reader  # makes an answer of the reply to it

    def line(self, custom_id: str, body: Json) -> bytes:
        """One request. Half of a surrogate pair, for which whole files are refused, becomes `?`."""
        record = (
            {"custom_id": custom_id, "method": "POST", "url": self.url, "body": body}
            if self.url
            else {"custom_id": custom_id, "params": body}
        )
        return json.dumps(record, ensure_ascii=False).encode(errors="replace") + b"\n"


CHAT = Interface("/v1/chat/completions", chat_answer)
TEXT = Interface("/v1/completions", text_answer)
MESSAGES = Interface("", message_answer)


# ---------------------------------------------------------------------- lines out


@dataclass(frozen=True)
class Written:
    """A file of requests."""

    path: Path
    requests: int
    bytes: int


class BatchFiles:
    """Writes lines to FILE, or to FILE-00001-of-00003 and so on where one would be too large.

    A context manager. The files appear together, when it ends without an error, and those of an earlier call
    make way.

    Attributes:
        written: the files, once they are there.

    Args:
        path: FILE.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.written = path, list[Written]()
        self._parts: list[Written] = []
        self._file: BinaryIO | None = None

    def __enter__(self) -> BatchFiles:
        """Begin; nothing is created yet.

        Raises:
            MedtasksError: the place is a folder.
        """
        if self.path.is_dir():
            raise MedtasksError("is a folder", where=self.path, remedy="name a file")
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Give the files their names, or take them away where the body failed."""
        try:
            self._close()
            if error is None and self._parts:
                self._place()
        except OSError as failure:
            raise cannot_write(self.path, failure) from None
        finally:
            for part in self._parts:
                part.path.unlink(missing_ok=True)

    def add(self, line: bytes) -> None:
        """Append one request.

        Raises:
            MedtasksError: the disk does not take it.
        """
        last = self._parts[-1] if self._parts else None
        try:
            if last is None or last.requests >= MOST_REQUESTS or last.bytes + len(line) > MOST_BYTES:
                last = self._next()
            assert self._file is not None
            self._file.write(line)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._parts[-1] = Written(last.path, last.requests + 1, last.bytes + len(line))

    def _next(self) -> Written:
        self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = beside(self.path)
        self._file = part.open("xb")
        self._parts.append(Written(part, 0, 0))
        return self._parts[-1]

    def _close(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def _place(self) -> None:
        for former in self._former():
            former.unlink()
        n = len(self._parts)
        for number, part in enumerate(self._parts, start=1):
            name = f"-{number:05}-of-{n:05}" if n > 1 else ""
            path = self.path.with_name(f"{self.path.stem}{name}{self.path.suffix}")
            part.path.replace(path)
            self.written.append(replace(part, path=path))
        sync_folder(self.path.parent)

    def _former(self) -> list[Path]:
        """What an earlier call left: a part of it beside new ones would be asked, and paid, again."""
        name = re.compile(
            re.escape(self.path.stem) + r"(?:-\d{5}-of-\d{5})?" + re.escape(self.path.suffix) + r"\Z"
        )
        folder = self.path.parent
        return [path for path in folder.iterdir() if name.match(path.name)] if folder.is_dir() else []


@dataclass
class WrittenCount:
    """What was written."""

    requests: int = 0
    prompt_bytes: int = 0  # of all prompts
    most_tokens: int = 0  # that all answers may have
    tasks: set[str] = field(default_factory=set)  # whose requests they are


class BatchEngine(Engine):
    """Writes requests to files in place of sending them; their outcomes come later, in files of results.

    Args:
        body: what is sent for a request.
        ready: makes a request ready to be written, in the thread that builds requests.

    Attributes:
        amount: what was written so far.
    """

    window, sends = 1024, False

    def __init__(
        self,
        files: BatchFiles,
        interface: Interface,
        body: Callable[[Request], Json],
        ready: Callable[[Request], Request | Fault] = lambda request: request,
    ) -> None:
        self._files, self._interface, self._body, self._ready = files, interface, body, ready
        self.amount = WrittenCount()

    def prepare(self, request: Request) -> Request | Fault:
        """Make a request ready to be written."""
        return self._ready(request)

    def run(self, feed: Feed, done: Done) -> None:
        """Write until the feed is over.

        Raises:
            MedtasksError: the disk takes no more.
        """
        while not feed.over:
            if (request := feed.take()) is None:
                feed.wait(WAIT_SECONDS)
                continue
            self._files.add(self._interface.line(request.key, self._body(request)))
            self.amount.requests += 1
            self.amount.prompt_bytes += n_bytes(request.prompt)
            self.amount.most_tokens += int(request.settings.get("max_gen_toks") or 0)
            self.amount.tasks.add(request.task)
            self.later(request)


# ---------------------------------------------------------------------- lines in


class NoResultError(Exception):
    """A line that holds no result; says why in a few words."""


@dataclass(frozen=True)
class Result:
    """One line of results."""

    number: int
    custom_id: str
    record: Json


def read_results(path: Path) -> Iterator[Result | str]:
    """The results in a file, in its order; for a line that holds none, what is wrong with it.

    Raises:
        MedtasksError: there is no such file, or it holds requests.
    """
    check_regular(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise MedtasksError(
            error.strerror or "cannot be read", where=path, remedy="name a file of results"
        ) from None
    with file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                result = _result(number, line)
            except NoResultError as error:
                yield f"line {number} {error}"
                continue
            if not _RESULT & result.record.keys() and _REQUEST & result.record.keys():
                raise MedtasksError(
                    "holds requests", where=path, remedy="give the file of results that was made of it"
                )
            yield result


_RESULT, _REQUEST = frozenset({"response", "error", "result"}), frozenset({"url", "body", "params"})


def _result(number: int, line: bytes) -> Result:
    try:
        record = parse_json(line)
    except JsonError as error:
        if not error.line:
            raise NoResultError(f"cannot be read: {error}") from None
        line = line.removeprefix(b"\xef\xbb\xbf").strip()
        cut = line.startswith(b"{") and not line.endswith(b"}")
        raise NoResultError("is cut short" if cut else "is no JSON") from None
    custom_id = record.get("custom_id") if isinstance(record, dict) else None
    if not isinstance(custom_id, str):
        raise NoResultError("has no custom_id")
    return Result(number, custom_id, record)


@dataclass
class FileReport:
    """What was in a file of results."""

    path: Path
    answers: int = 0  # that are new
    faults: int = 0  # results without an answer
    there: int = 0  # results that were stored before
    repeated: int = 0  # results that came before in this call, with the same content
    #: ids that came before in this call, with another content; the first result counts
    different: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # ids of requests that are none of ours
    broken: list[str] = field(default_factory=list)  # lines that hold no result, and why

    @property
    def is_sound(self) -> bool:
        """Whether every line is a result of ours."""
        return not self.unknown and not self.broken


class ImportedAs(Enum):
    """What became of a result that was handed over."""

    ANSWER = "answer"
    FAULT = "fault"
    STORED_BEFORE = "stored before"


class BatchTarget(Protocol):
    """Requests whose outcomes come in files: those of a run, or of a jury."""

    def knows(self, key: str) -> bool:
        """Whether there is such a request, with an answer or without."""

    def waits(self, key: str) -> bool:
        """Whether such a request has no answer yet."""

    def about(self, key: str) -> tuple[ServerNames, bool]:
        """How messages name server, model and key of a request; whether they may quote the server.

        The server's own words may quote the request.
        """

    def store(self, key: str, outcome: Outcome) -> ImportedAs:
        """Store what became of a request that waits."""


class Intake:
    """Takes results of requests, each once, from any number of files in any order.

    Args:
        interface: of the requests.
        whose: whose requests they are, for messages.
    """

    def __init__(self, awaiting: BatchTarget, interface: Interface, whose: str) -> None:
        self._awaiting, self._interface, self._whose = awaiting, interface, whose
        self._seen: dict[str, bytes] = {}

    def check(self, paths: Iterable[Path]) -> None:
        """Look at files before anything of them is stored.

        Raises:
            MedtasksError: one of them is not there, holds requests, or results of other requests alone.
        """
        for path in paths:
            unknown = 0
            for line in read_results(path):
                if isinstance(line, Result):
                    if self._awaiting.knows(line.custom_id):
                        break
                    unknown += 1
            else:
                if unknown:
                    raise MedtasksError(
                        f"none of its {unknown:,} results is of {self._whose}; nothing was stored",
                        where=path,
                        remedy="give them to the run whose requests they answer",
                    )

    def take(self, path: Path) -> FileReport:
        """Store the results in a file.

        Raises:
            MedtasksError: the disk takes no more. What was stored stays.
        """
        report = FileReport(path)
        for line in read_results(path):
            if not isinstance(line, Result):
                report.broken.append(line)
                continue
            try:
                self._take(line, report)
            except NoResultError as error:
                report.broken.append(f"line {line.number} {error}")
        return report

    def _take(self, line: Result, report: FileReport) -> None:
        key = line.custom_id
        if not self._awaiting.knows(key):
            report.unknown.append(key)
            return
        if key not in self._seen and not self._awaiting.waits(key):
            report.there += 1
            return
        outcome = self._outcome(line.record, key)
        content = _content(outcome)
        if self._seen.get(key) == content:
            report.repeated += 1
        elif not self._awaiting.waits(key):
            report.different.append(key)
        else:  # an answer stands in for a fault, and a fault for another one
            self._seen[key] = content
            became = self._awaiting.store(key, outcome)
            report.answers += became is ImportedAs.ANSWER
            report.faults += became is ImportedAs.FAULT
            report.there += became is ImportedAs.STORED_BEFORE

    def _outcome(self, record: Json, key: str) -> Outcome:
        outcome = outcome_of(record, self._interface.read, NOBODY)
        if isinstance(outcome, Answer):
            return outcome
        asked, quote = self._awaiting.about(key)
        return outcome_of(record, self._interface.read, asked, quote=quote)


def _content(outcome: Outcome) -> bytes:
    """Tells results apart by what they say, not by the number that the server gave them."""
    said = (outcome.text, outcome.finish) if isinstance(outcome, Answer) else (outcome.kind, outcome.reason)
    return sha256(repr(said).encode(errors="surrogatepass")).digest()[:16]


def outcome_of(record: Json, read: Reader, asked: ServerNames, *, quote: bool = False) -> Outcome:
    """What became of a request.

    Args:
        record: a line of results.
        read: makes an answer of a reply with status 200.
        asked: how messages name server, model and key.
        quote: whether a fault may quote the server's own words, which may quote the request.

    Raises:
        NoResultError: the line does not say.
    """
    if isinstance(message := record.get("result"), dict):
        return _message_outcome(message, read, quote)
    response, error = record.get("response"), record.get("error")
    if not isinstance(response, dict):
        if not error:
            raise NoResultError("has neither a response nor an error")
        return _batch_fault(error, quote)
    status = response.get("status_code", 200)
    if type(status) is not int:
        raise NoResultError("has no status")
    if error or not 200 <= status < 300:
        body = response.get("body") or _as_body(error)
        if is_filtered(status, body):
            return read(FILTERED, quote)
        return status_fault(status, body, asked, quote=quote)
    outcome = read(response.get("body"), quote)
    name = response.get("request_id")
    return (
        replace(outcome, request_id=name)
        if isinstance(outcome, Answer) and isinstance(name, str)
        else outcome
    )


def _message_outcome(result: Json, read: Reader, quote: bool) -> Outcome:
    """Of a line in Anthropic's format."""
    kind = result.get("type")
    if kind == "succeeded":
        return read(result.get("message"), quote)
    if kind == "errored":
        return _batch_fault(result.get("error"), quote)
    if isinstance(kind, str) and kind in _ENDED:
        return _batch_fault({"code": kind}, quote)
    raise NoResultError("does not say what became of the request")


def _batch_fault(error: Any, quote: bool) -> Fault:
    """The fault of a request that got no reply of HTTP."""
    body = _as_body(error)
    code = body["error"].get("code") if isinstance(body.get("error"), dict) else None
    if isinstance(code, str) and code in _ENDED:
        return Fault(FaultKind.TIMEOUT, _ENDED[code], "ask again")
    refused = "invalid_request" in error_message(body, quote=False)
    return Fault(
        FaultKind.REFUSED if refused else FaultKind.ENGINE, f"the batch failed{error_message(body, quote)}"
    )


def _as_body(error: Any) -> Json:
    """An error as a server's reply has it: servers give the object, the reply around it, or a text."""
    return error if isinstance(error, dict) and "error" in error else {"error": error}
