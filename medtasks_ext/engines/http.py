"""JSON over HTTP: a server's connections, and faults on the way to it by kind.

Runs and judges share it. Needs aiohttp, so import it where it is used.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from medtasks_ext.egress import LEFT, NO_TEXT, UNKNOWN_TEXT, AskedServer, Egress, Text, remedy_for
from medtasks_ext.engines import Answer, Fault, FaultKind, Outcome
from medtasks_ext.engines.replies import FILTERED, Reader, Server, is_filtered, status_fault, withheld
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, parse_json

if TYPE_CHECKING:
    from aiohttp.connector import Connection

CONNECT_SECONDS = 15.0
#: Bytes of a reply that are read, and of what a compressed one becomes.
LARGEST_REPLY = 32 * 2**20
#: Seconds of a server's Retry-After that are obeyed.
LONGEST_HOLD = 60.0


class Clock:
    """A class, so that tests need not wait."""

    def now(self) -> float:
        return time.monotonic()

    async def pause(self, seconds: float, ended: asyncio.Event) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), seconds)


class Reply(NamedTuple):
    """A reply with status 2xx, or of a server that filtered prompt or answer."""

    body: Any  # read as JSON
    seconds: float  # from sending to its end


class Client:
    def __init__(self, server: Server, egress: Egress | None = None) -> None:
        self.server, self._egress = server, egress or Egress.of()
        self._place: AskedServer | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        """Connections come with the requests."""
        server = self.server
        if any(character in text for text in server.headers.values() for character in "\r\n\0"):
            remedy = "set the key without the line break at its end"
            raise MedtasksError("a header for the server holds a line break", where=server.key, remedy=remedy)
        self._place = place = await asyncio.to_thread(self._egress.place, server.url)
        held = self._egress if place.by_address else None
        self._session = aiohttp.ClientSession(
            connector=_Connector(held, limit=server.connections, ssl=_certificates(server)),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=server.headers,
            trust_env=place.uses_proxy,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def ask(
        self, body: Any, read: Reader, *, path: str = "", quote: bool = False, text: Text = UNKNOWN_TEXT
    ) -> Outcome:
        """`quote`: whether a fault may quote the server's own words, which may quote the request."""
        reply = await self.exchange("POST", path, body, quote=quote, text=text)
        if isinstance(reply, Fault):
            return reply
        outcome = read(reply.body, quote)
        return replace(outcome, seconds=reply.seconds) if isinstance(outcome, Answer) else outcome

    async def exchange(
        self,
        method: str,
        path: str = "",
        body: Any = None,
        *,
        seconds: float | None = None,
        quote: bool = False,
        text: Text = UNKNOWN_TEXT,
    ) -> Reply | Fault:
        """`seconds` that it may take, if not the server's usual time; `quote` as in `ask`."""
        assert self._session is not None and self._place is not None
        text = NO_TEXT if body is None else text
        if not self._place.permits(text):
            return withheld(self._place, text)
        self._egress.record(self._place, text)
        url, seconds = self.server.url + path, seconds or self.server.timeout
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        data = None if body is None else aiohttp.JsonPayload(body)  # lm-eval's own to the byte
        began = time.perf_counter()
        try:
            async with self._session.request(
                method, url, data=data, allow_redirects=False, timeout=timeout
            ) as response:
                status, wish = response.status, response.headers.get("Retry-After", "")
                content = await _content(response)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            return self._unanswered(error, seconds, paid=int(method == "POST"))
        took = time.perf_counter() - began
        parsed, problem = None, f"more than {LARGEST_REPLY // 2**20} MB"
        if content is not None:
            try:
                parsed, problem = parse_json(content.decode("utf-8-sig", errors="replace")), ""
            except JsonError as error:
                problem = "no JSON" if error.line else str(error)
        if not 200 <= status < 300:
            if is_filtered(status, parsed):
                return Reply(FILTERED, took)
            fault = status_fault(status, parsed, self.server, quote=quote)
            if fault.kind is FaultKind.BUSY:
                with suppress(ValueError):  # a date, which few write, or nothing that can be read
                    after = min(float(wish), LONGEST_HOLD)
                    fault = replace(fault, after=after if after > 0 else None)
            return fault
        if problem:
            reason = f"the server sent no completion ({problem})"
            return Fault(FaultKind.MALFORMED, reason, status=status, maybe_paid=1)
        return Reply(parsed, took)

    def _unanswered(self, error: Exception, seconds: float, *, paid: int) -> Fault:
        url, name = self.server.shown, type(error).__name__
        kind, remedy, maybe_paid = FaultKind.UNREACHABLE, "start the server, or correct base_url", 0
        if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError):  # the latter may be a ValueError, too
            reason = f"no secure connection to {url} ({name})"
            remedy = "name the authority's certificates with ca_cert_path"
        elif isinstance(error, ValueError):
            kind, reason, remedy = FaultKind.MODEL, f"no request can be sent to {url}", "correct base_url"
        elif isinstance(error, _ElsewhereError):
            reason = f"the connection to {url} leads to {LEFT}: nothing was sent"
            remedy = remedy_for(self._place.host) if self._place else ""
        elif isinstance(error, aiohttp.ClientConnectorError):
            number = error.errno or 0
            why = os.strerror(number) if number > 0 else error.os_error.strerror or "no connection"
            reason = f"no server answers at {url} ({why})"
        elif isinstance(error, aiohttp.ServerTimeoutError):
            reason = f"no server answers at {url} within {CONNECT_SECONDS:g} s"
        elif isinstance(error, asyncio.TimeoutError):
            kind, reason, remedy = FaultKind.TIMEOUT, f"no reply within {seconds:g} s", "raise timeout"
            maybe_paid = paid
        else:
            reason, remedy, maybe_paid = f"the connection to {url} broke ({name})", "", paid
        return Fault(kind, reason, remedy, maybe_paid=maybe_paid)


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


def _certificates(server: Server) -> ssl.SSLContext | bool:
    if not server.verify or server.ca_file is None:
        return server.verify
    try:
        return ssl.create_default_context(cafile=server.ca_file)
    except (OSError, ssl.SSLError) as error:
        what = f"holds no certificates ({error.strerror or type(error).__name__})"
        where = f"ca_cert_path={server.ca_file}"
        raise MedtasksError(what, where=where, remedy="name a file in PEM format") from None


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
