"""Values: a label that is a word, a number with or without a unit, a date, a gestational age."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import regex

from medtasks_ext.answers.reader.announce import Found, Reader, part_announced
from medtasks_ext.answers.reader.reply import NOTHING, UNCLOSED, Extraction, Reply, whole_reply
from medtasks_ext.answers.reader.words import Token, Trie, Words, plain, plain_keys, tokens_of, words_of


class WordReader:
    """Reads one label of a closed list.

    Args:
        names: spelling -> label.
        words: of the language.
    """

    def __init__(self, names: Mapping[str, str], words: Words) -> None:
        self._names = {plain(name): label for name, label in names.items()}
        self._trie = Trie(((plain_keys(name), label) for name, label in names.items()), texts=True)
        self._reader = Reader(self._find, words, opens=True)

    def _find(self, tokens: Sequence[Token], place: int) -> Found | None:
        labels, end = self._trie.find(tokens, place)
        return Found(next(iter(labels)), end, word=True) if len(labels) == 1 else None

    def read(self, reply: Reply) -> Extraction:
        """The label that a reply is or announces."""
        whole = self._names.get(plain(reply.part))
        return self._reader.read(reply) if whole is None else whole_reply(whole, reply)


_GROUPED = regex.compile(
    r"\d{1,3}(?:(?P<mark>[.,' \u2009])\d{3})(?:(?P=mark)\d{3})*(?:(?!(?P=mark))[.,]\d+)?"
)
#: of a sum whose result stands behind the last sign of equality, in tokens
_LONGEST_SUM, _WORDS_OF_A_SUM = 80, 8


def number_of(text: str, decimal: str) -> float | None:
    """The value of a written number; None of anything else.

    Args:
        text: digits with marks, no unit.
        decimal: the mark before decimals in the language; the other one of comma and full stop groups.
    """
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


class NumberReader:
    """Reads one number.

    Args:
        units: spelling -> what a number in it is multiplied with; others count as they are.
        words: of the language.
    """

    def __init__(self, units: Mapping[str, float], words: Words) -> None:
        self._units = {plain(unit): factor for unit, factor in units.items()}
        self._words = words
        self._reader = Reader(self._find, words, subject=False)

    def read(self, reply: Reply) -> Extraction:
        """The number that a reply announces."""
        return self._reader.read(reply)

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


Form = Literal["number", "date", "weeks_and_days"]
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_DATE = regex.compile(
    r"(?<!\d)(?:(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})|(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2}))(?!\d)"
    rf"|\b(?:(?P<name>{_MONTH})\.?\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<name>{_MONTH})\.?,?)\s(?P<year>\d{{4}})\b",
    regex.IGNORECASE,
)
_AGE = regex.compile(
    r"(?<!\d)(?P<weeks>\d{1,3})[\s\"']*(?:weeks?|wks?|w)\b[\s\"',]*(?:and\b)?[\s\"',]*(?P<days>\d)[\s\"']*(?:days?|d)\b"
    r"|(?<!\d)(?P<weeks>\d{1,3})w(?P<days>\d)d\b|(?<![\d.])(?P<weeks>\d{1,2})\s?\+\s?(?P<days>[0-6])\s?(?:weeks?|w)\b",
    regex.IGNORECASE,
)


def read_value(reply: Reply, form: Form) -> Extraction:
    """The value of a reply as MedCalc-Bench writes it: `78.5`, `06/08/2024`, `('14 weeks', '2 days')`.

    A date or an age is the one that follows the last announcement, or the only one of the reply.
    """
    words = words_of("en")
    if form == "number":
        found = NumberReader({}, words).read(reply)
        return found if found.answer is None else found._replace(answer=f"{found.answer:.15g}")
    if reply.unclosed:
        return UNCLOSED
    written = _dates if form == "date" else _ages
    for begin, end in dict.fromkeys([part_announced(reply, words), (reply.begin, reply.end)]):
        values = written(reply.text, begin, end)
        if begin > reply.begin and values:
            return values[0]._replace(why="announced")
        if len({value.answer for value in values}) == 1:
            return values[0]._replace(why="the only value")
    return NOTHING


def _dates(text: str, begin: int, end: int) -> list[Extraction]:
    dates = []
    for match in _DATE.finditer(text, begin, end):
        name = (match["name"] or "").lower()[:3]
        month = next(
            (i for i, known in enumerate(_MONTHS, 1) if name and known.startswith(name)), match["month"]
        )
        try:
            day = datetime(int(match["year"]), int(month), int(match["day"]))
        except ValueError:
            continue
        dates.append(Extraction(day.strftime("%m/%d/") + f"{day.year:04}", match.span(), ""))
    return dates


def _ages(text: str, begin: int, end: int) -> list[Extraction]:
    return [
        Extraction(f"('{int(match['weeks'])} weeks', '{int(match['days'])} days')", match.span(), "")
        for match in _AGE.finditer(text, begin, end)
    ]
