"""One judge's endpoint: a request, and what its outcome means for the requests after it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import aiohttp

from medtasks_ext.judge.store import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.judge.jury import Judge

CONNECT_SECONDS, PROBE_SECONDS = 15.0, 60.0
#: Bytes per token where a server does not count: English and Chinese text come close to it.
BYTES_PER_TOKEN = 4
_NO_MONEY = re.compile(r"insufficient_quota|insufficient.{0,20}(?:credit|balance|fund)", re.IGNORECASE)


@dataclass(frozen=True)
class Completion:
    """A reply that arrived (and was paid for)."""

    text: str
    usage: Usage
    fault: str = ""


class AgainError(Exception):
    """The request may work later.

    Attributes:
        status: HTTP status; None where no answer came.
        after: seconds that the server asks for, or None.
        maybe_paid: the server may have worked on it and counted it.
    """

    def __init__(
        self, reason: str, *, status: int | None = None, after: float | None = None, maybe_paid: bool = False
    ) -> None:
        super().__init__(reason)
        self.status, self.after, self.maybe_paid = status, after, maybe_paid


class RefusedError(Exception):
    """This request will never work; others may."""


class StoppedError(Exception):
    """No request to this endpoint will work until someone mends something."""


class Pace:
    """Spaces the requests of one endpoint: a rate limit, and pauses that the server asks for."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0

    def wait(self) -> float:
        """Take the next turn; seconds until it comes."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._gap
        return turn - now

    def pause(self, seconds: float) -> None:
        """No turn before that many seconds have passed."""
        self._next = max(self._next, time.monotonic() + seconds)


class Endpoint:
    """Sends chat completions to one judge."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.pace = Pace(judge.requests_per_minute)
        self.takes_schema = True
        self.stopped = ""
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Endpoint:
        key = self.judge.api_key
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.judge.max_concurrent),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            # texts for a server on this machine must not take the way over a proxy
            trust_env=not self.judge.is_local,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def fault(self) -> str:
        """Why the judge cannot work, found out before anything is paid for; empty if it can.

        Asks for the list of models. Where the model is not on it, or a key is to be tried (lists are
        often open to anyone), a request for one token decides.
        """
        listed: list[str] = []
        try:
            status, body = await self._exchange("GET", "/models", None, PROBE_SECONDS)
            if status == 200:  # a server may take the key for chats and not for the list
                listed = [str(item["id"]) for item in json.loads(body)["data"]]
        except AgainError as error:
            if error.status is None:
                return str(error)
        except StoppedError as error:
            return str(error)
        except (ValueError, KeyError, TypeError):
            pass  # no list of models
        is_listed = self.judge.model in listed
        if is_listed and not self.judge.api_key_env:
            return ""
        try:
            await self._chat([{"role": "user", "content": "1"}], None, limit=1)
        except StoppedError as error:
            return f"{error}; it has: {_shortened(', '.join(listed))}" if listed else str(error)
        except RefusedError as error:
            # a model that is there may refuse so short a reply
            return "" if is_listed else f"a request for one token is refused: {error}"
        except AgainError as error:
            return "" if error.status == 429 else str(error)  # a busy server will answer later
        return ""

    async def complete(self, messages: list[dict[str, str]], schema: Mapping[str, Any]) -> Completion:
        """One reply, under the schema where the server takes one.

        A server that refuses the schema is asked without, then and from then on.

        Raises:
            AgainError, RefusedError, StoppedError: there is no reply.
        """
        if not self.takes_schema:
            return await self._chat(messages, None)
        try:
            return await self._chat(messages, schema)
        except RefusedError:
            reply = await self._chat(messages, None)  # refused again: it was not the schema
            self.takes_schema = False
            return reply

    async def _chat(
        self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None, limit: int | None = None
    ) -> Completion:
        judge = self.judge
        body: dict[str, Any] = {
            "model": judge.model,
            "messages": messages,
            judge.max_tokens_key: limit or judge.max_tokens,
        }
        if judge.temperature is not None:
            body["temperature"] = judge.temperature
        if schema is not None:
            wanted = {"name": "verdict", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        seconds = min(judge.timeout, PROBE_SECONDS) if limit else judge.timeout
        status, text = await self._exchange(
            "POST", "/chat/completions", {**body, **judge.extra_body}, seconds
        )
        if status != 200:
            raise self._error(status, text)
        return _completion(text, messages)

    async def _exchange(self, method: str, path: str, body: Any, seconds: float) -> tuple[int, str]:
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        try:
            async with self._session.request(
                method, self.judge.base_url + path, json=body, allow_redirects=False, timeout=timeout
            ) as response:
                text = await response.text(errors="replace")
                if response.status == 429 or response.status >= 500 or response.status in (408, 409, 425):
                    reason = f"HTTP {response.status}{_message(text)}"
                    if _NO_MONEY.search(text):
                        raise StoppedError(f"{self.judge.base_url} has no credit left ({reason})")
                    raise AgainError(reason, status=response.status, after=_retry_after(response.headers))
                return response.status, text
        except aiohttp.ClientConnectorError as error:
            reason = os.strerror(error.errno) if error.errno else error.os_error.strerror or "not found"
            raise AgainError(f"no server answers at {self.judge.base_url} ({reason})") from None
        except asyncio.TimeoutError:
            raise AgainError(f"no reply within {seconds:g} s", maybe_paid=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise AgainError(
                f"the connection broke ({type(error).__name__})", maybe_paid=method == "POST"
            ) from None

    def _error(self, status: int, text: str) -> Exception:
        what = f"HTTP {status}{_message(text)}"
        if status in (401, 403):
            return StoppedError(self._refused_key(text))
        if status == 402:
            return StoppedError(f"{self.judge.base_url} asks for payment ({what})")
        if status == 404:
            return StoppedError(f"{self.judge.base_url} has no model {self.judge.model!r} ({what})")
        if 300 <= status < 400:
            return StoppedError(
                f"{self.judge.base_url} redirects elsewhere ({what}); texts go to the given address only"
            )
        return RefusedError(what)

    def _refused_key(self, text: str) -> str:
        named = (
            f"the key in {self.judge.api_key_env}" if self.judge.api_key_env else "a request without a key"
        )
        return f"{self.judge.base_url} refuses {named}{_message(text)}"


def _completion(text: str, messages: list[dict[str, str]]) -> Completion:
    n_bytes = sum(len(message["content"].encode()) for message in messages)
    try:
        body = json.loads(text)
        choice = body["choices"][0]
        content = choice["message"].get("content") or ""
        refusal = choice["message"].get("refusal")
        finish = choice.get("finish_reason")
        if not isinstance(content, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise AgainError(f"the server sent no completion{_message(text)}", maybe_paid=True) from None
    counted = body.get("usage")
    try:
        usage = Usage(int(counted["prompt_tokens"]), int(counted["completion_tokens"]), n_bytes)
    except (KeyError, TypeError, ValueError):
        usage = Usage(n_bytes // BYTES_PER_TOKEN, len(content.encode()) // BYTES_PER_TOKEN, n_bytes, False)
    fault = "the judge declined" if refusal else "reply cut at max_tokens" if finish == "length" else ""
    return Completion(content, usage, fault)


def _message(text: str) -> str:
    """The server's own message, shortened, in brackets."""
    try:
        body = json.loads(text)
        error = body.get("error", body)
        said = error.get("message") if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        said = None
    said = " ".join(said.split()) if isinstance(said, str) else ""
    return f": {_shortened(said)}" if said else ""


def _shortened(text: str, length: int = 160) -> str:
    return text if len(text) <= length else text[:length] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: a number, or a date (RFC 9110, 10.2.3)."""
    value = headers.get("Retry-After", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError):
        return None
