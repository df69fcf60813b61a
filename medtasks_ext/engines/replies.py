"""What replies mean: an answer, or why there is none. Servers say it by a status, a code, or in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from medtasks_ext.egress import AskedServer, Text, remedy_for
from medtasks_ext.engines import CONTENT_FILTER, Answer, Fault, FaultKind, Usage
from medtasks_ext.jsonfile import Json
from medtasks_ext.keys import shown_url

#: Reads a body. The second argument: whether a fault may quote the server's own words.
Reader: TypeAlias = Callable[[Any, bool], Answer | Fault]

#: Characters of a server's own message that are quoted, and looked at: a message may quote the request.
QUOTED = 160

_NAME = re.compile(r"[A-Za-z][\w.:-]{0,59}")
_NO_MONEY_CODE = re.compile(r"insufficient_(?:quota|funds|balance|credits?)|billing_\w+|credit_\w*exceeded")
_NO_MONEY = re.compile(
    r"insufficient.{0,20}\b(?:quota|credits?|balance|funds?)\b|credit balance is too low"
    r"|exceeded your current quota|out of credits?\b",
    re.IGNORECASE,
)
_TOO_LONG_CODE = re.compile(r"context_length_exceeded|context_window_exceeded|exceed_context_size_error")
# OpenAI and vLLM, Anthropic, SGLang, llama.cpp, Gemini, text-generation-inference
_TOO_LONG = re.compile(
    r"maximum context length|maximum model length|context (?:window|limit|size)|model's context length"
    r"|(?:prompt|input) is too long|token count \(?\d+\)? exceeds"
    r"|inputs?`? tokens \+ `?max_new_tokens`? must be",
    re.IGNORECASE,
)
# Azure and OpenAI, Anthropic, DeepSeek, Alibaba, Moonshot; OpenRouter says it with 403
_FILTER_CODE = re.compile(
    r"content_?filter|content_policy_violation|ResponsibleAIPolicyViolation|data_?inspection_?failed|moderation\w*",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content management policy|content filtering policy|content exists risk|considered high risk"
    r"|may contain inappropriate content",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"moderation|flagged|content.?(?:policy|filter)", re.IGNORECASE)
#: What a server's refusal says -> in words, and what to do.
_REFUSALS = {
    # what the templates of Gemma, Mistral and Llama say, and what vLLM and SGLang put before it
    r"\broles? must (?:alternate|be)|conversation roles|\broles? (?:are |is )?(?:not )?"
    r"(?:supported|allowed)|(?:unknown|unexpected|invalid|unsupported) (?:message )?role|chat.?template": (
        "the model's chat template refuses the roles of the turns",
        "serve the model with a template that takes such roles, or ask without --apply_chat_template",
    ),
    # OpenAI's models that reason, also behind a gateway that gives them a name of its own
    "max_completion_tokens": (
        "the model wants its limit as max_completion_tokens",
        "ask with --model openai-chat-completions; in a jury file: max_tokens_key: max_completion_tokens",
    ),
    "'?temperature'? does not support|unsupported value: '?temperature|'stop' is not supported": (
        "the model takes no temperature but its own, or no stop texts",
        "add --gen_kwargs temperature=1 stop=None; in a jury file, set temperature: 1",
    ),
}
#: How messages name the key where none is sent.
NO_KEY = "a request without a key"
_GIVE_KEY = (
    "put the server's key into the environment (OPENAI_API_KEY; model_configs/README.md); "
    "`api_key_env` of a jury file names that of a judge"
)


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

    @property
    def shown(self) -> str:
        """Its address without secrets."""
        return shown_url(self.url)


def withheld(place: AskedServer, text: Text) -> Fault:
    dataset = text.dataset or "an unknown dataset"
    reason = f"text of {dataset} is not open, and {place.host} may not receive it"
    return Fault(FaultKind.WITHHELD, reason, remedy_for(place.host), tries=0)


def status_fault(status: int, body: Any, server: Server, *, quote: bool) -> Fault:
    """With `quote` the fault may hold the server's own words, which may quote the request."""
    said, shown, kind = error_message(body, quote), server.shown, _kind(status, body)
    what, give_key = f"HTTP {status}{said}", _GIVE_KEY if server.key == NO_KEY else "correct the key"
    too_long = f"prompt and answer do not fit the model's context ({what})"
    reason, remedy = {
        FaultKind.KEY: (f"{shown} refuses {server.key}{said}", give_key),
        FaultKind.MONEY: (f"{shown} has no credit left ({what})", "add credit"),
        FaultKind.MODEL: (f"{shown} has no model {server.model!r} ({what})", "correct model or base_url"),
        FaultKind.TOO_LONG: (too_long, "lower max_gen_toks"),
    }.get(kind, (what, ""))
    if 300 <= status < 400:
        reason = f"{shown} redirects elsewhere ({what}); texts go to the given address only"
        remedy = "correct base_url"
    elif kind is FaultKind.REFUSED:
        for pattern, (why, how) in _REFUSALS.items():
            if re.search(pattern, _message(body)[:QUOTED], re.IGNORECASE):
                reason, remedy = f"{why} ({what})", how
    worked = status == 408 or (status >= 500 and status not in (501, 503, 505, 529))  # these did not begin
    return Fault(kind, reason, remedy, status, maybe_paid=int(worked))


