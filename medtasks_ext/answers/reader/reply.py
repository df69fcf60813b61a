"""A response cut to its reply: reasoning taken off, full-width forms made half-width.

`traces.yaml` lists what models put around their reasoning; everything that reads, judges or shows replies
uses it, but where a paper's scorer has a rule of its own. Every step keeps the length of the text, so that a
place in the reply is a place in the response.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

#: (first, last + 1) of characters of a response
Span = tuple[int, int]


class Extraction(NamedTuple):
    """What a reader makes of a reply.

    Attributes:
        answer: as the answer kind has it; None where there is none or where it is not clear.
        span: where it stands in the response.
        why: by which sign it was found, or why there is none.
    """

    answer: Any
    span: Span | None
    why: str


NOTHING = Extraction(None, None, "no answer is announced")
UNCLOSED = Extraction(None, None, "the reasoning never ends")


@dataclass(frozen=True, slots=True)
class Reply:
    """The part of a response that is meant for the reader.

    Attributes:
        text: the response, full-width forms made half-width, of the same length.
        begin: first character of the reply.
        end: last + 1.
        traced: whether reasoning was left out.
        unclosed: whether the reasoning never ends; the reply is then empty.
    """

    text: str
    begin: int
    end: int
    traced: bool = False
    unclosed: bool = False

    @property
    def part(self) -> str:
        """The reply itself."""
        return self.text[self.begin : self.end]

    def of(self, begin: int, end: int | None = None) -> Reply:
        """A part of it."""
        return Reply(self.text, begin, self.end if end is None else end, self.traced)


_NARROW = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {
    **dict.fromkeys("\u3000\xa0\u2007\u202f\u2028\u2029\u200b\u200c\u200d\u2060\ufeff", " "),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("−‐‑‒", "-"),
    **dict.fromkeys("【〔", "["),
    **dict.fromkeys("】〕", "]"),
    **dict.fromkeys("﹕∶", ":"),
    "｡": "。",
    "､": "、",
}
_TABLE = str.maketrans(_NARROW)


def narrow(text: str) -> str:
    """Full-width forms, odd blanks, quotation marks and hyphens as ASCII, character by character."""
    return text if text.isascii() else text.translate(_TABLE)


def whole_reply(answer: Any, reply: Reply) -> Extraction:
    """That a reply is an answer and nothing else."""
    return Extraction(answer, (reply.begin, reply.end), "the whole reply")


@dataclass(frozen=True)
class Trace:
    """What a maker's models put around their reasoning, in small letters."""

    open: str
    close: str
    source: str
    at_begin: bool = False  # the opening counts at the beginning of a response alone


@lru_cache(maxsize=1)
def traces() -> tuple[Trace, ...]:
    """All that are known, as `traces.yaml` has them."""
    path = Path(__file__).with_name("traces.yaml")
    return tuple(Trace(**said) for said in yaml.safe_load(path.read_text(encoding="utf-8")))


#: tokens that end a turn, and what follows them
_TURN_END = re.compile(
    r"<\|(?:end|im_end|eot_id|return|endoftext|end_of_text|eot)\|>|</s>|<eos>|<end_of_turn>|<turn\|>"
    r"|<\|(?:im_start|start)\|>|<start_of_turn>"
)
#: what may be a mark of reasoning that no rule knows
_LIKE_A_TRACE = re.compile(
    r"\A\s*(?:[<\[◁{|]{1,2}/?[|_\s]?(?:\w{0,12}[:_ ])?"
    r"(?:think|thought|reason|analysis|analyz|scratch|reflect|ponder|deliberat|cot|inner|monologue)\w{0,12}[^\n]{0,3}[>\]▷}|]"
    r"|#{1,4}\s*(?:thinking|reasoning|thought process)\b|thinking(?: process)?:\s)",
    re.IGNORECASE,
)


