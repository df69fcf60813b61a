"""Texts in any script in one plain form: what people take for the same is the same.

Full-width and circled forms, digits of all scripts, case, accents of Latin, Greek and Cyrillic letters,
Arabic vowel signs and forms of alef, Devanagari's nukta and candrabindu, marks of direction and tatweel.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

#: letters that are written for each other
_SAME = {
    "ى": "ي",
    "ی": "ي",
    "ک": "ك",
    "ہ": "ه",
    "ھ": "ه",
    "ة": "ه",
    "ٱ": "ا",
    "ँ": "ं",
    "ı": "i",
    "ß": "ss",
    "،": ",",
    "؛": ";",
    "؟": "?",
    "٫": ".",
    "٬": "",
    "ـ": "",
    "़": "",
    "।": ".",
    "॥": ".",
    "።": ".",
    "፣": ",",
    "፤": ";",
    "፡": ":",
    "፦": ":",
}
#: of which accents are dropped
_ACCENTED = ("LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW")


class Folded(NamedTuple):
    """A text in its plain form.

    Attributes:
        text: the plain form.
        places: of each character of it, and of its end, the place in the original.
    """

    text: str
    places: tuple[int, ...]

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the original of a stretch of the plain form."""
        return self.places[begin], self.places[end - 1] + 1


@lru_cache(maxsize=8_192)
def _fold(character: str) -> str:
    if character in _SAME:
        return _SAME[character]
    if unicodedata.category(character) == "Cf":
        return ""
    digit = unicodedata.digit(character, None)
    circled = unicodedata.decomposition(character).startswith("<circle>")
    if digit is not None and not circled:
        return str(digit)
    plain = "".join(map(_letter, unicodedata.normalize("NFKC", character).casefold()))
    return f" {plain} " if circled else plain


def _letter(character: str) -> str:
    if character in _SAME:
        return _SAME[character]
    name = unicodedata.name(character, "")
    if unicodedata.category(character) == "Mn":
        return "" if name.startswith(("COMBINING", "ARABIC", "HEBREW")) else character
    if character != "й" and name.startswith(_ACCENTED):
        base = unicodedata.normalize("NFD", character)[0]
        return _SAME.get(base, base)
    return character


def folded(text: str) -> Folded:
    """The plain form of a text, with the place of each of its characters."""
    parts = list(map(_fold, text))
    places = [place for place, part in enumerate(parts) for _ in part]
    return Folded("".join(parts), (*places, len(text)))


@lru_cache(maxsize=8_192)
def script_of(letter: str) -> str:
    """The script of a letter as Unicode's names begin, without the form of the letter: `Latin`, `Arabic`."""
    words = unicodedata.name(unicodedata.normalize("NFKC", letter)[:1], "").split()
    return words[0].capitalize() if words else ""


def plain(text: str) -> str:
    """The plain form with single blanks, and none around it."""
    return " ".join(folded(text).text.split())
