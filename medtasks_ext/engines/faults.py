"""What an error reply means. Servers say it by a status, a code, or in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from medtasks_ext.egress import AskedServer, Text, remedy_for
from medtasks_ext.engines.records import Fault, FaultKind

#: Characters of a server's own message that are quoted.
QUOTED = 160
#: Statuses with which a server asks to come back later, apart from 5xx.
_LATER = frozenset({408, 409, 425, 429})
#: Statuses by which a server says that it did not begin; after others from 500 on the model may have worked.
_NOT_BEGUN = frozenset({501, 503, 505, 529})

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
# what the templates of Gemma, Mistral and Llama say, and what vLLM and SGLang put before it
_ROLES = re.compile(
    r"\broles? must (?:alternate|be)|conversation roles|\broles? (?:are |is )?(?:not )?(?:supported|allowed)"
    r"|(?:unknown|unexpected|invalid|unsupported) (?:message )?role|chat.?template",
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
# OpenAI's models that reason, also behind a gateway that gives them a name of its own
_OTHER_LENGTH = re.compile(r"max_completion_tokens", re.IGNORECASE)
_NO_STOPS = re.compile(r"'stop' is not supported", re.IGNORECASE)
_OTHER_TEMPERATURE = re.compile(
    r"'?temperature'? does not support|unsupported value: '?temperature", re.IGNORECASE
)
#: How messages name the key where none is sent.
NO_KEY = "a request without a key"
_GIVE_KEY = (
    "put the server's key into the environment (OPENAI_API_KEY; model_configs/README.md); "
    "`api_key_env` of a jury file names that of a judge"
)


@dataclass(frozen=True, slots=True)
class ServerNames:
    url: str  # without secrets
    model: str = ""  # as the server is asked for it
    key: str = NO_KEY  # for example `the key in OPENAI_API_KEY`


def withheld(place: AskedServer, text: Text) -> Fault:
    dataset = text.dataset or "an unknown dataset"
    reason = f"text of {dataset} is not open, and {place.host} may not receive it"
    return Fault(FaultKind.WITHHELD, reason, remedy_for(place.host), tries=0)


def status_fault(status: int, body: Any, asked: ServerNames, *, quote: bool) -> Fault:
    """With `quote` the fault may hold the server's own words, which may quote the request."""
    what = f"HTTP {status}{error_message(body, quote)}"
    kind = _kind(status, body)
    reason, remedy = _in_words(kind, status, what, body, asked, quote)
    return Fault(kind, reason, remedy, status, maybe_paid=int(_may_have_worked(status)))


def is_filtered(status: int, body: Any) -> bool:
    """Whether an error status says that the server's filter took the prompt or the answer away.

    A filter looks at one prompt among others, so this is no answer of the model's, and asking again is no
    use. HELM's clients take it so, too.
    """
    if status not in (400, 403, 422, 451):
        return False
    beginning = _message(body)[:QUOTED]  # a message may quote the request
    words = _FLAGGED if status == 403 else _FILTERED
    return any(_FILTER_CODE.fullmatch(name) for name in _names(body)) or bool(words.search(beginning))


def _may_have_worked(status: int) -> bool:
    return status == 408 or (status >= 500 and status not in _NOT_BEGUN)


def error_message(body: Any, quote: bool) -> str:
    """What an error reply says, to be put behind another text: its message, else its type and code."""
    if quote:
        message = _message(body)
        return f": {shortened(message)}" if message else ""
    return "".join(f", {name}" for name in _names(body))


def shortened(text: str) -> str:
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _kind(status: int, body: Any) -> FaultKind:
    names, message = " ".join(_names(body)), _message(body)
    if status == 402 or _NO_MONEY_CODE.search(names):
        return FaultKind.MONEY
    # a message may quote the request, and patients may be out of funds: only where such a message is usual,
    # and only its beginning
    if status in (400, 403, 429) and _NO_MONEY.search(message[:QUOTED]):
        return FaultKind.MONEY
    if status in (401, 403):
        return FaultKind.KEY
    if status == 404 or 300 <= status < 400:
        return FaultKind.MODEL
    if status in _LATER or status >= 500:
        return FaultKind.BUSY
    if status in (400, 413, 422) and (_TOO_LONG_CODE.search(names) or _TOO_LONG.search(message)):
        return FaultKind.TOO_LONG
    return FaultKind.REFUSED


def _in_words(
    kind: FaultKind, status: int, what: str, body: Any, asked: ServerNames, quote: bool
) -> tuple[str, str]:
    """(reason, remedy)."""
    if kind is FaultKind.KEY:
        remedy = _GIVE_KEY if asked.key == NO_KEY else "correct the key"
        return f"{asked.url} refuses {asked.key}{error_message(body, quote)}", remedy
    if kind is FaultKind.MONEY:
        how = "asks for payment" if status == 402 else "has no credit left"
        return f"{asked.url} {how} ({what})", "add credit"
    if kind is FaultKind.MODEL and status != 404:
        return (
            f"{asked.url} redirects elsewhere ({what}); texts go to the given address only",
            "correct base_url",
        )
    if kind is FaultKind.MODEL:
        return f"{asked.url} has no model {asked.model!r} ({what})", "correct model or base_url"
    if kind is FaultKind.TOO_LONG:
        return f"prompt and answer do not fit the model's context ({what})", "lower max_gen_toks"
    if status in (400, 422) and _ROLES.search(_message(body)[:QUOTED]):  # its beginning, as above
        return (
            f"the model's chat template refuses the roles of the turns ({what})",
            "serve the model with a template that takes such roles, or ask without --apply_chat_template",
        )
    if status in (400, 422) and _OTHER_LENGTH.search(_message(body)[:QUOTED]):
        return (
            f"the model wants its limit as max_completion_tokens ({what})",
            "ask with --model openai-chat-completions and the same base_url; in a jury file, set "
            "max_tokens_key: max_completion_tokens",
        )
    if status in (400, 422) and _OTHER_TEMPERATURE.search(_message(body)[:QUOTED]):
        return (
            f"the model takes no other temperature than its own ({what})",
            "add --gen_kwargs temperature=1; in a jury file, set temperature: 1",
        )
    if status in (400, 422) and _NO_STOPS.search(_message(body)[:QUOTED]):
        return f"the model takes no stop texts ({what})", "add --gen_kwargs stop=None"
    return what, ""


def _error(body: Any) -> Any:
    if not isinstance(body, dict):
        return None
    return body.get("error") or body


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
