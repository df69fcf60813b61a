"""One option letter in a reply that may hold reasoning (ClinicBench's multiple-choice questions)."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.letters import LETTERS, read_letters
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_COLON = re.compile(r"\banswer[*_]*[^\S\n]*[:：]", re.IGNORECASE)
_PHRASE = re.compile(r"\banswer\s{1,9}is\b(?:[^\S\n]*[:：])?", re.IGNORECASE)
# what may stand before a letter: emphasis, quotes, brackets, `option`, TeX's \boxed{
_LETTER = re.compile(
    r"[\s*_`\"'“‘(\[{<$\\]*(?:(?:boxed|text|option|choice)\b[\s*_(\[{:\\]*){0,3}([A-Za-z])(?![\w'’]|-\w)",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"[*_`\"'”’]*(?:[.):：\]}]|[^\S\n]*(?:\n|$))")
_END_OF_LINE = re.compile(r"[*_`\"'”’.)\]}>$]*[^\S\n]*(?:\n|$)")
_ARTICLE = re.compile(r"[^\S\n]+(?!(?:is|because|since|as|and|or)\b)[A-Za-z0-9]")
_ANOTHER = re.compile(r"[*_`.)\]}\s]*(?:[,/&+]|\band\b|\bor\b)\s*(?:option\s+)?[(\[*]*([A-Z])(?![\w'’]|-\w)")


class OptionLetter(AnswerFormat):
    """A letter of one of the row's options.

    The last `Answer:` decides, if there is one; else the last `answer is` before a letter; else the
    reply must begin with the letter, alone on its line or before `.`, `)`, `]` or `:`, and no other
    line may begin with another option like that. Under chain-of-thought only what follows the last
    `Result:` is read. Two different letters joined by a comma, slash, `and` or `or` are no answer, nor
    is a letter without an option. A small letter must stand alone; a capital A before a word is the
    article. The text of an option is no letter, even if it begins with one (`C. difficile`).

    Attributes:
        letters: of the options that questions have; sample rows must show each as gold.
    """

    kind: Literal["option_letter"]
    letters: list[str]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The gold letter, with or without `Answer:` before it.

        Raises:
            GoldError: it is no letter, or the row has no such option.
        """
        letter, size = text.strip().removeprefix("Answer:").strip(), len(row["options"])
        if len(letter) != 1 or letter not in ascii_uppercase[:size]:
            raise GoldError(f"{excerpt(letter)} is not the letter of one of the {size} options")
        return letter

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The one letter that the reply names as its answer."""
        reply = strip_reasoning(text)
        reply = (after_result(reply) if cot else reply).strip()
        letter = _named(reply, row["options"])
        return Reading(letter, True) if letter else Reading(None, False)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The letter of the option that the reply names."""
        options = document["options"]
        found = read_letters(reply_of(text), options, LETTERS, several=False)
        letter = None if found.answer is None else ascii_uppercase[found.answer[0]]
        return {"gold": document.get("gold"), "answer": letter, "span": found.span, "why": found.why}

    def not_covered(self, golds: list[str]) -> list[str]:
        """Letters that are no row's gold."""
        return [letter for letter in self.letters if letter not in golds]


def _named(reply: str, options: list[str]) -> str | None:
    if colons := list(_COLON.finditer(reply)):
        return _letter_at(reply, colons[-1].end(), options)
    for phrase in reversed(list(_PHRASE.finditer(reply))):
        if letter := _letter_at(reply, phrase.end(), options):
            return letter
    begun = list(dict.fromkeys(_begun(reply, options)))
    first = _letter_at(reply, 0, options)
    return first if begun == [first] and _at_line_start(reply.split("\n", 1)[0], options) else None


def _begun(reply: str, options: list[str]) -> Iterator[str]:
    """The options that lines begin with."""
    for line in dict.fromkeys(reply.split("\n")):
        if letter := _at_line_start(line, options):
            yield letter


def _at_line_start(line: str, options: list[str]) -> str | None:
    match = _LETTER.match(line)
    return _letter_at(line, 0, options) if match and _CLOSED.match(line, match.end()) else None


def _letter_at(text: str, place: int, options: list[str]) -> str | None:
    match = _LETTER.match(text, place)
    if not match or _is_option_text(text[place:], options):
        return None
    letter, end = match[1], match.end()
    if letter.islower() and not _END_OF_LINE.match(text, end):
        return None
    if letter == "A" and _ARTICLE.match(text, end):
        return None
    letters, letter = ascii_uppercase[: len(options)], letter.upper()
    another = _ANOTHER.match(text, end)
    if another and another[1] != letter and another[1] in letters:
        return None
    return letter if letter in letters else None


def _is_option_text(text: str, options: list[str]) -> bool:
    """Whether the first line is an option's text. Texts of one character are letters, too (blood groups)."""
    line = text.lstrip().split("\n", 1)[0].strip(" \t*_`\"'.").casefold()
    return any(len(option) > 1 and option.strip(" .").casefold() == line for option in options)
