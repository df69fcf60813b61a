"""Letters of options as Medmarks reads them (`medarc-verifiers` 0.1.0, `multiple_choice_accuracy`).

The code names no answer: it is given the gold letter and the gold option, and says whether a reply is right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field

from medtasks_ext.answers.choices import OfLetters
from medtasks_ext.answers.formats import Reading, reading
from medtasks_ext.answers.text import tagged

_BOXED = "\\boxed{"
_OPENED = re.compile("<think>", re.IGNORECASE)
_ENDED = re.compile("</think>", re.IGNORECASE)
_THOUGHT = re.compile("<think>.*?</think>", re.DOTALL | re.IGNORECASE)

_OPTION = r"[A-Za-z]|\d{1,2}"
_FREE = r"(?![\w+\-/])"  # what may not follow a letter
_MARKS = r"(?:[*_`~]\s*)*"  # emphasis
_PHRASES = (
    r"\bfinal\s+answer\b", r"\banswer\b", r"\bans\b", r"\bchoice\b", r"\boption\b", r"\bselected\b",
    r"\bi\s+choose\b", r"\bi\s+pick\b", r"\btherefore\b", r"\bthus\b", r"\bso\b", r"\bconclusion\b",
    r"\bin\s+conclusion\b", r"\bmost\s+likely\b", r"\bbest[-\s]+supported\s+answer\b", "<answer>",
)  # fmt: skip
# blanks belong to what stands before them: a long run of blanks has one reading
_ANNOUNCED = re.compile(
    rf"(?:{'|'.join(_PHRASES)})\s*(?:[:\-–—]\s*)?(?:is\s*)?(?P<neg>not\s+|isn['’]t\s+)?{_MARKS}"
    rf"(?:\(\s*)?(?P<opt>{_OPTION})\s*\)?\s*[\)\.:]?\s*{_MARKS}{_FREE}",
    re.IGNORECASE,
)
_LEADING = re.compile(
    rf"^\s*(?:>\s*)?(?:(?:[-*+]|\d{{1,3}}[.)])\s+)?(?:[*_`~]+\s*)?(?:\(\s*)?({_OPTION})\s*[\)\.:]\s*\)?"
    r"\s*(?:[*_`~]+)?\s*(?!\w)",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"(?<![\w+\-/])(?:{_OPTION}){_FREE}", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|isn['’]t)\b", re.IGNORECASE)
_WRONG = re.compile(
    r"\s*(?:(?:is|are|was|were)\s+(?:incorrect|wrong|false|not\s+correct)|not\s+correct)\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?]\s+|\n+")
_TAIL, _AROUND = 64, 15  # words: of the end of a reply, and beside the text of an option


class VerifiedLetter(OfLetters):
    """One option letter, as Medmarks' code compares it.

    Of the part of the reply that counts a letter alone decides; else one with which it begins (`B.`); else
    the last one behind words such as `answer is`; else a letter of its last sentence, unless it is said to be
    wrong; else the text of the option, near the beginning or the end. The code is told the gold answer: where
    a reply fits several options, the gold one counts. TeX is made plain first; `%` begins a comment in it.
    """

    kind: Literal["verified_letter"]
    letters: list[str]  #: of the options.
    #: what counts of the reply: what is in the last `\boxed{}` (or all of it), in the first `<answer>`, or
    #: `all`. `first`: the first character that is one of the letters, in whatever word.
    part: Literal["boxed", "tag", "all", "first"] = "boxed"
    #: words behind which the answer stands; where they occur, other words announce none.
    announced_by: str | None = Field(default=None, min_length=1)

    def has_released_reader(self, *, cot: bool) -> bool:
        """Not where the first letter counts and the reply begins with reasoning."""
        return not (cot and self.part == "first")

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        return self._of_letters(self._gold_of(text), row)

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The gold letter where the code takes the reply to be right, else the first that it accepts."""
        letters = self._letters(row)
        if self.part == "first":
            return reading(next((char for char in text.strip().upper() if char in letters), None))
        counted, gold = _counted(text, self.part), row.get("gold")
        reply = _Reply(counted, self.announced_by) if counted else None
        for letter in sorted(letters, key=lambda letter: letter != gold):
            option = str(row["options"][letters.index(letter)])
            if reply and reply.is_right(letter, option):
                return reading(letter)
        return reading(None)

    def _gold_of(self, written: str) -> str:
        return _counted(written, self.part).strip().removeprefix(self.announced_by or "").strip()

    def possible(self, document: Mapping[str, Any]) -> list[str]:
        """The letters of the options, written as the gold answer is."""
        written = str(document["target"]).strip()
        if not (letter := self._gold_of(written)):
            return self._letters(document)
        before, _, behind = written.rpartition(letter)
        return [f"{before}{letter}{behind}" for letter in self._letters(document)]


