"""Fences around texts that a judge must not obey.

What a model wrote is untrusted input to the judge. It stands between two lines that carry a code
which the text cannot contain, and nothing in it can look like the end of the fence or like a turn
of the judge's own conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

_FENCE_LIKE = re.compile(r"<{3,}|>{3,}")
#: How chat templates mark turns. A server that renders a template reads such text as a new turn.
_TURN_LIKE = re.compile(
    r"<(?=[|｜]|/?s>|(?:bos|eos|pad|unk)>|(?:start|end)_of_turn>|</?SYS>>|/?think(?:ing)?>)"
    r"|<(?=/?tool_(?:call|response)s?>|_(?:user|bot|system|end)>|/?(?:user|assistant|system)>)"
    r"|<(?=(?:unused|reserved_(?:special_token_)?|extra_id_)\d+>)|\](?=<\])|<(?=\])"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|THINK|g?MASK|sMASK)\])"
    r"|(?-i:^(?:Human|Assistant))(?=:)",
    re.IGNORECASE | re.MULTILINE,
)
#: what no turn marker is without; a look for it is quick
_TURNS_BEGIN = ("<", "[", "]", "Human:", "Assistant:")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def fence_code(texts: Iterable[str]) -> str:
    """A code that none of the texts can know: it depends on every character of all of them."""
    digest = sha256()
    for text in texts:
        digest.update(text.encode(errors="replace") + b"\x1e")
    return digest.hexdigest()[:16]


def escape_fences(text: str, code: str) -> str:
    """The text with everything that could pass for a fence or a turn marker set apart by blanks."""
    return _without_marks(text).replace(code, " ".join(code))


@lru_cache(maxsize=64)  # an answer is shown beside each of its criteria
def _without_marks(text: str) -> str:
    text = text.encode(errors="replace").decode()  # half a surrogate pair cannot be sent
    text = _CONTROL.sub(" ", text)
    if "<<<" in text or ">>>" in text:
        text = _FENCE_LIKE.sub(lambda found: " ".join(found[0]), text)
    if any(begins in text for begins in _TURNS_BEGIN):
        text = _TURN_LIKE.sub(r"\g<0> ", text)
    return text


def fenced(label: str, text: str, code: str) -> str:
    """The defused text between two marked lines."""
    return f"<<<{label} {code}\n{escape_fences(text, code)}\n{code} END OF {label}>>>"
