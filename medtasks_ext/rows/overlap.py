"""Whether one text says what another says: equal, or a part of it that is long enough to be no chance."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

#: Words of a text, below which standing in another one is chance: terms, headings, answers of a word.
FEWEST_WORDS = 8

_EAST_ASIAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_EAST_ASIAN}]|[^\W{_EAST_ASIAN}]+")


def count_words(text: str, most: int | None = None) -> int:
    """Words as BRIDGE's published lengths count them, at most so many.

    A run of letters, digits and underscores is a word, and so is every Chinese or Japanese character.
    """
    return sum(1 for _ in islice(_WORD.finditer(text), most))


class NormalisedTexts:
    def __init__(self, texts: Iterable[str]) -> None:
        self._all = {plain(text) for text in texts}
        self._long = list(filter(_is_long, self._all))

    def overlap(self, text: str) -> bool:
        """Whether a text is one of them, or holds one, or stands in one."""
        said = plain(text)
        if said in self._all:
            return True
        return _is_long(said) and any(said in other or other in said for other in self._long)


def _is_long(text: str) -> bool:
    return count_words(text, FEWEST_WORDS) == FEWEST_WORDS


def plain(text: str) -> str:
    return " ".join(text.split())
