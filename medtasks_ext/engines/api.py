"""lm-eval's API models, asked by the client that judges use as well.

Needs lm-eval's extra `api`, so import it where it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from medtasks_ext.egress import AskedServer, Egress, hold
from medtasks_ext.engines.faults import NO_KEY, withheld
from medtasks_ext.engines.http import Client, Clock, Failed, Retry, Server
from medtasks_ext.engines.payload import after_thinking, option_answer, payload, prepared, reader_of
from medtasks_ext.engines.records import Answer, Fault, Request
from medtasks_ext.engines.server import ServerEngine
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import AnthropicChat, AzureOpenaiChatCompletionsLM, TemplateAPI
from medtasks_ext.keys import host_of
from medtasks_ext.privacy import shows_text

if TYPE_CHECKING:
    from medtasks_ext.harness import LM


def takes(lm: LM) -> bool:
    return reader_of(type(lm)) is not None


class ApiEngine(ServerEngine):
    """Asks the servers of a model of lm-eval, each as many requests at a time as its `num_concurrent`
    says.

    Args:
        quotes: whether the fault of a request may quote the server, which may quote the row.
        replicas: addresses of further servers of the same model.
    """

    keeps_prefixes = True  # most servers do

    def __init__(
        self,
        lm: LM,
        *,
        quotes: Callable[[Request], bool] = lambda request: shows_text(),
        say: Callable[[str], None] = lambda line: None,
        clock: Clock | None = None,
        egress: Egress | None = None,
        replicas: Sequence[str] = (),
    ) -> None:
        read = reader_of(type(lm))
        if read is None or not isinstance(lm, TemplateAPI):
            raise MedtasksError(f"the replies of {type(lm).__name__} are not known", where="--model")
        self._lm = lm
        retry = Retry(max_retries=max(0, lm.max_retries))
        first, *others = (_server(lm, url) for url in (str(lm.base_url or ""), *replicas))
        super().__init__(
            first, retry, read, quotes=quotes, say=say, clock=clock, egress=egress, replicas=others
        )

    def prepare(self, request: Request) -> Request | Fault:
        """Where the model sends tokens, a server may count them: a text that it may not receive ends here."""
        for place in self._places:
            if not place.permits(request.text):
                return withheld(place, request.text)
        return prepared(self._lm, request)

    @cached_property
    def _places(self) -> list[AskedServer]:
        assert self.egress is not None
        places = [self.egress.place(server.url) for server in self._servers]
        hold(places[0], self.egress)  # lm-eval's client asks where the server counts tokens
        return places

    def body(self, request: Request) -> Any:
        return payload(self._lm, request)

    async def send(self, client: Client, request: Request, body: Any) -> Answer | Failed:
        """A trace of reasoning is taken away where the model names its end."""
        if request.options:
            read, quote = partial(option_answer, self._lm, request), self._quotes(request)
            return await client.ask(body, read, quote=quote, text=request.text)
        got = await super().send(client, request, body)
        if isinstance(got, Failed):
            return got
        return replace(got, text=after_thinking(got.text, getattr(self._lm, "think_end_token", None)))


def _server(lm: TemplateAPI, url: str) -> Server:
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
    host_of(url)
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
    if lm._header and not isinstance(lm, AnthropicChat):
        return "the key in header"
    variable = _key_variable(lm)
    return f"the key in {variable}" if os.environ.get(variable) else NO_KEY
