"""A response cut to its reply, tokens of a text, and the words of `marks.yaml` in them.

A place in the reply is a place in the response. What people take for the same (case, accents) is one key.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import regex
import yaml

from medtasks_ext.answers.formats import reading
from medtasks_ext.answers.reasoning import reasoning_of, turn_end

NOTHING = reading(None, why="no answer is announced")
UNCLOSED = reading(None, why="the reasoning never ends")


class Reply(NamedTuple):
    """The part of a response that is meant for the reader."""

    text: str  # the response, full-width forms made half-width, of the same length
    begin: int
    end: int
    unclosed: bool = False  # whether the reasoning never ends; the reply is then empty


_NARROW = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {
    **dict.fromkeys("\u3000\xa0\u2007\u202f\u2028\u2029\u200b\u200c\u200d\u2060\ufeff", " "),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("−‐‑‒", "-"),
    **dict.fromkeys("【〔", "["),
    **dict.fromkeys("】〕", "]"),
    **dict.fromkeys("﹕∶", ":"),
    "｡": "。",
    "､": "、",
}
_TABLE = str.maketrans(_NARROW)


def narrow(text: str) -> str:
    """Full-width forms, odd blanks, quotation marks and hyphens as ASCII, character by character."""
    return text if text.isascii() else text.translate(_TABLE)


@lru_cache(maxsize=4)  # several readers look at one response
def reply_of(response: str) -> Reply:
    """Cut a response. Reasoning that never ends leaves nothing."""
    begin, end, unclosed = reasoning_of(response)
    text = narrow(response)
    end = turn_end(text, begin, end)
    part = text[begin:end]
    begin += len(part) - len(part.lstrip())
    return Reply(text, begin, max(begin, end - len(part) + len(part.rstrip())), unclosed)


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
#: signs of Arabic, which are mostly left out
_VOWELS = dict.fromkeys(range(0x64B, 0x653))
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
def key_of(text: str) -> str:
    """The form in which words of `marks.yaml` are compared: accents stay, since `si` and `sí` are two."""
    return unicodedata.normalize("NFC", text.casefold()).translate(_VOWELS)


class Token(NamedTuple):
    """A token of a reply: its kind (`word`, `number`, `line`, `mark`, `box`, `tex`), text and place."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def is_word(self) -> bool:
        return self.kind in ("word", "number")


def tokens_of(text: str, begin: int = 0, end: int | None = None) -> list[Token]:
    found = []
    for match in _TOKEN.finditer(text, begin, len(text) if end is None else end):
        kind = match.lastgroup or "mark"
        found.append(Token("word" if kind == "cjk" else kind, match[0], *match.span()))
    return found


class Trie:
    """Phrases, each with what it stands for, by their words: the longest one that begins at a token is found.

    With `texts` words are compared in plain form, and marks between them are passed. Else the last word may
    end in `*`: any ending.
    """

    def __init__(self, phrases: Iterable[tuple[str, Any]], *, texts: bool = False) -> None:
        self._texts, self._key = texts, plain if texts else key_of
        self._root: dict[str, Any] = {}
        for phrase, value in phrases:
            node = self._root
            stem = not texts and phrase.endswith("*")
            keys = [self._key(token.text) for token in tokens_of(narrow(phrase)) if token.is_word]
            for place, key in enumerate(keys, 1):
                if stem and place == len(keys):  # stems stand beside the words of a node
                    node = node.setdefault("*", {})
                node = node.setdefault(key, {})
            if keys:
                node[""] = node.get("", frozenset()) | {value}

    def find(self, tokens: Sequence[Token], place: int) -> tuple[frozenset[Any], int]:
        """What the longest phrase at a place stands for, and where it ends; nothing and the next place."""
        best: tuple[frozenset[Any], int] = (frozenset(), place + 1)
        node, index = self._root, place
        while index < len(tokens) and tokens[index].is_word:
            key = self._key(tokens[index].text)
            if key in node:
                node = node[key]
            elif stem := next((stem for stem in node.get("*", ()) if key.startswith(stem)), ""):
                node = node["*"][stem]
            else:
                break
            index += 1
            if "" in node:
                best = (node[""], index)
            while index < len(tokens) and (
                tokens[index].kind in ("mark", "tex") if self._texts else tokens[index].text in "'-"  # isn't
            ):
                index += 1
        return best


@lru_cache(maxsize=1)
def languages() -> dict[str, dict[str, Any]]:
    """Language -> its lists; `common` -> those of all."""
    said = yaml.safe_load(Path(__file__).with_name("marks.yaml").read_text(encoding="utf-8"))
    return {"common": said["common"], **said["languages"]}


class Words:
    """The words of one language (ISO 639; the common ones where it has no list), and where they stand.

    Classes of a word: `answer`, `verb` (stands before the answer), `option`, `right`, `not`, `if` (makes a
    condition), `refuse`, `wait`, `rather` (corrects before another answer), `is`, `that` (stands for what was
    said), `filler`, `and`, `or`, `but`, `because`.
    """

    def __init__(self, language: str, more: Mapping[str, Sequence[str]] = {}) -> None:
        said = {**languages().get(language, languages()[COMMON])}
        values = said.pop("values")
        self.decimal = values["decimal"]  # the mark before decimals
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
        #: tokens, place -> the classes of the longest phrase that begins there, and where it ends
        self.at = Trie(
            (word.removesuffix("…").strip(), last[name] if word.endswith("…") else name)
            for name, words in lists.items()
            for word in words
        ).find
        close = [word for word in lists["and"] if regex.match(rf"[{_UNSPACED}]", word)]
        spaced = [word for word in lists["and"] if word not in close]
        #: a word between the last two items of a list
        self.joins = regex.compile(r"\s+\L<spaced>\s+|\s*\L<close>\s*", regex.I, spaced=spaced, close=close)


@lru_cache(maxsize=64)
def words_of(language: str) -> Words:
    return Words(language)
