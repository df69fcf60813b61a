"""Tokens of a text, and the words of `marks.yaml` in them.

A token is a word, a number, a character of a script without blanks, a mark or a line end. What people take
for the same (case, full width, accents, circled digits, Arabic forms of a letter) is one key.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import regex
import yaml

from medtasks_ext.answers.reader.reply import narrow

#: whose words are tried where those of another language announce nothing
COMMON = "en"
#: the lists of a language
LISTS = ("answer", "option", "right", "not", "wait", "yes", "no", "none")
#: scripts whose words have no blanks between them, and those whose words have endings in Hangul
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}々ー〇"
_TOKEN = regex.compile(
    rf"""(?P<box>\\(?:boxed|fbox)\s*\{{|<\s*(?:final_?)?(?:answer|result|solution|label)\s*>)
    |(?P<tex>```\w*|\\(?:text|textbf|mathrm|mathbf|textrm|bf|left|right|quad|,|;|!|[()\[\]])\s*\{{?|</?(?:b|i|u|em|strong|p|br|span|sub|sup|code|div|center|answer)\s*/?>)
    |(?P<number>\d+(?:[.,'٫٬\u2009]\d+|[ ]\d{{3}}(?!\d))*+)
    |(?P<line>\n)
    |(?P<cjk>[{_UNSPACED}])
    |(?P<word>[\p{{L}}\p{{M}}][[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]*+|[\p{{No}}\p{{Nl}}])
    |(?P<mark>[^\s])""",
    regex.VERBOSE | regex.VERSION1,
)
#: of Arabic, which are mostly left out
_VOWEL_SIGNS = regex.compile(r"[\u064b-\u0652]")
#: letters that are written for each other
_SAME = {
    "ى": "ي", "ی": "ي", "ک": "ك", "ہ": "ه", "ھ": "ه", "ة": "ه", "ٱ": "ا", "ँ": "ं", "ı": "i", "ß": "ss", "،":
    ",", "؛": ";", "؟": "?", "٫": ".", "٬": "", "ـ": "", "़": "", "।": ".", "॥": ".", "。": ".", "ё": "е",
    "đ": "d", "ø": "o", "ł": "l",
}  # fmt: skip
#: of which accents are dropped
_ACCENTED = ("LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW")


@lru_cache(maxsize=8_192)
def _plain_letter(character: str) -> str:
    """One character of a text in NFKC and small letters."""
    if character in _SAME:
        return _SAME[character]
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    name = unicodedata.name(character, "")
    if category == "Mn":
        return "" if name.startswith(("COMBINING", "ARABIC", "HEBREW")) else character
    if (digit := unicodedata.digit(character, None)) is not None:
        return str(digit)
    if character != "й" and name.startswith(_ACCENTED):
        base = unicodedata.normalize("NFD", character)[0]
        return _SAME.get(base, base)
    return character


@lru_cache(maxsize=16_384)
def plain(text: str) -> str:
    """The form in which texts are compared: small letters without accents, single blanks, none around."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", narrow(text)).casefold())
    return " ".join("".join(map(_plain_letter, composed)).split())


def squeezed(text: str) -> str:
    """The plain form without blanks, as mentions are compared: texts may be tokenised."""
    return plain(text).replace(" ", "")


@lru_cache(maxsize=16_384)
def _key(text: str) -> str:
    key: str = _VOWEL_SIGNS.sub("", unicodedata.normalize("NFC", text.casefold()))
    return key


class Token(NamedTuple):
    """A token of a reply: its kind (`word`, `number`, `line`, `mark`, `box`, `tex`), text and place."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is a word or a number."""
        return self.kind in ("word", "number")

    @property
    def key(self) -> str:
        """In small letters; accents stay, since `si` and `sí` are two words."""
        return self.text.lower() if self.text.isascii() else _key(self.text)


def tokens_of(text: str, begin: int = 0, end: int | None = None) -> list[Token]:
    """The tokens between two places."""
    found = []
    for match in _TOKEN.finditer(text, begin, len(text) if end is None else end):
        kind = match.lastgroup or "mark"
        found.append(Token("word" if kind == "cjk" else kind, match[0], *match.span()))
    return found


class Trie:
    """Phrases by their words: the longest one that begins at a token is found in as many looks as it has
    words.

    Args:
        phrases: (phrase, what it stands for). Its last word may end in `*`: any ending.
        texts: whether words are compared in plain form, and marks between them are passed.
    """

    def __init__(self, phrases: Iterable[tuple[str, Any]], *, texts: bool = False) -> None:
        self._texts = texts
        self._root: dict[str, Any] = {}
        for phrase, value in phrases:
            node = self._root
            stem = not texts and phrase.endswith("*")
            keys = [self._key(token) for token in tokens_of(narrow(phrase)) if token.is_word]
            for place, key in enumerate(keys, 1):
                if stem and place == len(keys):  # stems stand beside the words of a node
                    node = node.setdefault("*", {})
                node = node.setdefault(key, {})
            if keys:
                node[""] = node.get("", frozenset()) | {value}

    def find(self, tokens: Sequence[Token], place: int) -> tuple[frozenset[Any], int]:
        """What the longest phrase at a place stands for, and where it ends; nothing where there is none."""
        best: tuple[frozenset[Any], int] = (frozenset(), place)
        node, index = self._root, place
        while index < len(tokens) and tokens[index].is_word:
            key = self._key(tokens[index])
            if key in node:
                node = node[key]
            elif stem := next((stem for stem in node.get("*", ()) if key.startswith(stem)), ""):
                node = node["*"][stem]
            else:
                break
            index += 1
            if "" in node:
                best = (node[""], index)
            while index < len(tokens) and self._is_passed(tokens[index]):
                index += 1
        return best

    def _key(self, token: Token) -> str:
        return plain(token.text) if self._texts else token.key

    def _is_passed(self, token: Token) -> bool:
        return token.kind in ("mark", "tex") if self._texts else token.text in "'-"  # isn't


@lru_cache(maxsize=1)
def languages() -> dict[str, dict[str, Any]]:
    """Language -> its lists; `common` -> those of all."""
    said = yaml.safe_load(Path(__file__).with_name("marks.yaml").read_text(encoding="utf-8"))
    return {"common": said["common"], **said["languages"]}


class Words:
    """The words of one language, and where they stand in tokens.

    Classes of a word: `answer`, `verb` (stands before the answer), `option`, `right`, `not`, `if` (makes a
    condition), `refuse`, `wait`, `rather` (corrects before another answer), `is`, `that` (stands for what was
    said), `filler`, `and`, `or`, `but`, `because`.

    Attributes:
        language: ISO 639; the common ones where it has no list.
        decimal: the mark before decimals.
    """

    def __init__(self, language: str, more: Mapping[str, Sequence[str]] | None = None) -> None:
        said = {**languages().get(language, languages()[COMMON])}
        values = said.pop("values")
        self.language, self.decimal = language, values["decimal"]
        more = more or {}
        self.yes, self.no, self.none = (
            tuple(dict.fromkeys((*values[name], *more.get(name, ())))) for name in ("yes", "no", "none")
        )
        if language != COMMON:  # models announce in English, too
            nouns = [word for word in languages()[COMMON]["answer"] if not word.endswith("…")]
            said["answer"] = [*said["answer"], *nouns]
        lists = {
            name: [*words, *more.get(name, ())] for name, words in {**languages()["common"], **said}.items()
        }
        lists["not"] += lists["refuse"]
        last = {"answer": "verb", "not": "if", "wait": "rather"}
        self._trie = Trie(
            (word.removesuffix("…").strip(), last[name] if word.endswith("…") else name)
            for name, words in lists.items()
            for word in words
        )
        close = [word for word in lists["and"] if regex.match(rf"[{_UNSPACED}]", word)]
        spaced = [word for word in lists["and"] if word not in close]
        #: a word between the last two items of a list
        self.joins = regex.compile(r"\s+\L<spaced>\s+|\s*\L<close>\s*", regex.I, spaced=spaced, close=close)

    def at(self, tokens: Sequence[Token], place: int) -> tuple[frozenset[str], int]:
        """The classes of the longest phrase that begins at a token, and where it ends."""
        return self._trie.find(tokens, place)


@lru_cache(maxsize=64)
def words_of(language: str) -> Words:
    """A language's words; those of `COMMON` for a language that has none."""
    return Words(language)
