"""lm-eval's API models: what they send for a request, asked by the client that judges use as well.

Needs lm-eval's extra `api`, so import it where it is used.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from medtasks_ext.egress import hold
from medtasks_ext.engines import (
    CONTENT_FILTER,
    Answer,
    Fault,
    FaultKind,
    Likelihood,
    Outcome,
    Request,
    likeliest,
)
from medtasks_ext.engines.http import Client
from medtasks_ext.engines.replies import (
    NO_KEY,
    Reader,
    Server,
    chat_answer,
    message_answer,
    text_answer,
    withheld,
)
from medtasks_ext.engines.servers import ServerEngine, may_quote
from medtasks_ext.errors import MedtasksError
from medtasks_ext.harness import (
    AnthropicChat,
    AzureOpenaiChatCompletionsLM,
    JsonChatStr,
    LocalChatCompletion,
    LocalCompletionsAPI,
    TemplateAPI,
    postprocess_generated_text,
)
from medtasks_ext.jsonfile import Json
from medtasks_ext.keys import host_of
from medtasks_ext.privacy import what_happened


def reader_of(kind: Any) -> Reader | None:
    """How the replies to models of a class are read; None for models that send or read in a way of their own,
    such as `sglang-generate` and `litellm`."""
    if not issubclass(kind, TemplateAPI) or kind.amodel_call is not TemplateAPI.amodel_call:
        return None
    readers: dict[Any, Reader] = {
        LocalCompletionsAPI.parse_generations: text_answer,
        LocalChatCompletion.parse_generations: chat_answer,
        AnthropicChat.parse_generations: message_answer,
    }
    return readers.get(kind.parse_generations)


def prepared(lm: TemplateAPI, request: Request) -> Request | Fault:
    """In tokens where the model sends these; no room for the answer is a fault, where lm-eval would cut."""
    prompt, options = request.prompt, tuple[tuple[int, ...], ...]()
    if not isinstance(prompt, str):
        return request
    if isinstance(lm, LocalChatCompletion | AnthropicChat):
        why, remedy = "the prompt is a text, and the model takes conversations", "add --apply_chat_template"
        return Fault(FaultKind.ENGINE, why, remedy, tries=0)
    if not lm.tokenized_requests and request.options:
        why = "nothing says where an option begins in a prompt that is sent as text"
        remedy = "name the model's tokenizer (--model_args tokenizer=…) without tokenized_requests=False"
        return Fault(FaultKind.MODEL, why, remedy, tries=0)
    if not lm.tokenized_requests:
        return request
    try:
        if request.options:  # as lm-eval has them: blanks at a prompt's end belong to the option
            tokens, *whole = lm.tok_encode([prompt.rstrip(), *(prompt + one for one in request.options)])
            options = tuple(tuple(item[len(tokens) :]) for item in whole)
            answer = 1 + max(map(len, options))
        else:
            tokens = lm.tok_encode([prompt], add_special_tokens=lm.add_bos_token)[0]
            usual = request.settings.get("max_gen_toks", lm._max_gen_toks)
            answer = int(request.settings.get("max_tokens", usual))
    except Exception as error:
        return Fault(FaultKind.ENGINE, what_happened(error), tries=0)
    if len(tokens) + answer > lm.max_length:
        why = f"{len(tokens):,} tokens of the prompt and {answer:,} of the answer exceed the context of"
        remedy = "raise max_length if the model's context is longer, or lower max_gen_toks"
        return Fault(FaultKind.TOO_LONG, f"{why} {lm.max_length:,}", remedy, tries=0)
    return replace(request, tokens=tokens, option_tokens=options)


def payload(lm: TemplateAPI, request: Request) -> Json:
    """What lm-eval sends when it sends several requests at a time."""
    if request.option_tokens:
        settings: dict[str, Any] = {}
        messages: Any = [[*(request.tokens or ()), *option] for option in request.option_tokens]
    else:
        settings = {name: copy.copy(value) for name, value in request.settings.items()}
        messages = [request.prompt if request.tokens is None else request.tokens]
    if isinstance(request.prompt, str):
        messages = lm.create_message(messages)
    elif type(lm).create_message is TemplateAPI.create_message:  # which reads turns from JSON
        messages = [dict(turn) for turn in request.prompt]
    else:
        messages = lm.create_message([JsonChatStr(json.dumps(request.prompt, ensure_ascii=False))])
    generates = not request.option_tokens
    body: Json = lm._create_payload(messages, generate=generates, gen_kwargs=settings, seed=lm._seed)
    return body


def option_answer(lm: TemplateAPI, request: Request, body: Any, quote: bool = False) -> Outcome:
    """Read the log-probabilities of the options in a reply of the completions interface, as lm-eval does."""
    first, before = text_answer(body, quote), len(request.tokens or ())
    if isinstance(first, Fault):
        return first
    if first.finish == CONTENT_FILTER:
        return Fault(FaultKind.REFUSED, "the server's filter takes the question away", maybe_paid=1)
    choices = sorted(body["choices"], key=lambda choice: choice.get("index", 0))
    wanted = [before + len(option) for option in request.option_tokens]
    given = [len(((choice.get("logprobs") or {}).get("token_logprobs")) or ()) for choice in choices]
    if len(given) != len(wanted) or any(n < least for n, least in zip(given, wanted, strict=True)):
        why = "the server gives no log-probabilities of the tokens that it is sent (echo and logprobs)"
        remedy = "ask a server that does, such as vllm serve at /v1/completions, or the model (--model vllm)"
        return Fault(FaultKind.MODEL, why, remedy, status=200, maybe_paid=1)
    logprobs = lm.parse_logprobs(outputs=body, tokens=None, ctxlens=[before] * len(wanted))
    likelihoods = [Likelihood(float(value), bool(greedy)) for value, greedy in logprobs]
    answer = likeliest(request, likelihoods, first.usage)
    if isinstance(answer, Fault):
        return answer
    return replace(answer, model=first.model, request_id=first.request_id)


def after_thinking(text: str, mark: str | None) -> str:
    """A text without its reasoning, which ends with a mark that the model is told."""
    return postprocess_generated_text(text, stop=None, think_end_token=mark) if mark else text


class ApiEngine(ServerEngine):
    """Asks a model of lm-eval at its server and at `replicas`, each `num_concurrent` requests at a time."""

    keeps_prefixes = True  # most servers do

    def __init__(self, lm: TemplateAPI, *, replicas: Sequence[str] = (), **how: Any) -> None:
        read = reader_of(type(lm))
        assert read is not None
        self._lm, self.tokenises = lm, lm.tokenized_requests
        servers = [_server(lm, url) for url in (str(lm.base_url or ""), *replicas)]
        super().__init__(servers, max(0, lm.max_retries), read, **how)
        self._places = [self.egress.place(url) for url in self.addresses]
        hold(self._places[0], self.egress)  # lm-eval's client asks where the server counts tokens

    def prepare(self, request: Request) -> Request | Fault:
        """Where the model sends tokens, a server may count them: a text that it may not receive ends here."""
        for place in self._places:
            if not place.permits(request.text):
                return withheld(place, request.text)
        return prepared(self._lm, request)

    def body(self, request: Request) -> Any:
        return payload(self._lm, request)

    async def send(self, client: Client, request: Request, body: Any) -> Outcome:
        """A trace of reasoning is taken away where the model names its end."""
        if request.options:
            read = partial(option_answer, self._lm, request)
            return await client.ask(body, read, quote=may_quote(request), text=request.text)
        got = await super().send(client, request, body)
        if isinstance(got, Answer) and (mark := getattr(self._lm, "think_end_token", None)):
            return replace(got, text=after_thinking(got.text, mark))
        return got


def _server(lm: TemplateAPI, url: str) -> Server:
    if not url.startswith(("http://", "https://")):
        remedy = "give one such as http://localhost:8000/v1/chat/completions"
        raise MedtasksError("there is no address of a server", where="--model_args base_url", remedy=remedy)
    host_of(url)
    anthropic, azure = isinstance(lm, AnthropicChat), isinstance(lm, AzureOpenaiChatCompletionsLM)
    variable = f"{'ANTHROPIC' if anthropic else 'AZURE_OPENAI' if azure else 'OPENAI'}_API_KEY"
    try:
        headers = {str(name): str(value) for name, value in lm.header.items()}
    except ValueError as error:  # lm-eval's word for a key that is not set
        raise MedtasksError(str(error), where="--model", remedy=f"export {variable}=…") from None
    key = f"the key in {variable}" if os.environ.get(variable) else NO_KEY
    return Server(
        url,
        model=str(lm.model),
        key="the key in header" if lm._header and not anthropic else key,
        headers=headers,
        connections=max(1, lm._concurrent),
        timeout=lm.timeout,
        verify=lm.verify_certificate,
        ca_file=lm.ca_cert_path,
    )
