"""Reasoning that models put around their replies: `traces.yaml` lists the marks, each with its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Trace:
    """What a maker's models put around their reasoning, in small letters."""

    open: str
    close: str
    source: str
    at_begin: bool = False  # the opening counts at the beginning of a response alone


@lru_cache(maxsize=1)
def traces() -> tuple[Trace, ...]:
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
    """Where the reply begins and ends, and whether reasoning behind the last end of a trace never ends."""
    low = text.replace("İ", "i").lower()  # the one character that grows as it gets small
    begin = 0
    for trace in traces():
        place = low.rfind(trace.close)
        if place >= 0 and (not trace.at_begin or low.lstrip(" \n*").startswith(trace.open)):
            begin = max(begin, place + len(trace.close))
    rest = low[begin:].lstrip()
    for trace in traces():
        heading = not begin and trace.open[0] == "#" and rest.startswith(trace.open)
        if heading if trace.at_begin else trace.open in rest:
            return begin, begin, True
    return begin, len(text), False


def without_reasoning(text: str) -> str:
    """The response without its reasoning; empty where that never ends."""
    begin, end, _ = reasoning_of(text)
    return text if not begin and end == len(text) else text[begin : turn_end(text, begin, end)]


def turn_end(text: str, begin: int, end: int) -> int:
    """Where a turn ends: before a token that ends turns, if anything is said before that."""
    stop = _TURN_END.search(text, begin, end)
    return stop.start() if stop and text[begin : stop.start()].strip() else end


def unclosed_reasoning(texts: Sequence[str]) -> list[bool]:
    """Which responses of a task hold reasoning that never ends.

    Some chat templates open the trace in the prompt, and responses show its end alone. Where a tenth of them
    do (a few may be slips of a model that does not reason), one without an end is a trace to its last word.
    """
    found = [reasoning_of(text) for text in texts]
    alone = sum(
        begin > 0 and not any(trace.open in text[:begin].lower() for trace in traces())
        for text, (begin, _, _) in zip(texts, found, strict=True)
    )
    opened = alone >= max(1, len(texts) / 10)
    return [
        unclosed or (opened and not begin and bool(text.strip()))
        for text, (begin, _, unclosed) in zip(texts, found, strict=True)
    ]


def unknown_traces(texts: Iterable[str], *, asked: bool) -> dict[str, int]:
    """Beginnings of responses that look like reasoning and no rule knows -> how many, most first."""
    matches = ((text, match) for text in texts if (match := _LIKE_A_TRACE.match(text)))
    begins = (match[0].strip() for text, match in matches if reasoning_of(text) == (0, len(text), False))
    return dict(Counter(begin for begin in begins if not (asked and begin[0] in "#Tt")).most_common())
