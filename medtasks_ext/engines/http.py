"""JSON over HTTP: a server, its connections, faults by kind, the rule by which requests are repeated.

Runs and judges share it. Needs aiohttp, so import it where it is used.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import aiohttp

from medtasks_ext.egress import LEFT, NO_TEXT, UNKNOWN_TEXT, AskedServer, Egress, Text, remedy_for
from medtasks_ext.engines.completion import FILTERED, Reader
from medtasks_ext.engines.faults import NO_KEY, ServerNames, is_filtered, status_fault, withheld
from medtasks_ext.engines.records import Answer, Fault, FaultKind
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.keys import shown_url

if TYPE_CHECKING:
    from aiohttp.connector import Connection

CONNECT_SECONDS = 15.0
#: Bytes of a reply that are read, and of what a compressed one becomes.
LARGEST_REPLY = 32 * 2**20
#: Full jitter: after try n a pause drawn from 0 to FIRST_PAUSE x 2^n seconds, at most LONGEST_PAUSE.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Seconds of a server's Retry-After that are obeyed.
LONGEST_HOLD = 60.0


@dataclass(frozen=True)
class Server:
    url: str  # of all requests, or what their paths are put behind
    model: str = ""  # as messages name it
    key: str = NO_KEY  # as messages name it, for example `the key in OPENAI_API_KEY`
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # of every request
    connections: int = 8  # requests under way at most
    timeout: float = 300.0  # seconds that a request may take, reply included
    verify: bool = True  # whether certificates are checked
    ca_file: str | None = None  # certificates to check them against, in place of the system's


@dataclass(frozen=True)
class Retry:
    """Which requests are sent again, and after how long."""

    max_retries: int = 3  # of one request, after its first try
    first_pause: float = FIRST_PAUSE  # seconds; doubled for each further try
    longest_pause: float = LONGEST_PAUSE  # seconds

    def again(self, fault: Fault, tries: int) -> bool:
        return fault.kind.is_transient and tries <= self.max_retries

    def pause(self, tries: int, after: float | None = None) -> float:
        """Seconds until then: what the server asks for, and a random time that keeps requests apart."""
        highest = min(self.longest_pause, self.first_pause * 2.0 ** min(tries, 64))
        return (after or 0.0) + random.uniform(0, highest)


class Pace:
    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    @property
    def left(self) -> float:
        return max(0.0, self._next - time.monotonic())

    def wait(self) -> float:
        """Take the next turn; seconds until it comes."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._gap
        return turn - now


