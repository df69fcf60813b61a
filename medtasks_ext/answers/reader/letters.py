"""Labels of options, and the texts of options: one, or several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import regex

from medtasks_ext.answers.reader.announce import Found, Reader
from medtasks_ext.answers.reader.reply import Extraction, Reply, narrow
from medtasks_ext.answers.reader.words import Token, Trie, Words, plain, tokens_of

#: characters of Han that follow a label and are no part of a word with it, as in `B项`, unlike `C反应蛋白`
_HAN = regex.compile(r"\p{Han}")
_AFTER_LABEL = frozenset("项項选選是为為和与與或及因故即最均更对對错錯不两兩三四五个個")
_UNSPACED = regex.compile(r"[\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Han}]")
_THAI = regex.compile(r"\p{Thai}")
_WORD = regex.compile(r"[\p{L}\p{N}]")
#: the label before an option's text, where rows have it
_LEAD = regex.compile(r"\s*\(?(\w+)[.):]\s*")


class _Options:
    """The options of a question, as they are found in tokens; where several may be right, labels may stand
    together."""

    def __init__(self, labels: Sequence[str], texts: Sequence[str], several: bool) -> None:
        self._several = several
        self._exact = {narrow(label): place for place, label in enumerate(labels)}
        self._plain = {plain(label): place for place, label in enumerate(labels)}
        self._phrases = Trie(
            [
                *((label, (place, False)) for place, label in enumerate(labels) if len(tokens_of(label)) > 1),
                *((text, (place, True)) for place, text in enumerate(map(self._bare, labels, texts)) if text),
            ],
            texts=True,
        )
        forms = [plain(text) for text in texts[: len(labels)]]
        #: the one option that has a text, marks at its ends included
        self.whole = {
            form: place
            for place, form in enumerate(forms)
            if form not in self._plain and forms.count(form) == 1
        }

    def _bare(self, label: str, text: str) -> str:
        """An option's text without its label; none where the text is a label."""
        lead = _LEAD.match(narrow(text))
        bare = text[lead.end() :] if lead and plain(lead[1]) == plain(label) else text
        said = [plain(token.text) for token in tokens_of(bare) if token.is_word]
        return "" if len(said) == 1 and said[0] in self._plain else bare

    def find(self, tokens: Sequence[Token], place: int) -> Found | None:
        """The option that a label or a text at a token names."""
        token = tokens[place]
        if not token.is_word:
            return None
        options, end = self._phrases.find(tokens, place)
        option, is_text = next(iter(options)) if len(options) == 1 else (None, False)
        label = self._label(tokens, place)
        if option is not None and (label is None or end > label.end):
            return Found(option, end, text=is_text)
        return label

    def _label(self, tokens: Sequence[Token], place: int) -> Found | None:
        token = tokens[place]
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
        if after[0].is_word:
            text = after[0].text
            if token.text.isascii() and token.text.isalpha() and _HAN.match(text):
                return text in _AFTER_LABEL
            return bool(_UNSPACED.match(text)) and not _THAI.match(token.text)
        return True


_options = lru_cache(maxsize=4)(_Options)  # the kinds look at one question several times


def read_letters(
    reply: Reply, labels: Sequence[str], texts: Sequence[str], words: Words, *, several: bool = False
) -> Extraction:
    """The place of the option that a reply announces; the sorted places of all where `several` may be right.

    `labels` and `texts` are those of the options; there may be no texts.
    """
    options = _options(tuple(labels), tuple(texts), several)
    if not several:
        return Reader(options.find, words, options.whole).read(reply)
    found = Reader(options.find, words, most=len(labels)).read(reply)
    return found if found.answer is None else found._replace(answer=sorted(found.answer))
