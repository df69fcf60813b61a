"""A response cut to its reply: reasoning traces and special tokens left out, full-width forms made
half-width.

Every step keeps the length of the text, so that a place in the reply is a place in the response.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

#: (first, last + 1) of characters of a response
Span = tuple[int, int]


class Extraction(NamedTuple):
    """What a tolerant reader makes of a response.

    Attributes:
        answer: as the answer kind has it; None where there is none or where it is not clear.
        span: where it stands in the response.
        why: by which sign it was found, or why there is none.
    """

    answer: Any
    span: Span | None
    why: str


NOTHING = Extraction(None, None, "no answer was found")


@dataclass(frozen=True, slots=True)
class Reply:
    """The part of a response that is meant for the reader.

    Attributes:
        text: the response, full-width forms made half-width, blank before the reply, of the same length.
        begin: first character of the reply.
        end: last + 1.
        traced: whether a reasoning trace was left out.
    """

    text: str
    begin: int
    end: int
    traced: bool

    @property
    def part(self) -> str:
        """The reply itself."""
        return self.text[self.begin : self.end]


#: A reply that is longer was made by a model in a loop; an answer stands at its beginning or in its last
#: part.
LONGEST = 20_000

_NARROW = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {
    **dict.fromkeys("\u3000\xa0\u2007\u202f\u2028\u2029", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", " "),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("−‐‑‒", "-"),
    "【": "[",
    "】": "]",
    "〔": "[",
    "〕": "]",
    "｡": "。",
    "﹕": ":",
    "∶": ":",
}
_WIDE = re.compile(f"[{''.join(map(re.escape, _NARROW))}]")
#: from here on an array is faster than a substitution
_LONG = 4_096


def narrow(text: str) -> str:
    """Full-width forms, odd blanks, quotation marks and hyphens as ASCII, character by character."""
    if text.isascii():
        return text
    if len(text) < _LONG:
        return _WIDE.sub(lambda match: _NARROW[match[0]], text)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").copy()
    wide = (codes >= 0x80) & (codes < 0x10000)
    codes[wide] = _table()[codes[wide]]
    narrowed: str = codes.tobytes().decode("utf-32-le", "surrogatepass")
    return narrowed


@lru_cache(maxsize=1)
def _table() -> np.ndarray:
    table = np.arange(0x10000, dtype="<u4")
    for wide, plain in _NARROW.items():
        table[ord(wide)] = ord(plain)
    return table


# what begins and ends a trace, in the spellings of the models that write them in their text
_NAMES = [
    "think", "thinking", "thought", "thoughts", "reasoning", "reason", "analysis", "reflection",
    "scratchpad", "seed:think",
]  # fmt: skip
_OPEN = [
    *(f"<{name}>" for name in _NAMES),
    *("[think]", "◁think▷", "<|begin_of_thought|>", "<unused94>", "<|channel|>analysis", "<|channel>thought"),
]
_CLOSE = [
    *(f"</{name}>" for name in _NAMES),
    *(
        "[/think]",
        "◁/think▷",
        "<|end_of_thought|>",
        "<unused95>",
        "<channel|>",
        "final<|message|>",
        "assistantfinal",
    ),
]
#: tokens that end a turn, and what follows them
_TURN_END = re.compile(
    r"<\|(?:end|im_end|eot_id|return|endoftext|end_of_text|eot)\|>|</s>|<eos>|<end_of_turn>"
    r"|<\|(?:im_start|start)\|>|<start_of_turn>",
)


_QUOTED = re.compile(r"^[ >]{0,8}>", re.MULTILINE)


@lru_cache(maxsize=4)  # several readers look at one response
def reply_of(response: str) -> Reply:
    """Cut a response. A trace that never ends leaves what stands before it."""
    text = narrow(response)
    begin, end, traced = 0, len(text), False
    if "<" in text or "[" in text or "◁" in text or "ssistant" in text:
        low = text.replace("İ", "i").lower()  # the one character that grows as it gets small
        begin = max((place + len(mark) for mark in _CLOSE if (place := low.rfind(mark)) >= 0), default=0)
        opened = min((place for mark in _OPEN if (place := low.find(mark, begin)) >= 0), default=end)
        traced, end = begin > 0 or opened < end, opened
        if stop := _TURN_END.search(text, begin, end):
            before = text[begin : stop.start()]
            end = stop.start() if before.strip() else end
    if begin:
        text = "\n" * begin + text[begin:]  # what was cut is no neighbour of what is left
    if text[begin:end].lstrip().startswith(">"):
        text = _QUOTED.sub(lambda match: match[0].replace(">", " "), text)
    part = text[begin:end]
    begin += len(part) - len(part.lstrip())
    return Reply(text, begin, max(begin, end - len(part) + len(part.rstrip())), traced)