def _kind(status: int, body: Any) -> FaultKind:
    names, message = " ".join(_names(body)), _message(body)
    # patients may be out of funds: only where such a message is usual
    no_money = status in (400, 403, 429) and _NO_MONEY.search(message[:QUOTED])
    if status == 402 or _NO_MONEY_CODE.search(names) or no_money:
        return FaultKind.MONEY
    if status in (401, 403):
        return FaultKind.KEY
    if status == 404 or 300 <= status < 400:
        return FaultKind.MODEL
    if status in (408, 409, 425, 429) or status >= 500:
        return FaultKind.BUSY
    if status in (400, 413, 422) and (_TOO_LONG_CODE.search(names) or _TOO_LONG.search(message)):
        return FaultKind.TOO_LONG
    return FaultKind.REFUSED


def is_filtered(status: int, body: Any) -> bool:
    """Whether an error says that the server's filter took prompt or answer away: no use to ask again."""
    if status not in (400, 403, 422, 451):
        return False
    words = _FLAGGED if status == 403 else _FILTERED
    beginning = _message(body)[:QUOTED]
    return any(_FILTER_CODE.fullmatch(name) for name in _names(body)) or bool(words.search(beginning))


def error_message(body: Any, quote: bool) -> str:
    """What an error reply says, to be put behind another text: its message, else its type and code."""
    if not quote:
        return "".join(f", {name}" for name in _names(body))
    message = _message(body)
    return f": {message[:QUOTED]}{'…' if len(message) > QUOTED else ''}" if message else ""


def _error(body: Any) -> Any:
    return body.get("error") or body if isinstance(body, dict) else None


def _message(body: Any) -> str:
    """In one line, without control characters; empty where there is none."""
    error = _error(body)
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail")
    if not isinstance(error, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in error[: 8 * QUOTED]).split())


def _names(body: Any) -> list[str]:
    error = _error(body)
    if not isinstance(error, dict):
        return []
    inner = error.get("innererror")
    names = [error.get("type"), error.get("code"), inner.get("code") if isinstance(inner, dict) else None]
    return list(dict.fromkeys(x for x in names if isinstance(x, str) and _NAME.fullmatch(x)))


#: What a server that filters with an error status would say with status 200, on each interface.
FILTERED: Json = {
    "choices": [{"finish_reason": CONTENT_FILTER}],
    "content": [],
    "stop_reason": CONTENT_FILTER,
}
#: Anthropic's reasons in the words of the others.
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


def chat_answer(body: Any, quote: bool = False) -> Answer | Fault:
    """Read a reply of OpenAI's chat interface; the text of a refusal is the answer."""
    choice = _choice(body)
    message = choice.get("message") or {}
    if not choice or not isinstance(message, dict):
        return _answer(body, quote, None, "")
    content, finish = message.get("content"), _string(choice.get("finish_reason"))
    reasoning = _string(message.get("reasoning_content")) or _string(message.get("reasoning"))
    if isinstance(content, list) and (parts := _parts(content)):
        content, reasoning = parts["text"] or None, reasoning or parts["thinking"]
    if content in (None, "") and (refusal := _string(message.get("refusal"))):
        content, finish = refusal, "refusal"
    return _answer(body, quote, content, finish, reasoning)


def text_answer(body: Any, quote: bool = False) -> Answer | Fault:
    choice = _choice(body)
    return _answer(body, quote, choice.get("text"), _string(choice.get("finish_reason")))


def message_answer(body: Any, quote: bool = False) -> Answer | Fault:
    blocks = body.get("content") if isinstance(body, dict) and not body.get("error") else None
    if (parts := _parts(blocks) if isinstance(blocks, list) else None) is None:
        return _answer(body, quote, [], "")
    finish = _string(body.get("stop_reason"))
    return _answer(body, quote, parts["text"], _FINISH.get(finish, finish), parts["thinking"])


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


def _answer(body: Any, quote: bool, text: Any, finish: str, reasoning: str = "") -> Answer | Fault:
    """`text`: None where the server gives none; where it says that the answer was cut within its reasoning,
    or filtered, that is an empty answer, else a fault."""
    if text is None and finish in ("length", CONTENT_FILTER):
        text = ""
    if isinstance(text, str):
        model, name = _string(body.get("model")), _string(body.get("id"))
        return Answer(text, finish, _usage(body.get("usage")), reasoning, model, name)
    reason, remedy = f"the server sent no completion{error_message(body, quote)}", ""
    if text is None and reasoning:
        # vLLM's parsers take an answer without a trace for a trace, so this is not the model's silence
        reason = "the server sent reasoning and no text, and does not say why"
        remedy = "start the server with the reasoning parser that fits the model, or with none"
    return Fault(FaultKind.MALFORMED, reason, remedy, status=200, maybe_paid=1)


def _usage(counted: Any) -> Usage | None:
    def count(name: str, within: str = "") -> int | None:
        found = counted.get(within) if within else counted
        n = found.get(name) if isinstance(found, dict) else None
        return n if type(n) is int and 0 <= n < 2**40 else None

    if not isinstance(counted, dict):
        return None
    prompt, completion = count("prompt_tokens"), count("completion_tokens")
    reasoning = count("reasoning_tokens", "completion_tokens_details")
    cached = count("cached_tokens", "prompt_tokens_details")
    if prompt is None and (new := count("input_tokens")) is not None:  # Anthropic's, without its cache's
        cached, completion = count("cache_read_input_tokens"), count("output_tokens")
        prompt = new + (cached or 0) + (count("cache_creation_input_tokens") or 0)
    return None if prompt is None or completion is None else Usage(prompt, completion, reasoning, cached)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
