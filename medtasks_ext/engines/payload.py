"""What lm-eval's API models send for a request, and how their replies are read.

Needs lm-eval's extra `api`, so import it where it is used.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from medtasks_ext.engines.completion import Reader, chat_answer, message_answer, text_answer
from medtasks_ext.engines.records import (
    CONTENT_FILTER,
    Answer,
    Fault,
    FaultKind,
    Likelihood,
    Request,
    likeliest,
)
from medtasks_ext.harness import (
    AnthropicChat,
    JsonChatStr,
    LocalChatCompletion,
    LocalCompletionsAPI,
    TemplateAPI,
    postprocess_generated_text,
)
from medtasks_ext.jsonfile import Json
from medtasks_ext.privacy import what_happened


def reader_of(kind: Any) -> Reader | None:
    """How the replies to models of a class are read; None for models that send or read in a way of their own.

    Those of lm-eval's `local-completions`, `local-chat-completions`, `openai-*`, `azure-*` and
    `anthropic-chat` are known, those of `sglang-generate` and `litellm` are not.
    """
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
    prompt = request.prompt
    if not isinstance(prompt, str):
        return request
    if isinstance(lm, LocalChatCompletion | AnthropicChat):
        return Fault(
            FaultKind.ENGINE,
            "the prompt is a text, and the model takes conversations",
            "add --apply_chat_template",
            tries=0,
        )
    if request.options:
        return _with_options(lm, request, prompt)
    if not lm.tokenized_requests:
        return request
    usual = request.settings.get("max_gen_toks", lm._max_gen_toks)
    try:
        tokens = lm.tok_encode([prompt], add_special_tokens=lm.add_bos_token)[0]
        answer = int(request.settings.get("max_tokens", usual))
    except Exception as error:
        return Fault(FaultKind.ENGINE, what_happened(error), tries=0)
    if len(tokens) > lm.max_length - answer:
        return Fault(
            FaultKind.TOO_LONG,
            f"{len(tokens):,} tokens of the prompt and {answer:,} of the answer exceed the context of "
            f"{lm.max_length:,}",
            "raise max_length if the model's context is longer, or lower max_gen_toks",
            tries=0,
        )
    return replace(request, tokens=tokens)


def _with_options(lm: TemplateAPI, request: Request, context: str) -> Request | Fault:
    """Prompt and options in tokens as lm-eval has them: blanks at a prompt's end belong to the option."""
    if not lm.tokenized_requests:
        return Fault(
            FaultKind.MODEL,
            "nothing says where an option begins in a prompt that is sent as text",
            "name the model's tokenizer (--model_args tokenizer=…) and leave tokenized_requests=False out",
            tries=0,
        )
    bare = context.rstrip()
    try:
        tokens, *whole = lm.tok_encode([bare, *(context + option for option in request.options)])
    except Exception as error:
        return Fault(FaultKind.ENGINE, what_happened(error), tries=0)
    longest = max(map(len, whole))
    if longest >= lm.max_length:
        return Fault(
            FaultKind.TOO_LONG,
            f"{longest:,} tokens of prompt and option exceed the context of {lm.max_length:,}",
            "raise max_length if the model's context is longer",
            tries=0,
        )
    options = tuple(tuple(item[len(tokens) :]) for item in whole)
    return replace(request, tokens=tokens, option_tokens=options)


def option_answer(lm: TemplateAPI, request: Request, body: Any, quote: bool = False) -> Answer | Fault:
    """Read the log-probabilities of the options in a reply of the completions interface.

    lm-eval reads them; that the server has given those of every token is looked at here.
    """
    tokens = request.tokens or []
    first = text_answer(body, quote)
    if isinstance(first, Fault):
        return first
    if first.finish == CONTENT_FILTER:
        return Fault(FaultKind.REFUSED, "the server's filter takes the question away", maybe_paid=1)
    choices = sorted(body["choices"], key=lambda choice: choice.get("index", 0))
    wanted = [len(tokens) + len(option) for option in request.option_tokens]
    given = [len(((choice.get("logprobs") or {}).get("token_logprobs")) or ()) for choice in choices]
    if len(given) != len(wanted) or any(n < least for n, least in zip(given, wanted, strict=True)):
        return Fault(
            FaultKind.MODEL,
            "the server gives no log-probabilities of the tokens that it is sent (echo and logprobs)",
            "ask a server that does, such as vllm serve at /v1/completions, or the model (--model vllm)",
            status=200,
            maybe_paid=1,
        )
    logprobs = lm.parse_logprobs(outputs=body, tokens=None, ctxlens=[len(tokens)] * len(wanted))
    answer = likeliest(
        request, [Likelihood(float(value), bool(greedy)) for value, greedy in logprobs], first.usage
    )
    return (
        replace(answer, model=first.model, request_id=first.request_id)
        if isinstance(answer, Answer)
        else answer
    )


def payload(lm: TemplateAPI, request: Request) -> Json:
    """What lm-eval sends when it sends several requests at a time."""
    if request.option_tokens:
        prompts = [[*(request.tokens or ()), *option] for option in request.option_tokens]
        asked: Json = lm._create_payload(
            lm.create_message(prompts), generate=False, gen_kwargs={}, seed=lm._seed
        )
        return asked
    message: Any = request.prompt if request.tokens is None else request.tokens
    if not isinstance(request.prompt, str):
        message = JsonChatStr(json.dumps(request.prompt, ensure_ascii=False))
    payload: Json = lm._create_payload(
        lm.create_message([message]),
        generate=True,
        gen_kwargs=copy.deepcopy(dict(request.settings)),
        seed=lm._seed,
    )
    return payload


def after_thinking(text: str, mark: str | None) -> str:
    """A text without what stands before the end of its reasoning, for models that are told that end."""
    return postprocess_generated_text(text, stop=None, think_end_token=mark) if mark else text
