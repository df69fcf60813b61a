"""Passages of a paper's text, found by the hash of their words, however the text was made."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError

if TYPE_CHECKING:
    from medtasks_ext.registry.official import Passage


#: What programs that make text of a PDF write in several ways.
_QUOTES = str.maketrans("‘’“”", "''\"\"")


def words_in(text: str) -> list[str]:
    """The words of a text; ligatures and curly quotation marks become plain ones."""
    return unicodedata.normalize("NFKC", text).translate(_QUOTES).split()


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
    digest = bytes.fromhex(wanted.sha256)
    joined, starts = _spaced(text)
    for first, after in zip(starts, starts[wanted.words :], strict=False):
        part = joined[first : after - 1]
        if sha256(part).digest() == digest:
            return part.decode()
    return None


@lru_cache(maxsize=4)
def _spaced(text: str) -> tuple[bytes, list[int]]:
    """The words of a text with one blank after each, and where each begins, the end included."""
    words = [f"{word} ".encode() for word in words_in(text)]
    return b"".join(words), [0, *accumulate(map(len, words))]
