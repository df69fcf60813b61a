"""The words of a language as patterns, and the walk from an announcement to its answer.

All places are places in a text in its plain form (`folding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Generic, NamedTuple, TypeVar

import regex

from medtasks_ext.answers.languages import Words, words_of
from medtasks_ext.answers.tolerant.folding import Folded, folded, plain, script_of
from medtasks_ext.answers.tolerant.markers import end_of_answer
from medtasks_ext.answers.tolerant.reply import LONGEST, Extraction, Reply

T = TypeVar("T")
#: scripts that are written without blanks between words
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
#: a letter of a script that sets words apart
SET_APART = rf"[^\P{{L}}{UNSPACED}\p{{Hangul}}]"
_UNSPACED = regex.compile(rf"[{UNSPACED}]")
#: scripts whose words take endings without a blank
_ENDINGS = regex.compile(rf"[{UNSPACED}\p{{Hangul}}\p{{Ethiopic}}]")
_MARKS = r"[\s*_`\"'“”‘’«»「」『』\[\](){}<>$\\#:：=~→—–\-|、]"
#: what a model writes around an answer, in any language
_BOX = regex.compile(
    r"\\(?:boxed|fbox)\s*\{(?:\s*\\(?:text|textbf|mathrm|mathbf)\s*\{)?"
    r"|<\s*(?:answer|final|final_answer|result|solution|label|choice|option|response|prediction|verdict|letter)\s*>"
)
_TEX = r"\\?(?:boxed|text|textbf|mathrm|mathbf)(?![a-z])"
#: marks between a label and what is said of it
_SAID = r"[\s*_`\"'”’»」\])}>:：.–—\-,]"
#: letters of a word of which two may be an ending
_LONG_WORD = {"Latin": 7, "Cyrillic": 5, "Greek": 5}
#: words between a negation and what it denies
_MOST_LEADING = 3
_CLAUSE_END = regex.compile(r"[\s*_]*(?:[,.;!。、\n]|$)")
#: tokens between an announcement and its answer
_MOST_TOKENS = 24
#: announcements that are looked at, from the last one on
_MOST = 60


def word(text: str, *, inside: bool = True) -> str:
    """A word as a pattern: no part of a longer one, where its script sets words apart.

    Args:
        text: the word.
        inside: whether a Korean word may stand behind another one without a blank, as particles do.
    """
    text = plain(text)
    before = "" if _UNSPACED.match(text) or not text[:1].isalnum() else r"(?<![\p{L}\p{M}\p{N}])"
    if regex.match(r"\p{Latin}|\d", text):  # may stand in a text without blanks
        before = rf"(?<!\p{{N}}|{SET_APART})"
    elif regex.match(r"\p{Hangul}", text):
        before = "" if inside else r"(?<!\p{L})"
    elif regex.match(r"\p{Arabic}", text):
        before = r"(?:(?<![\p{L}\p{M}])|(?<=(?<![\p{L}\p{M}])[وف]))"
    glued = _ENDINGS.match(text[-1]) or not text[-1].isalnum() or text == "و"
    after = "" if glued else r"(?![\p{L}\p{M}\p{N}])"
    if not glued and regex.match(r"\p{Latin}|\d", text[-1]):
        after = rf"(?!\p{{N}}|\p{{M}}|{SET_APART})"
    spelled: str = regex.escape(text).replace(r"\ ", " ").replace(" ", r"\s+")
    return before + spelled + after


@lru_cache(maxsize=1_024)
def any_of(words: tuple[str, ...], *, inside: bool = True) -> regex.Pattern[str]:
    """Any of the words, longer ones first."""
    ordered = sorted(dict.fromkeys(words), key=lambda item: len(plain(item)), reverse=True)
    return regex.compile("|".join(word(item, inside=inside) for item in ordered) or r"(?!)")


def inflected(texts: Iterable[str]) -> dict[str, regex.Pattern[str]]:
    """Texts whose long words may have other endings, as patterns; of two that are then alike neither."""
    patterns = {}
    texts = [plain(text) for text in texts]
    for text in texts:
        words = [
            regex.escape(part[: -1 if len(part) < _LONG_WORD.get(script_of(part), 7) else -2]) + r"\p{L}{0,3}"
            if regex.fullmatch(r"[\p{Latin}\p{Cyrillic}\p{Greek}-]{4,}", part)
            else _with_endings(part)
            for part in text.split()
        ]
        patterns[text] = regex.compile(r"(?<![\p{L}\p{M}])" + r"\s+".join(words) + r"(?![\p{L}\p{M}])")
    return {
        text: pattern
        for text, pattern in patterns.items()
        if sum(bool(pattern.search(other)) for other in texts) == 1
    }


def _with_endings(part: str) -> str:
    """A word with its article and endings of gender: `شديد` and `الشديدة`, `हल्का` and `हल्की`."""
    pattern: str = regex.escape(part)
    if regex.fullmatch(r"\p{Arabic}{3,}", part):
        return rf"(?:ال)?{pattern}ه?"
    if regex.fullmatch(r"[\p{Devanagari}]{2,}ा", part):
        return pattern[:-1] + "[ाीे]"
    return pattern


class Announced(NamedTuple):
    """An announcement.

    Attributes:
        start: of the word that announces.
        end: behind it.
        sort: 0: a box; 1: a noun; 2: a verb of choosing; 3: what says that an answer is right.
    """

    start: int
    end: int
    sort: int


class Reached(NamedTuple, Generic[T]):
    """What an announcement leads to.

    Attributes:
        what: found there.
        start: of the announcement.
        strong: whether a colon, a line end or a box stands between.
        sort: of the announcement.
    """

    what: T
    start: int
    strong: bool
    sort: int


@dataclass(frozen=True)
class Phrases:
    """The patterns of a language."""

    words: Words

    @cached_property
    def _token(self) -> regex.Pattern[str]:
        """What may stand between an announcement and its answer."""
        said = (*self.words.filler, *self.words.option, *self.words.right, *self.words.about)
        return regex.compile(rf"{_MARKS}|{_TEX}|{any_of((*said, *self.words.answer)).pattern}")

    @cached_property
    def right(self) -> regex.Pattern[str]:
        """That an answer is right."""
        return any_of(self.words.right)

    @cached_property
    def wrong(self) -> regex.Pattern[str]:
        """That it is wrong."""
        return any_of(self.words.wrong)

    @cached_property
    def answer(self) -> regex.Pattern[str]:
        """A noun that announces an answer."""
        return any_of(self.words.answer)

    @cached_property
    def not_(self) -> regex.Pattern[str]:
        """A negation."""
        return any_of(self.words.not_)

    @cached_property
    def choose(self) -> regex.Pattern[str]:
        """A verb of choosing."""
        return any_of(self.words.choose)

    @cached_property
    def joins(self) -> regex.Pattern[str]:
        """What stands between items of a list."""
        return any_of(self.words.joins)

    @cached_property
    def either(self) -> regex.Pattern[str]:
        """What stands between two answers of which one is meant, or between the ends of a range."""
        return any_of((*self.words.or_, *self.words.range))

    @cached_property
    def skipped(self) -> regex.Pattern[str]:
        """Words that say nothing of the answer."""
        return any_of((*self.words.filler, *self.words.option))

    @cached_property
    def option(self) -> regex.Pattern[str]:
        """A word for an option."""
        return any_of(self.words.option)

    @cached_property
    def reason(self) -> regex.Pattern[str]:
        """What may follow a letter that is also a word."""
        words = self.words
        return any_of(
            (
                *words.because,
                *words.verbs,
                *words.wrong,
                *words.not_,
                *words.choose,
                *words.joins,
                *words.or_,
            )
        )

    @cached_property
    def none(self) -> regex.Pattern[str]:
        """That no option is right."""
        return any_of(self.words.none)

    @cached_property
    def neither(self) -> regex.Pattern[str]:
        """What denies several answers in a row."""
        return any_of(self.words.neither)

    @cached_property
    def but(self) -> regex.Pattern[str]:
        """What turns from an answer that is denied or granted to the one that is meant."""
        return any_of(self.words.but)

    @cached_property
    def so(self) -> regex.Pattern[str]:
        """What leads to a conclusion."""
        return any_of(self.words.so)

    @cached_property
    def than(self) -> regex.Pattern[str]:
        """What leads to a number that is no answer."""
        return any_of(self.words.than)

    @cached_property
    def limit(self) -> regex.Pattern[str]:
        """What makes a number before it no answer."""
        return any_of(self.words.limit)

    @cached_property
    def whereas(self) -> regex.Pattern[str]:
        """What leads to something that is set against the answer."""
        return any_of(self.words.whereas)

    @cached_property
    def _right_option(self) -> regex.Pattern[str]:
        """That an option is right, as in `the correct option`, `la proposition exacte`, `正确选项`."""
        option, right = self.option.pattern, self.right.pattern
        return regex.compile(rf"(?:{right})\s*(?:{option})|(?:{option})[\s*_]*(?:{right})")

    @cached_property
    def before_verdict(self) -> regex.Pattern[str]:
        """What may stand between a label and the word that calls it right or wrong."""
        words = "|".join(item.pattern for item in (self.skipped, self.but, self.answer))
        return regex.compile(f"{_SAID}|{words}")

    @cached_property
    def corrects(self) -> regex.Pattern[str]:
        """That an answer is taken back."""
        return any_of(self.words.corrects)

    def announcements(self, text: str) -> Iterator[Announced]:
        """All announcements, in no order."""
        for match in _BOX.finditer(text):
            yield Announced(match.start(), match.end(), 0)
        for sort, words in enumerate((self.words.answer, self.words.choose, self.words.right), start=1):
            for match in any_of(words, inside=False).finditer(text):
                yield Announced(match.start(), match.end(), sort)
        for match in self._right_option.finditer(text):
            yield Announced(match.start(), match.end(), 1)

    def answer_at(
        self, text: str, place: int, find: Callable[[int, bool], T | None], *, on_line: bool = False
    ) -> tuple[T, bool] | None:
        """What `find` takes for an answer behind a place, past words that say nothing.

        Args:
            find: place, and whether a colon or a line end stands before it -> the answer there.
            on_line: whether it must stand on the same line, or behind a colon.

        Returns:
            It, and whether a colon or a line end stands between; None where something else comes first.
        """
        colon = False
        for _ in range(_MOST_TOKENS):
            blank = place >= len(text) or text[place].isspace()
            if not blank and (answer := find(place, colon)) is not None:
                return answer, colon
            if self.wrong.match(text, place) or self.not_.match(text, place):
                return None
            match = self._token.match(text, place)
            if not match or (match[0] == "\n" and on_line and not colon):
                return None
            colon |= match[0] in (":", "：", "=", "\n")
            place = match.end()
        return None

    def reached(self, text: str, find: Callable[[int, bool], T | None]) -> list[Reached[T]]:
        """The announcements behind which there is an answer, in their order."""
        answers = []
        for item in sorted(self.announcements(text))[-_MOST:]:
            if item.sort and self.is_denied(text, item.start):
                continue
            if item.sort == 1 and self._is_called_wrong(text, item.start):
                continue
            if answer := self.answer_at(text, item.end, find, on_line=item.sort == 3):
                answers.append(Reached(answer[0], item.start, item.sort == 0 or answer[1], item.sort))
        return answers

    def is_denied(self, text: str, place: int) -> bool:
        """Whether a negation stands right before a place."""
        before = list(self.not_.finditer(text, max(0, place - 14), place))
        return bool(before) and not text[before[-1].end() : place].strip()

    def _is_called_wrong(self, text: str, place: int) -> bool:
        """Whether a word that says wrong stands right before a place, as in `incorrect answers`."""
        before = list(self.wrong.finditer(text, max(0, place - 24), place))
        return bool(before) and not text[before[-1].end() : place].strip(" *_")

    def is_set_aside(self, text: str, start: int, end: int) -> bool:
        """Whether what stands between two places is denied, or named as what the answer is not."""
        if suffix := self.option.match(text, end):
            end = suffix.end()
        begin = self._lead_in(text, start)
        if self.is_denied(text, start) or self.is_denied(text, begin):
            return True
        before = text[max(0, begin - 40) : begin].rstrip(" *_`\"'([")
        over = any(match.end() == len(before) for match in any_of(self.words.over).finditer(before))
        place = end + len(text[end:]) - len(text[end:].lstrip(" *_`\"')]"))
        if over or any_of(self.words.aside).match(text, place):
            return True
        behind = self.not_.match(text, place)  # as in Hindi
        return bool(behind) and bool(_CLAUSE_END.match(text, behind.end()) or self._turns(text, behind.end()))

    def _lead_in(self, text: str, place: int) -> int:
        """Where the words that say nothing begin that lead to a place, at most a few."""
        for _ in range(_MOST_LEADING):
            before = text[max(0, place - 24) : place].rstrip(" *_`\"'([")
            starts = [match.start() for match in self.skipped.finditer(before) if match.end() == len(before)]
            if not starts:
                break
            place = max(0, place - 24) + starts[0]
        return place

    def past_skipped(self, text: str, place: int, marks: regex.Pattern[str], most: int | None = None) -> int:
        """Behind the words that say nothing, at most so many, and the marks that follow a place."""
        while most != 0 and (match := self.skipped.match(text, place) or marks.match(text, place)):
            if match.end() == place:
                break
            place, most = match.end(), None if most is None else most - 1
        return place

    def _turns(self, text: str, place: int) -> bool:
        """Whether a word that turns to what is meant stands at a place."""
        return bool(self.but.match(text, place + len(text[place:]) - len(text[place:].lstrip())))

    def chosen(self, text: str, answers: Iterable[Reached[T]]) -> Reached[T] | None:
        """The announcement that counts: the last strong one, unless it is taken back; else None."""
        strong = [item for item in answers if item.strong and item.sort < 3] or [
            item for item in answers if item.strong
        ]
        if not strong:
            return None
        later = [item for item in answers if item.start > strong[-1].start and item.sort < 3]
        if later and self.corrects.search(text, strong[-1].start, later[-1].start):
            return later[-1]
        return strong[-1]


def read_plainly(reply: Reply, find: Callable[[str, Folded], Extraction]) -> Extraction:
    """What a reader finds in the plain form of a reply, with its place in the response.

    Args:
        reply: to be read; of a long one the last part.
        find: the reply and its plain form -> what it says, with the place in the plain form.
    """
    end = end_of_answer(reply)
    begin = max(reply.begin, end - LONGEST)
    if begin >= end:
        return Extraction(None, None, "the reply is empty")
    original = reply.text[begin:end]
    form = folded(original)
    extraction = find(original, form)
    if extraction.span is None:
        return extraction
    first, last = form.span(*extraction.span)
    return extraction._replace(span=(begin + first, begin + last))


@lru_cache(maxsize=64)
def phrases_of(language: str) -> Phrases:
    """The patterns of a language."""
    return Phrases(words_of(language))
