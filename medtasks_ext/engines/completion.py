"""Reading replies with status 200: an answer, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from medtasks_ext.engines.faults import error_message
from medtasks_ext.engines.records import CONTENT_FILTER, Answer, Fault, FaultKind, Usage
from medtasks_ext.jsonfile import Json

#: Reads a body. The second argument: whether a fault may quote the server's own words.
Reader: TypeAlias = Callable[[Any, bool], Answer | Fault]

#: What a server that filters with an error status would say with status 200, on each interface.
FILTERED: Json = {
    "choices": [{"finish_reason": CONTENT_FILTER}],
    "content": [],
    "stop_reason": CONTENT_FILTER,
}
#: Why a server itself gives no text.
_TAKEN_AWAY = frozenset({"length", CONTENT_FILTER})
#: Anthropic's reasons in the words of the others.
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
#: Larger counts are no counts.
_MOST_TOKENS = 2**40


def chat_answer(body: Any, quote: bool = False) -> Answer | Fault:
    """Read a reply of OpenAI's chat interface.

    A server that gives no text because the answer was cut within its reasoning or filtered says so; that is
    an empty answer. No text without a reason is a fault. The text of a refusal is the answer.
    """
    choice = _choice(body)
    message = choice.get("message") or {}
    if not choice or not isinstance(message, dict):
        return _no_completion(body, quote)
    content, finish = message.get("content"), _string(choice.get("finish_reason"))
    reasoning = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
    if isinstance(content, list) and (parts := _parts(content)):
        content, reasoning = parts["text"] or None, reasoning or parts["thinking"]
    if content in (None, "") and (refusal := _string(message.get("refusal"))):
        content, finish = refusal, "refusal"
    elif content is None and finish in _TAKEN_AWAY:
        content = ""
    if not isinstance(content, str):
        return _all_reasoning() if content is None and reasoning else _no_completion(body, quote)
    return _answer(body, content, finish, reasoning)


def text_answer(body: Any, quote: bool = False) -> Answer | Fault:
    choice = _choice(body)
    text, finish = choice.get("text"), _string(choice.get("finish_reason"))
    if text is None and finish in _TAKEN_AWAY:
        text = ""
    if not isinstance(text, str):
        return _no_completion(body, quote)
    return _answer(body, text, finish, "")


def message_answer(body: Any, quote: bool = False) -> Answer | Fault:
    blocks = body.get("content") if isinstance(body, dict) and not body.get("error") else None
    parts = _parts(blocks) if isinstance(blocks, list) else None
    if parts is None:
        return _no_completion(body, quote)
    finish = _string(body.get("stop_reason"))
    return Answer(
        parts["text"],
        _FINISH.get(finish, finish),
        _usage_of_messages(body.get("usage")),
        parts["thinking"],
        model=_string(body.get("model")),
        request_id=_string(body.get("id")),
    )


def _parts(blocks: Iterable[Any]) -> dict[str, str] | None:
    """Each joined; None where one is neither text nor thinking, such as a tool."""
    parts = {"text": "", "thinking": ""}
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "redacted_thinking":  # encrypted
            continue
        part = block.get(kind) if kind == "text" or kind == "thinking" else None
        if kind == "thinking" and isinstance(part, list):  # Mistral's holds parts of text
            inner = _parts(part)
            part = inner["text"] if inner else None
        if not isinstance(part, str):
            return None
        parts[str(kind)] += part
    return parts


def _choice(body: Any) -> Json:
    """The first choice; empty where there is none, or the server says that it failed half way."""
    choices = body.get("choices") if isinstance(body, dict) and not body.get("error") else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or choice.get("error") or choice.get("finish_reason") == "error":
        return {}
    return choice


def _answer(body: Json, text: str, finish: str, reasoning: str) -> Answer:
    return Answer(
        text,
        finish,
        _usage(body.get("usage")),
        reasoning,
        model=_string(body.get("model")),
        request_id=_string(body.get("id")),
    )


def _no_completion(body: Any, quote: bool) -> Fault:
    reason = f"the server sent no completion{error_message(body, quote)}"
    return Fault(FaultKind.MALFORMED, reason, status=200, maybe_paid=1)


def _all_reasoning() -> Fault:
    # vLLM's parsers take an answer without a trace for a trace, so this is not the model's silence
    return Fault(
        FaultKind.MALFORMED,
        "the server sent reasoning and no text, and does not say why",
        "start the server with the reasoning parser that fits the model, or with none",
        status=200,
        maybe_paid=1,
    )


def _usage(counted: Any) -> Usage | None:
    if not isinstance(counted, dict):
        return None
    prompt, completion = _count(counted, "prompt_tokens"), _count(counted, "completion_tokens")
    if prompt is None or completion is None:
        return None
    return Usage(
        prompt,
        completion,
        reasoning=_count(counted.get("completion_tokens_details"), "reasoning_tokens"),
        cached=_count(counted.get("prompt_tokens_details"), "cached_tokens"),
    )


def _usage_of_messages(counted: Any) -> Usage | None:
    """Anthropic counts tokens of the prompt that are written to or read from its cache apart."""
    prompt, completion = _count(counted, "input_tokens"), _count(counted, "output_tokens")
    if prompt is None or completion is None:
        return None
    cached = _count(counted, "cache_read_input_tokens")
    written = _count(counted, "cache_creation_input_tokens")
    return Usage(prompt + (cached or 0) + (written or 0), completion, cached=cached)


def _count(counted: Any, name: str) -> int | None:
    n = counted.get(name) if isinstance(counted, dict) else None
    return n if type(n) is int and 0 <= n <= _MOST_TOKENS else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
