"""Passages of a paper's text, found by the hash of their words, however the text was made."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.registry.official import Passage


#: What programs that make text of a PDF write in several ways.
_QUOTES = str.maketrans("‘’“”", "''\"\"")


def words_in(text: str) -> list[str]:
    """The words of a text; ligatures and curly quotation marks become plain ones."""
    return unicodedata.normalize("NFKC", text).translate(_QUOTES).split()


def digest_of(words: list[str]) -> str:
    """The hash by which a passage is recognised."""
    return sha256(" ".join(words).encode()).hexdigest()


def passage(text: str, wanted: Passage, *, where: Path) -> str:
    """The passage, with one blank between two words.

    Args:
        text: any text that holds it: line ends, columns of blanks and markup around it do not matter.
        wanted: how many words it has, and their hash.
        where: the file, for messages.

    Raises:
        MedtasksError: the text does not hold it word for word.
    """
    found = _found(text, wanted)
    if found is None:
        raise MedtasksError(
            f"holds no passage of {wanted.words} words with SHA-256 {wanted.sha256[:16]}…",
            where=where,
            remedy="make the text anew from the paper, without hyphens at line ends and with its table whole",
        )
    return found


@lru_cache(maxsize=256)
def _found(text: str, wanted: Passage) -> str | None:
    words = words_in(text)
    for start in range(len(words) - wanted.words + 1):
        part = words[start : start + wanted.words]
        if digest_of(part) == wanted.sha256:
            return " ".join(part)
    return None