def reasoning_of(text: str) -> tuple[int, int, bool]:
    """Where the reply begins and ends, and whether reasoning was opened that never ends.

    What follows the last end of a trace is the reply. An opening behind it that has no end makes all of it
    reasoning.
    """
    low = text.replace("İ", "i").lower()  # the one character that grows as it gets small
    begin = 0
    for trace in traces():
        place = low.rfind(trace.close)
        if place >= 0 and (not trace.at_begin or low.lstrip(" \n*").startswith(trace.open)):
            begin = max(begin, place + len(trace.close))
    stripped = low[begin:].lstrip()
    for trace in traces():
        if trace.at_begin:
            opened = begin == 0 and trace.open.startswith("#") and stripped.startswith(trace.open)
        else:
            opened = low.find(trace.open, begin) >= 0
        if opened:
            return begin, begin, True
    return begin, len(text), False


def without_reasoning(text: str) -> str:
    """The response without its reasoning; empty where that never ends."""
    begin, end, _ = reasoning_of(text)
    if not begin and end == len(text):
        return text
    stop = _TURN_END.search(text, begin, end)
    return text[begin : stop.start() if stop and text[begin : stop.start()].strip() else end]


def has_unclosed_reasoning(text: str) -> bool:
    """Whether reasoning was opened that never ends (usually a budget that ran out)."""
    return reasoning_of(text)[2]


#: share of responses that end a trace without a beginning, from which the chat template began it
OPENED_BY_TEMPLATE = 0.1


def unclosed_reasoning(texts: Sequence[str]) -> list[bool]:
    """Which responses of a task hold reasoning that never ends.

    Some chat templates open the trace in the prompt, and responses show its end alone. Where a tenth of them
    do (a few may be slips of a model that does not reason), one without an end is a trace to its last word.
    """
    found = [reasoning_of(text) for text in texts]
    alone = sum(
        begin > 0 and not _opens(text[:begin]) for text, (begin, _, _) in zip(texts, found, strict=True)
    )
    opened = alone >= max(1, OPENED_BY_TEMPLATE * len(texts))
    return [
        unclosed or (opened and not begin and bool(text.strip()))
        for text, (begin, _, unclosed) in zip(texts, found, strict=True)
    ]


def _opens(text: str) -> bool:
    low = text.lower()
    return any(trace.open in low for trace in traces())


def unknown_trace(text: str) -> str:
    """How a response begins that begins as reasoning does, in a form that no rule knows; mostly empty."""
    match = _LIKE_A_TRACE.match(text)
    return match[0].strip() if match and reasoning_of(text) == (0, len(text), False) else ""


def unknown_traces(texts: Iterable[str], *, asked: bool) -> dict[str, int]:
    """How responses begin that hold reasoning in forms that no rule knows -> how many do, most first.

    Where the prompt asked for reasoning, a heading for it is none.
    """
    begins = (begin for begin in map(unknown_trace, texts) if begin and not (asked and begin[0] in "#Tt"))
    return dict(Counter(begins).most_common())


@lru_cache(maxsize=4)  # several readers look at one response
def reply_of(response: str) -> Reply:
    """Cut a response. Reasoning that never ends leaves nothing."""
    begin, end, unclosed = reasoning_of(response)
    text = narrow(response)
    if stop := _TURN_END.search(text, begin, end):
        end = stop.start() if text[begin : stop.start()].strip() else end
    part = text[begin:end]
    begin += len(part) - len(part.lstrip())
    return Reply(text, begin, max(begin, end - len(part) + len(part.rstrip())), begin > 0, unclosed)


#: a question that a model asks itself after it has answered
_NEXT_QUESTION = re.compile(r"\n[*#\s]{0,12}(?:[Qq]uestion|[Uu]ser|[Hh]uman|题目|问题|Q)\s*\d{0,3}[*]*\s*:")
#: of a response, in characters: a model in a loop writes more, and an answer is not looked for behind it
_LONGEST = 20_000


def until_question(reply: Reply) -> Reply:
    """The reply without the next question that a model may ask itself."""
    match = _NEXT_QUESTION.search(reply.text, reply.begin, min(reply.end, reply.begin + _LONGEST))
    ends = match and reply.text[reply.begin : match.start()].strip()
    return reply.of(reply.begin, match.start()) if match and ends else reply
