"""Labels of options, and the texts of options: one, or several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import regex

from medtasks_ext.answers.reader.announce import Found, Reader
from medtasks_ext.answers.reader.reply import Extraction, Reply, narrow, whole_reply
from medtasks_ext.answers.reader.words import Token, Trie, Words, plain, plain_keys

#: characters of Han that follow a label and are no part of a word with it, as in `B项`, unlike `C反应蛋白`
_HAN = regex.compile(r"\p{Han}")
_AFTER_LABEL = frozenset("项項选選是为為和与與或及因故即最均更对對错錯不两兩三四五个個")
_UNSPACED = regex.compile(r"[\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Han}]")
_THAI = regex.compile(r"\p{Thai}")
_WORD = regex.compile(r"[\p{L}\p{N}]")


class _Options:
    """The options of a question, as they are found in tokens.

    Args:
        labels: of the options. texts: of the options, or none. several: whether letters may stand together.
    """

    def __init__(self, labels: Sequence[str], texts: Sequence[str], several: bool) -> None:
        self._exact = {narrow(label): place for place, label in enumerate(labels)}
        self._plain = {plain(label): place for place, label in enumerate(labels)}
        self._long = Trie(
            ((plain_keys(label), place) for place, label in enumerate(labels) if len(plain_keys(label)) > 1),
            texts=True,
        )
        self._texts = Trie(
            (
                (keys, place)
                for place, (label, text) in enumerate(zip(labels, texts, strict=False))
                if (keys := self._keys(label, text))
            ),
            texts=True,
        )
        self._several = several
        self._written: dict[str, list[int]] = {}
        for place, text in enumerate(texts[: len(labels)]):
            if (form := plain(text)) and form not in self._plain:
                self._written.setdefault(form, []).append(place)

    def _keys(self, label: str, text: str) -> list[str]:
        """The words of an option's text without its label; none where the text is a label."""
        keys = plain_keys(text)
        if len(keys) > 1 and keys[0] == plain(label) and regex.match(r"\s*\(?\w+[.):]", narrow(text)):
            keys = keys[1:]
        return [] if len(keys) == 1 and keys[0] in self._plain else keys

    def whole(self, text: str) -> int | None:
        """The one option whose text this is, marks at its ends included."""
        same = self._written.get(plain(text), [])
        return same[0] if len(same) == 1 else None

    def find(self, tokens: Sequence[Token], place: int) -> Found | None:
        """The option that a label or a text at a token names."""
        token = tokens[place]
        if token.kind not in ("word", "number"):
            return None
        texts, end = self._texts.find(tokens, place)
        option = next(iter(texts)) if len(texts) == 1 else None
        label = self._label(tokens, place)
        if option is not None and (label is None or end > label.end):
            return Found(option, end, text=True)
        return label

    def _label(self, tokens: Sequence[Token], place: int) -> Found | None:
        token = tokens[place]
        longer, end = self._long.find(tokens, place)
        if longer:
            return Found(next(iter(longer)), end)
        known, loose = self._exact.get(token.text), False
        if known is None and (known := self._plain.get(plain(token.text))) is not None:
            loose = token.text.isalpha()
        value: int | tuple[int, ...] | None = known
        if known is None and self._several:
            value = self._together(token.text)
        if value is None or not self._stands_alone(tokens, place):
            return None
        return Found(value, place + 1, loose=loose)

    def _together(self, text: str) -> tuple[int, ...] | None:
        """Labels that stand together: `ABD`, `1,3`."""
        if len(text) > 1 and text[0] == "و":  # Arabic writes `and` before the word
            text = text[1:]
            return None if text not in self._exact else (self._exact[text],)
        if not text.isupper() and "," not in text:
            return None
        places = [self._exact.get(letter) for letter in (text.split(",") if "," in text else text)]
        known = tuple(place for place in places if place is not None)
        return tuple(dict.fromkeys(known)) if 1 < len(known) == len(places) else None

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
        if not after or after[0].kind == "line":
            return True
        if token.kind == "number" and (after[0].text in "%‰°" or after[0].text == "/"):
            return False
        if after[0].begin > token.end:
            return True
        if after[0].text in "-'/" and len(after) > 1 and after[1].begin == after[0].end:
            return not _WORD.match(after[1].text)
        if after[0].kind in ("word", "number"):
            text = after[0].text
            if token.text.isascii() and token.text.isalpha() and _HAN.match(text):
                return text in _AFTER_LABEL
            return bool(_UNSPACED.match(text)) and not _THAI.match(token.text)
        return True


@lru_cache(maxsize=4)  # the kinds look at one question several times
def _options(labels: tuple[str, ...], texts: tuple[str, ...], several: bool) -> _Options:
    return _Options(labels, texts, several)


def read_letters(
    reply: Reply, labels: Sequence[str], texts: Sequence[str], words: Words, *, several: bool = False
) -> Extraction:
    """The place of the option that a reply announces, or the sorted places of several.

    Args:
        reply: to be read.
        labels: of the options, in their order.
        texts: of the options; empty where there are none.
        words: of the language.
        several: whether more than one option may be right.
    """
    options = _options(tuple(labels), tuple(texts), several)
    if not several and (whole := options.whole(reply.part)) is not None:
        return whole_reply(whole, reply)
    found = Reader(options.find, words, most=len(labels) if several else 0).read(reply)
    return found._replace(answer=sorted(found.answer)) if several and found.answer is not None else found