def _counted(text: str, part: str) -> str:
    if part == "tag":
        return text[slice(*next(tagged(text, "answer"), (0, 0)))]
    begin = text.rfind(_BOXED) if part == "boxed" else -1
    if begin < 0:
        return text
    depth, begin = 1, begin + len(_BOXED)
    for end in range(begin, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if not depth:
            return text[begin:end]
    return text


class _Reply:
    """The part of a reply that counts, as it is compared: plain of TeX, in small letters and one width."""

    def __init__(self, text: str, announced_by: str | None) -> None:
        written = _plain(_without_thoughts(text))
        self.text = _folded(written)
        self._tail, self._words = _tail(self.text), self.text.split()
        by_words = [*_announced_by(announced_by).finditer(self.text)] if announced_by else []
        announced = by_words or [*_ANNOUNCED.finditer(self.text)]
        leading = _LEADING.match(written)
        said = [_as_letter(leading[1])] if leading else []
        if announced and announced[-1]["neg"] is None:
            said.append(_as_letter(announced[-1]["opt"]))
        self._said = {_as_letter(self.text), *said}
        self._chosen = any(letter is not None and letter.isalpha() for letter in said)

    def is_right(self, letter: str, option: str) -> bool:
        """Whether the code takes the reply to be this option."""
        return letter in self._said or (not self._chosen and (self._ends_in(letter) or self._has(option)))

    def _ends_in(self, letter: str) -> bool:
        """Whether the letter stands in the last words, no word that denies before it in its sentence."""
        tail, begin = self._tail, 0
        for stop in (*(match.span() for match in _SENTENCE_END.finditer(tail)), (len(tail), len(tail))):
            denied = _NOT.search(tail, begin, stop[0])
            for token in _TOKEN.finditer(tail, begin, stop[0]):
                if denied and denied.end() <= token.start():
                    break
                if _as_letter(token[0]) == letter and not _WRONG.match(tail, token.end(), stop[0]):
                    return True
            begin = stop[1]
        return False

    def _has(self, option: str) -> bool:
        wanted = _folded(re.sub(r"\s+", " ", _plain(option)).strip())
        if not wanted:
            return False
        words, n = self._words, len(wanted.split()) + _AROUND
        pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)".replace(r"\ ", r"\s+"), re.IGNORECASE)
        for region in (" ".join(words[:n]), " ".join(words[-n:])):
            if match := pattern.search(region):
                ends = [end.end() for end in _SENTENCE_END.finditer(region[: match.start()])]
                if not _NOT.search(region[ends[-1] if ends else 0 : match.start()]):
                    return True
        return False


@lru_cache(maxsize=4)
def _announced_by(words: str) -> re.Pattern[str]:
    """What announces an answer by these words; no emphasis may stand around the letter."""
    said = r"\s+".join(map(re.escape, _folded(words).split()))
    return re.compile(
        rf"{said}\s*(?:[:\-–—]\s*)?(?:is\s*)?(?P<neg>not\s+|isn['’]t\s+)?(?:\(\s*)?(?P<opt>{_OPTION})"
        rf"\s*[\)\.:]?{_FREE}",
        re.IGNORECASE,
    )


def _without_thoughts(text: str) -> str:
    """What follows the reasoning, where that is marked once and closed."""
    ends = [*_ENDED.finditer(text)]
    last = ends[-1].end() if ends else 0
    if not _OPENED.search(text):
        return text[last:].strip()
    thoughts = [*_THOUGHT.finditer(text, 0, last)]  # the rest would be walked through for each mark in it
    return text[thoughts[0].end() if len(thoughts) == 1 else 0 :].strip()


def _plain(text: str) -> str:
    from pylatexenc.latex2text import LatexNodes2Text

    try:
        plain: str = LatexNodes2Text(math_mode="text").latex_to_text(text)
    except Exception:  # no TeX; the code takes the text as it is, whatever the reason
        return text
    return plain


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _as_letter(text: str) -> str | None:
    """A letter, capital, or digits; None of anything else."""
    text = text.strip()
    if text.isdigit():
        return text
    return text.upper() if text.isalpha() and len(text) == 1 else None


def _tail(text: str) -> str:
    """The last words of the last sentence that has any."""
    ends = [*_SENTENCE_END.finditer(text)]
    tail = text[ends[-1].end() if ends else 0 :].strip()
    tail = tail or next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    words = tail.split()
    return " ".join(words[-_TAIL:]) if len(words) > _TAIL else tail