class Clock:
    """A class, so that tests need not wait."""

    def now(self) -> float:
        return time.monotonic()

    async def pause(self, seconds: float, ended: asyncio.Event) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), seconds)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with status 2xx, or of a server that filtered prompt or answer."""

    body: Any  # read as JSON
    seconds: float  # from sending to its end


@dataclass(frozen=True, slots=True)
class Failed:
    fault: Fault
    #: seconds that the server asks to wait, at most `LONGEST_HOLD`; None if it does not
    after: float | None = None


class Client:
    def __init__(self, server: Server, *, clock: Clock | None = None, egress: Egress | None = None) -> None:
        self.server = server
        self.asked = ServerNames(shown_url(server.url), server.model, server.key)
        self._clock = clock or Clock()
        self._stopped = asyncio.Event()
        self._egress = egress or Egress.of()
        self._place: AskedServer | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        """Connections come with the requests."""
        server = self.server
        if any(character in text for text in server.headers.values() for character in "\r\n\0"):
            raise MedtasksError(
                "a header for the server holds a line break",
                where=self.asked.key,
                remedy="set the key without the line break at its end",
            )
        self._place = place = await asyncio.to_thread(self._egress.place, server.url)
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                self._egress if place.by_address else None,
                limit=server.connections,
                ssl=_certificates(server),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=server.headers,
            trust_env=place.uses_proxy,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    def now(self) -> float:
        return self._clock.now()

    async def pause(self, seconds: float) -> None:
        if seconds > 0 and not self._stopped.is_set():
            await self._clock.pause(seconds, self._stopped)

    def stop(self) -> None:
        """Pauses end now, and none begins."""
        self._stopped.set()

    async def ask(
        self,
        body: Any,
        read: Reader,
        *,
        path: str = "",
        quote: bool = False,
        text: Text = UNKNOWN_TEXT,
    ) -> Answer | Failed:
        """`quote`: whether a fault may quote the server's own words, which may quote the request."""
        reply = await self.exchange("POST", path, body, quote=quote, text=text)
        if isinstance(reply, Failed):
            return reply
        outcome = read(reply.body, quote)
        return replace(outcome, seconds=reply.seconds) if isinstance(outcome, Answer) else Failed(outcome)

    async def exchange(
        self,
        method: str,
        path: str = "",
        body: Any = None,
        *,
        seconds: float | None = None,
        quote: bool = False,
        text: Text = UNKNOWN_TEXT,
    ) -> Reply | Failed:
        """`seconds` that it may take, if not the server's usual time; `quote` as in `ask`."""
        assert self._session is not None
        if withheld := self._withheld(NO_TEXT if body is None else text):
            return Failed(withheld)
        url, seconds = self.server.url + path, seconds or self.server.timeout
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        data = None if body is None else aiohttp.JsonPayload(body)
        began = time.perf_counter()
        try:
            async with self._session.request(
                method, url, data=data, allow_redirects=False, timeout=timeout
            ) as response:
                status, headers = response.status, response.headers
                content = await _content(response)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            return Failed(self._unanswered(error, seconds, paid=method == "POST"))
        took = time.perf_counter() - began
        parsed, problem = _parsed(content)
        if not 200 <= status < 300:
            if is_filtered(status, parsed):
                return Reply(FILTERED, took)
            fault = status_fault(status, parsed, self.asked, quote=quote)
            return Failed(fault, _wished(headers) if fault.kind is FaultKind.BUSY else None)
        if problem:
            reason = f"the server sent no completion ({problem})"
            return Failed(Fault(FaultKind.MALFORMED, reason, status=status, maybe_paid=1))
        return Reply(parsed, took)

    def _withheld(self, text: Text) -> Fault | None:
        assert self._place is not None
        if self._place.permits(text):
            self._egress.record(self._place, text)
            return None
        return withheld(self._place, text)

    def _unanswered(self, error: Exception, seconds: float, *, paid: bool) -> Fault:
        url = self.asked.url
        if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError):  # the latter may be a ValueError, too
            reason = f"no secure connection to {url} ({type(error).__name__})"
            return Fault(FaultKind.UNREACHABLE, reason, "name the authority's certificates with ca_cert_path")
        if isinstance(error, ValueError):
            return Fault(FaultKind.MODEL, f"no request can be sent to {url}", "correct base_url")
        if isinstance(error, _ElsewhereError):
            assert self._place is not None
            reason = f"the connection to {url} leads to {LEFT}: nothing was sent"
            return Fault(FaultKind.UNREACHABLE, reason, remedy_for(self._place.host))
        remedy = "start the server, or correct base_url"
        if isinstance(error, aiohttp.ClientConnectorError):
            number = error.errno or 0
            why = os.strerror(number) if number > 0 else error.os_error.strerror or "no connection"
            return Fault(FaultKind.UNREACHABLE, f"no server answers at {url} ({why})", remedy)
        if isinstance(error, aiohttp.ServerTimeoutError):
            reason = f"no server answers at {url} within {CONNECT_SECONDS:g} s"
            return Fault(FaultKind.UNREACHABLE, reason, remedy)
        if isinstance(error, asyncio.TimeoutError):
            reason = f"no reply within {seconds:g} s"
            return Fault(FaultKind.TIMEOUT, reason, "raise timeout", maybe_paid=int(paid))
        reason = f"the connection to {url} broke ({type(error).__name__})"
        return Fault(FaultKind.UNREACHABLE, reason, maybe_paid=int(paid))


class _ElsewhereError(aiohttp.ClientError):
    """A connection leads where the text may not go; nothing was sent over it."""


class _Connector(aiohttp.TCPConnector):
    """A name may have another address by the time of a connection, so its other end is looked at."""

    def __init__(self, egress: Egress | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._egress = egress

    async def connect(self, *arguments: Any, **more: Any) -> Connection:
        connection = await super().connect(*arguments, **more)
        peer = connection.transport.get_extra_info("peername") if connection.transport else None
        if self._egress and not (peer and self._egress.holds(str(peer[0]))):
            connection.close()
            raise _ElsewhereError
        return connection


def _wished(headers: Mapping[str, str]) -> float | None:
    asked = seconds_asked(headers.get("Retry-After", ""), datetime.now(timezone.utc))
    return None if asked is None else min(asked, LONGEST_HOLD)


def seconds_asked(retry_after: str, now: datetime) -> float | None:
    """Seconds that a server asks to wait: a number, or a date (RFC 9110, 10.2.3); None for anything else."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - now).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _certificates(server: Server) -> ssl.SSLContext | bool:
    if not server.verify or server.ca_file is None:
        return server.verify
    try:
        return ssl.create_default_context(cafile=server.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise MedtasksError(
            f"holds no certificates ({error.strerror or type(error).__name__})",
            where=f"ca_cert_path={server.ca_file}",
            remedy="name a file in PEM format",
        ) from None


async def _content(response: aiohttp.ClientResponse) -> bytes | None:
    """The body; None for one that is too large."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > LARGEST_REPLY:
            response.close()
            return None
        parts.append(part)
    return b"".join(parts)


def _parsed(content: bytes | None) -> tuple[Any, str]:
    """(what a body holds, why it cannot be read)."""
    if content is None:
        return None, f"more than {LARGEST_REPLY // 2**20} MB"
    try:
        return parse_json(content.decode("utf-8-sig", errors="replace")), ""
    except JsonError as error:
        return None, "no JSON" if error.line else str(error)
