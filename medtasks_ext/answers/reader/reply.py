"""A response cut to its reply: reasoning taken off, full-width forms made half-width.

Every step keeps the length of the text, so that a place in the reply is a place in the response.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from medtasks_ext.answers.reasoning import reasoning_of, turn_end

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


class Reply(NamedTuple):
    """The part of a response that is meant for the reader.

    Attributes:
        text: the response, full-width forms made half-width, of the same length.
        begin: first character of the reply.
        end: last + 1.
        unclosed: whether the reasoning never ends; the reply is then empty.
    """

    text: str
    begin: int
    end: int
    unclosed: bool = False

    @property
    def part(self) -> str:
        """The reply itself."""
        return self.text[self.begin : self.end]


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


@lru_cache(maxsize=4)  # several readers look at one response
def reply_of(response: str) -> Reply:
    """Cut a response. Reasoning that never ends leaves nothing."""
    begin, end, unclosed = reasoning_of(response)
    text = narrow(response)
    end = turn_end(text, begin, end)
    part = text[begin:end]
    begin += len(part) - len(part.lstrip())
    return Reply(text, begin, max(begin, end - len(part) + len(part.rstrip())), unclosed)


#: a question that a model asks itself after it has answered
_NEXT_QUESTION = re.compile(r"\n[*#\s]{0,12}(?:[Qq]uestion|[Uu]ser|[Hh]uman|题目|问题|Q)\s*\d{0,3}[*]*\s*:")
#: of a response, in characters: a model in a loop writes more, and an answer is not looked for behind it
_LONGEST = 20_000


def until_question(reply: Reply) -> Reply:
    """The reply without the next question that a model may ask itself."""
    match = _NEXT_QUESTION.search(reply.text, reply.begin, min(reply.end, reply.begin + _LONGEST))
    ends = match and reply.text[reply.begin : match.start()].strip()
    return reply._replace(end=match.start()) if match and ends else reply
