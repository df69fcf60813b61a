"""What an answer is: an option's label or text, one or several; a word of a closed list; a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import regex

from medtasks_ext.answers.formats import Reading
from medtasks_ext.answers.reader.announce import Found, Reader
from medtasks_ext.answers.reader.words import Token, Trie, Words, narrow, plain, tokens_of

#: characters of Han that follow a label and are no part of a word with it, as in `B项`, unlike `C反应蛋白`
_HAN = regex.compile(r"\p{Han}")
_AFTER_LABEL = frozenset("项項选選是为為和与與或及因故即最均更对對错錯不两兩三四五个個")
_UNSPACED = regex.compile(r"[\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Han}]")
_THAI = regex.compile(r"\p{Thai}")
_WORD = regex.compile(r"[\p{L}\p{N}]")
_IN_UNITS = regex.compile(r"[\p{Han}\p{Hangul}\p{Katakana}\p{No}]")
#: the label before an option's text, where rows have it
_LEAD = regex.compile(r"\s*\(?(\w+)[.):]\s*")


class _Options:
    def __init__(self, labels: Sequence[str], texts: Sequence[str], several: bool) -> None:
        self._several = several
        self._exact = {narrow(label): place for place, label in enumerate(labels)}
        self._plain = {plain(label): place for place, label in enumerate(labels)}
        phrases = [(label, (place, False)) for place, label in enumerate(labels) if len(tokens_of(label)) > 1]
        phrases += [(text, (place, True)) for place, text in enumerate(map(self._bare, labels, texts))]
        self._phrases = Trie(phrases, texts=True)
        forms = [plain(text) for text in texts[: len(labels)]]
        once = [form for form in forms if form not in self._plain and forms.count(form) == 1]
        #: the one option that has a text, marks at its ends included
        self.whole = {form: forms.index(form) for form in once}

    def _bare(self, label: str, text: str) -> str:
        """An option's text without its label; none where the text is a label."""
        lead = _LEAD.match(narrow(text))
        bare = text[lead.end() :] if lead and plain(lead[1]) == plain(label) else text
        said = [plain(token.text) for token in tokens_of(bare) if token.is_word]
        return "" if len(said) == 1 and said[0] in self._plain else bare

    def find(self, tokens: Sequence[Token], place: int) -> Found | None:
        """The option that a label or a text at a token names."""
        if not tokens[place].is_word:
            return None
        options, end = self._phrases.find(tokens, place)
        option, is_text = next(iter(options)) if len(options) == 1 else (None, False)
        label = self._label(tokens, place)
        if option is not None and (label is None or end > label.end):
            return Found(option, end, text=is_text)
        return label

    def _label(self, tokens: Sequence[Token], place: int) -> Found | None:
        text, loose = tokens[place].text, False
        known: int | tuple[int, ...] | None = self._exact.get(text)
        if known is None and (known := self._plain.get(plain(text))) is not None:
            loose = text.isalpha()
        elif known is None and self._several:
            known = self._together(text)
        if known is None or not self._stands_alone(tokens, place):
            return None
        return Found(known, place + 1, loose=loose)

    def _together(self, text: str) -> int | tuple[int, ...] | None:
        """Labels that stand together: `ABD`, `1,3`; in Arabic one behind its `and`."""
        if len(text) > 1 and text[0] == "و":
            return self._exact.get(text[1:])
        letters = text.split(",") if "," in text else text if text.isupper() else ""
        known = [self._exact[letter] for letter in letters if letter in self._exact]
        return tuple(dict.fromkeys(known)) if 1 < len(known) == len(letters) else None

    @staticmethod
    def _stands_alone(tokens: Sequence[Token], place: int) -> bool:
        """Whether a label is no part of a word: `D-dimer`, `A's`, `C反应蛋白`, `4/5`, `3 %`."""
        token = tokens[place]
        before, after = tokens[place - 1] if place else None, tokens[place + 1 : place + 3]
        if before and before.end == token.begin and before.text in "-/'":
            earlier = tokens[place - 2] if place > 1 else None
            if earlier and earlier.end == before.begin and _WORD.match(earlier.text):
                return False
        if _THAI.match(token.text) and before and before.end == token.begin and _THAI.match(before.text):
            return False
        if after and token.kind == "number" and after[0].text in "%‰°/":
            return False
        if not after or after[0].kind == "line" or after[0].begin > token.end:
            return True
        if after[0].text in "-'/" and len(after) > 1 and after[1].begin == after[0].end:
            return not _WORD.match(after[1].text)
        if after[0].is_word:
            text = after[0].text
            if token.text.isascii() and token.text.isalpha() and _HAN.match(text):
                return text in _AFTER_LABEL
            return bool(_UNSPACED.match(text)) and not _THAI.match(token.text)
        return True


_options = lru_cache(maxsize=4)(_Options)  # the kinds look at one question several times


def read_letters(
    response: str, labels: Sequence[str], texts: Sequence[str], words: Words, *, several: bool = False
) -> Reading:
    """The label of the option that a reply announces; where `several` may be right, those of all."""
    options = _options(tuple(labels), tuple(texts), several)
    reader = Reader(options.find, words, {} if several else options.whole, len(labels) * several)
    found = reader.read(response)
    if found.answer is None:
        return found
    said = [labels[place] for place in sorted(found.answer)] if several else labels[found.answer]
    return found._replace(answer=said)


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
    text = plain(text).replace(" ", "")
    other = "," if decimal == "." else "."
    is_decimal = regex.fullmatch(rf"\d+\{decimal}\d+", text)
    if _GROUPED.fullmatch(text) and text.count(decimal) <= 1 and not is_decimal:
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
        words = 0
        for index in range(found.end, min(len(tokens), found.end + _LONGEST_SUM)):
            words += tokens[index].kind == "word"
            if tokens[index].kind == "line" or tokens[index].text in ":;" or words > _WORDS_OF_A_SUM:
                break
            if tokens[index].text in "=≈":
                begin = index + 1
                while begin < len(tokens) and tokens[begin].text in "*_$~≈":
                    begin += 1
                found = self._number(tokens, begin) or found
        return found

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
            fits = token.text in "%‰°/^·µ{}²³" or token.kind == "tex"
            if token.kind == "number":
                fits = text.endswith(("/", "^", "m", "{"))
            elif token.kind == "word" and not self._words.at(tokens, place)[0]:
                joined = text.endswith(("/", "·", "°", "{", "^"))
                fits = place == begin or joined or bool(_IN_UNITS.match(token.text))
            if not fits:
                break
            text += token.text
            place += 1
        return place, self._units.get(plain(text), 1.0)
