"""Signs of an answer that need no word of a language: bold, members of JSON, ticks, the last sentence.

All places are places in a text in its plain form (`folding`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import regex

#: ticks and rings, and crosses, as models and examiners write them
TICKS, CROSSES = "✓✔✅☑○◯⭕〇", "✗✘❌×✕✖☒❎"
#: behind a tick there may be a sign that asks for a picture
_PICTURE = "\ufe0f?"
TICK = regex.compile(rf"(?:[{TICKS}]|\[x\]){_PICTURE}")
CROSS = regex.compile(rf"(?:[{CROSSES}]|\[ \]){_PICTURE}")
_BOLD = regex.compile(r"(?P<mark>\*\*|__)(?=\S)(?P<said>[^*_\n]{1,200}?)(?P=mark)")
_OPENING = regex.compile(r"[\s\"'“‘「『«(\[$\\#]*")
_CLOSING = regex.compile(r"[\s\"'”’」』»)\]$\\.,;:!]*")
#: of a member of JSON, between its name and its value, and behind its value
_MEMBER = regex.compile(r"[\"']\s*:\s*[\"'\[(\s]*")
_MEMBER_END = regex.compile(r"[\"'\])\s]*(?:[,}]|$)")
_SENTENCE_END = regex.compile(r"(?:。|[.!?](?![\d,)]|\s?\p{Ll}\.)[*_\"')\]]*|\n)\s*(?=\S)")
#: of the last sentence, in characters
_LONGEST_SENTENCE = 400


class Stretch(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int

    def is_filled(self, text: str, end: int) -> bool:
        """Whether nothing but marks stands between a place and the end of the stretch."""
        closing = _CLOSING.match(text, end)
        return end <= self.end <= (closing.end() if closing else end)


def emphasised(text: str) -> Iterator[Stretch]:
    """What a reply sets in bold."""
    for match in _BOLD.finditer(text):
        opening = _OPENING.match(text, match.start("said"), match.end("said"))
        yield Stretch(opening.end() if opening else match.start("said"), match.end("said"))


def members(text: str) -> Iterator[int]:
    """Where the values of the members of an object begin."""
    if "{" in text:
        for match in _MEMBER.finditer(text, text.index("{")):
            yield match.end()


def ends_member(text: str, place: int) -> bool:
    """Whether a member's value ends at a place."""
    return bool(_MEMBER_END.match(text, place))


def last_sentence(text: str) -> int:
    """Where the last sentence begins."""
    stops = [match.end() for match in _SENTENCE_END.finditer(text, max(0, len(text) - _LONGEST_SENTENCE))]
    return stops[-1] if stops else 0
