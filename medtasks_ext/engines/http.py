"""JSON over HTTP: a server's connections, and faults on the way to it by kind.

Runs and judges share it. Needs aiohttp, so import it where it is used.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from codecs import BOM_UTF8
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import aiohttp

from medtasks_ext.egress import LEFT, UNKNOWN_TEXT, AskedServer, Egress, Text, remedy_for
from medtasks_ext.engines import Answer, Fault, FaultKind, Outcome
from medtasks_ext.engines.replies import FILTERED, Reader, Server, is_filtered, status_fault, withheld
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, json_bytes, parse_json

CONNECT_SECONDS = 15.0
#: Bytes of a reply that are read, and of what a compressed one becomes.
LARGEST_REPLY = 32 * 2**20
#: Seconds of a server's Retry-After that are obeyed.
LONGEST_HOLD = 60.0


class Client:
    _place: AskedServer
    _session: aiohttp.ClientSession

    def __init__(self, server: Server, egress: Egress | None = None) -> None:
        self.server, self._egress = server, egress or Egress.of()

    async def __aenter__(self) -> Client:
        """Connections come with the requests."""
        server = self.server
        certificates: ssl.SSLContext | bool = server.verify
        if server.verify and server.ca_file:
            try:
                certificates = ssl.create_default_context(cafile=server.ca_file)
            except OSError as error:
                what = f"holds no certificates ({error.strerror or type(error).__name__})"
                where = f"ca_cert_path={server.ca_file}"
                raise MedtasksError(what, where=where, remedy="name a file in PEM format") from None
        self._place = place = await asyncio.to_thread(self._egress.place, server.url)
        held = self._egress if place.by_address else None
        self._session = aiohttp.ClientSession(
            connector=_Connector(held, limit=server.connections, ssl=certificates),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={**server.headers, "Content-Type": "application/json"},
            timeout=aiohttp.ClientTimeout(total=server.timeout, sock_connect=CONNECT_SECONDS),
            trust_env=place.uses_proxy,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(
        self, body: Any, read: Reader, *, path: str = "", quote: bool = False, text: Text = UNKNOWN_TEXT
    ) -> Outcome:
        """`quote`: whether a fault may quote the server's own words, which may quote the request."""
        if not self._place.permits(text):
            return withheld(self._place, text)
        self._egress.record(self._place, text)
        url, began, content = self.server.url + path, time.perf_counter(), bytearray()
        try:
            response = await self._session.post(url, data=json_bytes(body), allow_redirects=False)
            try:
                while len(content) <= LARGEST_REPLY and (block := await response.content.readany()):
                    content += block
            finally:
                if not response.closed:  # one that was read whole has given its connection back
                    response.close()
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as error:
            return self._unanswered(error)
        took, status, parsed, problem = time.perf_counter() - began, response.status, None, ""
        try:
            if len(content) > LARGEST_REPLY:
                raise JsonError(f"more than {LARGEST_REPLY // 2**20} MB")
            parsed = parse_json(content.removeprefix(BOM_UTF8).decode(errors="replace"))
        except JsonError as error:
            problem = "no JSON" if error.line else str(error)
        is_done = 200 <= status < 300
        if is_done and problem:
            reason = f"the server sent no completion ({problem})"
            return Fault(FaultKind.MALFORMED, reason, status=status, maybe_paid=1)
        if is_done or is_filtered(status, parsed):
            outcome = read(parsed if is_done else FILTERED, quote)
            if isinstance(outcome, Answer):
                outcome.seconds = took
            return outcome
        fault, after = status_fault(status, parsed, self.server, quote=quote), 0.0
        with suppress(ValueError):  # a date, which few write, or nothing that can be read
            after = max(0.0, min(float(response.headers.get("Retry-After", "")), LONGEST_HOLD))
        return replace(fault, after=after)

    def _unanswered(self, error: Exception) -> Fault:
        url, name = self.server.shown, type(error).__name__
        kind, remedy, maybe_paid = FaultKind.UNREACHABLE, "start the server, or correct base_url", 0
        if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError):  # the latter may be a ValueError, too
            reason = f"no secure connection to {url} ({name})"
            remedy = "name the authority's certificates with ca_cert_path"
        elif isinstance(error, ValueError):
            kind, reason = FaultKind.MODEL, f"no request can be sent to {url}"
            remedy = "correct base_url, or the key, which holds no line break"
        elif isinstance(error, _ElsewhereError):
            reason = f"the connection to {url} leads to {LEFT}: nothing was sent"
            remedy = remedy_for(self._place.host)
        elif isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
            number, said = getattr(error, "errno", None) or 0, getattr(error, "strerror", None)
            why = os.strerror(number) if number > 0 else said or name  # below 0 where a name is not found
            reason = f"no server answers at {url} ({why})"
        elif isinstance(error, asyncio.TimeoutError):
            kind, maybe_paid = FaultKind.TIMEOUT, 1
            reason, remedy = f"no reply within {self.server.timeout:g} s", "raise timeout"
        else:
            reason, remedy, maybe_paid = f"the connection to {url} broke ({name})", "", 1
        return Fault(kind, reason, remedy, maybe_paid=maybe_paid)


class _ElsewhereError(aiohttp.ClientError):
    """A connection leads where the text may not go; nothing was sent over it."""


class _Connector(aiohttp.TCPConnector):
    """A name may have another address by the time of a connection, so its other end is looked at."""

    def __init__(self, egress: Egress | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._egress, self._looked_at = egress, WeakSet[Any]()

    async def connect(self, *arguments: Any, **more: Any) -> Any:
        connection = await super().connect(*arguments, **more)
        if connection.protocol in self._looked_at:  # it is kept open, and leads where it led
            return connection
        peer = connection.transport.get_extra_info("peername") if connection.transport else None
        if self._egress and not (peer and self._egress.holds(str(peer[0]))):
            connection.close()
            raise _ElsewhereError
        self._looked_at.add(connection.protocol)
        return connection
