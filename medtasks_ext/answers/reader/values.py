"""Values: a label that is a word, a number with or without a unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import regex

from medtasks_ext.answers.reader.announce import Found, Reader
from medtasks_ext.answers.reader.words import Token, Trie, Words, plain, tokens_of


def word_reader(names: Mapping[str, str], words: Words) -> Reader:
    """Reads one label of a closed list: spelling -> label."""
    trie = Trie(names.items(), texts=True)

    def find(tokens: Sequence[Token], place: int) -> Found | None:
        labels, end = trie.find(tokens, place)
        return Found(next(iter(labels)), end, word=True) if len(labels) == 1 else None

    whole = {plain(name): label for name, label in names.items()}
    return Reader(find, words, whole, opens=True)


_GROUPED = regex.compile(
    r"\d{1,3}(?:(?P<mark>[.,' \u2009])\d{3})(?:(?P=mark)\d{3})*(?:(?!(?P=mark))[.,]\d+)?"
)
#: of a sum whose result stands behind the last sign of equality, in tokens
_LONGEST_SUM, _WORDS_OF_A_SUM = 80, 8


def number_of(text: str, decimal: str) -> float | None:
    """The value of digits with marks between them; `decimal` stands before decimals. None of other texts."""
    text = plain(text).replace(" ", "") if not text.isascii() else text.replace(" ", "")
    other = "," if decimal == "." else "."
    if (
        _GROUPED.fullmatch(text)
        and text.count(decimal) <= 1
        and not regex.fullmatch(rf"\d+\{decimal}\d+", text)
    ):
        text = text.replace(other, "").replace("'", "")
    elif text.count(",") + text.count(".") > 1:
        return None
    text = text.replace(decimal, ".").replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class Numbers:
    """Numbers, with or without a unit: its spelling -> what a number in it is multiplied with."""

    def __init__(self, units: Mapping[str, float], words: Words) -> None:
        self._units = {plain(unit): factor for unit, factor in units.items()}
        self._words = words
        #: reads the one that a reply announces
        self.reader = Reader(self._find, words, numbers=True)

    def value(self, text: str) -> float | None:
        """The value of a text that is one number and its unit."""
        tokens = [token for token in tokens_of(text.strip()) if token.text not in '"*']
        found = self._number(tokens, 0) if tokens else None
        return found.value if found and found.end == len(tokens) else None

    def _find(self, tokens: Sequence[Token], place: int) -> Found | None:
        """The number at a token; that behind the last sign of equality where a sum begins here."""
        found = self._number(tokens, place)
        if found is None:
            return None
        result, words = None, 0
        for index in range(found.end, min(len(tokens), found.end + _LONGEST_SUM)):
            words += tokens[index].kind == "word"
            if tokens[index].kind == "line" or tokens[index].text in ":;" or words > _WORDS_OF_A_SUM:
                break
            if tokens[index].text in "=≈":
                begin = index + 1
                while begin < len(tokens) and tokens[begin].text in "*_$~≈":
                    begin += 1
                result = self._number(tokens, begin) or result
        return result or found

    def _number(self, tokens: Sequence[Token], place: int) -> Found | None:
        sign, begin = 1.0, place
        if place + 1 < len(tokens) and tokens[place].text in "-+":
            before = tokens[place - 1] if place else None
            if before and before.end == tokens[place].begin and before.kind in ("word", "number"):
                return None
            sign, place = (-1.0 if tokens[place].text == "-" else 1.0), place + 1
        while place < len(tokens) and tokens[place].text in "~≈<>≥≤" and place - begin < 2:
            place += 1
        if place >= len(tokens) or tokens[place].kind != "number":
            return None
        value = number_of(tokens[place].text, self._words.decimal)
        if value is None:
            return None
        after = tokens[place + 1 : place + 3]
        if len(after) == 2 and after[0].text == "/" and after[1].kind == "number":
            return None  # a fraction, or a date
        end, factor = self._unit(tokens, place + 1)
        return Found(sign * value * factor, end)

    def _unit(self, tokens: Sequence[Token], place: int) -> tuple[int, float]:
        """Where the unit behind a number ends, and its factor."""
        begin, text = place, ""
        while place < len(tokens) and place - begin < 9:
            token = tokens[place]
            if (token.kind in ("mark", "tex") and token.text in "%‰°/^·µ{}²³") or token.kind == "tex":
                text += token.text
            elif token.kind == "word" and (
                place == begin
                or text.endswith(("/", "·", "°", "{", "^"))
                or regex.match(r"[\p{Han}\p{Hangul}\p{Katakana}\p{No}]", token.text)
            ):
                if self._words.at(tokens, place)[0]:
                    break
                text += token.text
            elif token.kind == "number" and text.endswith(("/", "^", "m", "{")):
                text += token.text
            else:
                break
            place += 1
        return place, self._units.get(plain(text), 1.0)
