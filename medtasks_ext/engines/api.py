"""lm-eval's API models, asked by the client that judges use as well.

Needs lm-eval's extra `api`, so import it where it is used.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lm_eval.models.anthropic_llms import AnthropicChat
from lm_eval.models.api_models import TemplateAPI
from lm_eval.models.openai_completions import AzureOpenaiChatCompletionsLM

from medtasks_ext.egress import Egress, Place, is_loopback, keep_from_proxies
from medtasks_ext.engines.engine import Done, Engine, Feed
from medtasks_ext.engines.faults import withheld
from medtasks_ext.engines.http import Client, Clock, Retry, Server
from medtasks_ext.engines.payload import after_thinking, payload, prepared, reader_of
from medtasks_ext.engines.records import Answer, Fault, FaultKind, Outcome, Request
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import shows_text, what_happened

if TYPE_CHECKING:
    from lm_eval.api.model import LM


#: How long a thread waits for the feed before it looks whether the run has ended.
WAIT_SECONDS = 0.2


def takes(lm: LM) -> bool:
    """Whether a model's requests and replies are known here."""
    return reader_of(type(lm)) is not None


class ApiEngine(Engine):
    """Asks a server for completions, as many at a time as the model's `num_concurrent` says.

    A fault that no other request would escape (the key, the account, the model's name) ends the run: `run`
    returns, what it has not taken from the feed has no outcome, and `ended` holds the fault.

    Args:
        lm: a model that `takes` says yes to.
        quotes: whether the fault of a request may quote the server, which may quote the row.

    Raises:
        MedtasksError: model, address or key is missing.
    """

    def __init__(
        self,
        lm: LM,
        *,
        quotes: Callable[[Request], bool] = lambda request: shows_text(),
        say: Callable[[str], None] = lambda line: None,
        clock: Clock | None = None,
        egress: Egress | None = None,
    ) -> None:
        read = reader_of(type(lm))
        if read is None or not isinstance(lm, TemplateAPI):
            raise MedtasksError(f"the replies of {type(lm).__name__} are not known", where="--model")
        self._lm, self._read = lm, read
        self._quotes, self._say, self._clock = quotes, say, clock
        self._server, self._retry = _server(lm), Retry(max_retries=max(0, lm.max_retries))
        self.window = self._server.connections
        self.address, self.egress = self._server.url, egress or Egress.of()
        self.local = is_loopback(self.address)
        self.ended: Fault | None = None  # why the last run ended before its feed did; None if it did not
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None

    def prepare(self, request: Request) -> Request | Fault:
        """Count and keep the tokens, where the model sends tokens.

        The server itself may count them, so a text that it may not receive ends here.
        """
        if not self._place.permits(request.text):
            return withheld(self._place, request.text)
        return prepared(self._lm, request)

    @cached_property
    def _place(self) -> Place:
        assert self.egress is not None
        place = self.egress.place(self.address)
        keep_from_proxies(place)  # lm-eval's client asks where the server counts tokens
        return place

    def run(self, feed: Feed, done: Done) -> None:
        """Ask until the feed is over, or a fault ends it all.

        Raises:
            MedtasksError: certificates cannot be read, or the key holds a line break.
        """
        self.ended = None
        asyncio.run(self._run(feed, done))

    def stop(self) -> None:
        """Send nothing again: a request that waits for another try ends with the fault of the last.

        Requests under way come home, and new ones are taken until the feed is over. May be called from any
        thread and from a handler of signals.
        """
        if self._client and self._loop:
            with suppress(RuntimeError):  # the run has just ended
                self._loop.call_soon_threadsafe(self._client.stop)

    async def _run(self, feed: Feed, done: Done) -> None:
        taking = asyncio.Lock()
        async with Client(
            self._server, self._retry, say=self._say, clock=self._clock, egress=self.egress
        ) as client:
            self._loop, self._client = asyncio.get_running_loop(), client
            workers = [
                asyncio.ensure_future(self._work(client, feed, taking, done)) for _ in range(self.window)
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, client: Client, feed: Feed, taking: asyncio.Lock, done: Done) -> None:
        """One connection: a request after the other."""
        while request := await self._next(client, feed, taking):
            outcome = await self._outcome(client, request)
            if isinstance(outcome, Fault) and outcome.kind.ends_all:
                self.ended = self.ended or outcome
                client.stop()
            done(request, outcome)

    async def _next(self, client: Client, feed: Feed, taking: asyncio.Lock) -> Request | None:
        """The next request, as soon as the server may be asked; None if there is none any more.

        One worker looks at a time. A thread waits for the feed, which cannot wake this loop.
        """
        async with taking:
            while not (self.ended or feed.over):
                if client.held:
                    await client.turn(at_most=WAIT_SECONDS)
                elif request := feed.take():
                    return request
                else:
                    await asyncio.to_thread(feed.wait, WAIT_SECONDS)
        return None

    async def _outcome(self, client: Client, request: Request) -> Outcome:
        sent = 0
        try:
            body = payload(self._lm, request)
            sent = 1
            outcome = await client.answer(body, self._read, quote=self._quotes(request), text=request.text)
        except Exception as error:
            return Fault(FaultKind.ENGINE, what_happened(error), tries=sent, maybe_paid=sent)
        if isinstance(outcome, Answer):
            mark = getattr(self._lm, "think_end_token", None)
            return replace(outcome, text=after_thinking(outcome.text, mark))
        return outcome


def _server(lm: TemplateAPI) -> Server:
    url = str(lm.base_url or "")
    try:
        usable = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        usable = False
    if not usable:
        raise MedtasksError(
            "there is no address of a server",
            where="--model_args base_url",
            remedy="give one such as http://localhost:8000/v1/chat/completions",
        )
    try:
        headers = {str(name): str(value) for name, value in lm.header.items()}
    except ValueError as error:  # lm-eval's word for a key that is not set
        raise MedtasksError(str(error), where="--model", remedy=f"export {_key_variable(lm)}=…") from None
    return Server(
        url,
        model=str(lm.model),
        key=_key(lm),
        headers=headers,
        connections=max(1, lm._concurrent),
        timeout=lm.timeout,
        verify=lm.verify_certificate,
        ca_file=lm.ca_cert_path,
    )


def _key_variable(lm: TemplateAPI) -> str:
    if isinstance(lm, AnthropicChat):
        return "ANTHROPIC_API_KEY"
    return "AZURE_OPENAI_API_KEY" if isinstance(lm, AzureOpenaiChatCompletionsLM) else "OPENAI_API_KEY"


def _key(lm: TemplateAPI) -> str:
    """How messages name the key."""
    if lm._header and not isinstance(lm, AnthropicChat):
        return "the key in header"
    variable = _key_variable(lm)
    return f"the key in {variable}" if os.environ.get(variable) else "a request without a key"
