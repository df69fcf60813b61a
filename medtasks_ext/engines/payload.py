"""What lm-eval's API models send for a request, and how their replies are read.

Needs lm-eval's extra `api`, so import it where it is used.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from lm_eval.models.anthropic_llms import AnthropicChat
from lm_eval.models.api_models import JsonChatStr, TemplateAPI
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI
from lm_eval.models.utils import postprocess_generated_text

from medtasks_ext.engines.completion import Reader, chat_answer, message_answer, text_answer
from medtasks_ext.engines.records import Fault, FaultKind, Request
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
    """Count and keep the tokens, where the model sends tokens.

    A prompt that leaves no room for the answer is a fault; lm-eval would cut its beginning.
    """
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


def payload(lm: TemplateAPI, request: Request) -> Json:
    """What lm-eval sends when it sends several requests at a time."""
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
