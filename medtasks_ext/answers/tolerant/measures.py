"""A number, with the digits, marks and words of any language, and with units."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import regex

from medtasks_ext.answers.tolerant.folding import folded, plain
from medtasks_ext.answers.tolerant.phrases import Phrases, any_of, read_plainly
from medtasks_ext.answers.tolerant.reply import NOTHING, Extraction, Reply
from medtasks_ext.answers.tolerant.signs import emphasised, ends_member, last_sentence, members

_NUMBER = regex.compile(
    r"(?<![\p{Latin}\p{Cyrillic}\p{Greek}\d^]|\d[.,]|\p{L}/\s?|\^\{|/\s?\p{L}{1,3}\.?|\d\s?[мم])(?:(?<![\p{L}\d)\]]|\d\s)[-+])?"
    r"(?:\d{1,3}(?:(?P<group>[ ,.'])\d{2,3}(?:(?P=group)\d{2,3})*)(?<=\d{3})(?:(?:[.,]|\{[.,]\})\d{1,12})?"
    r"|\d{1,15}(?:(?:[.,]|\{[.,]\})\d{1,12})?|[.,]\d{1,12})"
    r"(?:e[-+]?\d{1,3}|\s?[x×*]\s?10\s?\^\s?\{?(?P<power>[-+]?\d{1,3})\}?)?(?!\d|[.,]\d)"
)
_DASH = regex.compile(r"[-–—~〜/]")
_END = regex.compile(r"[\s*.。!)]*$")
_SENTENCE_END = regex.compile(r"[\s*.。!]*$")
_LINE_END = regex.compile(r"[^\S\n]*[.。!*]*\s*(?:\n|$)")
_EQUALS = regex.compile(r"[=≈≃≅]|\\approx(?![a-z])")
#: what a reply remarks in brackets
_BRACKETS = regex.compile(r"\([^()\n]*\)")
#: before a number with which an answer is compared
_COMPARES = ("<", ">", "≤", "≥", "&lt;", "&gt;")
_GAP = regex.compile(r"[^\S\n*_]+")
_FIRST_STOP = regex.compile(r"[.。!?](?=\s)|\n")
#: of points, between a score and the most that it can be
_WORD = regex.compile(r"[^\S\n]*\p{L}{1,12}[^\S\n]+")
#: behind a number that a remark follows
_SET_OFF = regex.compile(r"[*_]*[,、]\s?(?![\d(])")
_LED = regex.compile(r"[:=≈][\s*_]*$")
#: the most that a score can be, behind a stroke
_FEWEST_POINTS = 5
#: numbers and signs between them: three numbers or more, or a sign that joins no range
_SIGN = r"\s*[+×·*÷/−–-]\s*"
_CALCULATION = regex.compile(rf"\d[\d.,]*\^?\d*(?:{_SIGN}\d[\d.,]*){{2,}}|\d[\d.,]*\s*[+×·*÷]\s*\d[\d.,]*")


def _past_blanks(text: str, place: int) -> int:
    return (
        place + len(text[place:]) - len(text[place:].lstrip()) if text[place : place + 1].isspace() else place
    )


class _Value(NamedTuple):
    number: float | None
    start: int
    end: int
    with_unit: bool


class NumberReader:
    """Reads a number in one unit.

    Args:
        units: spelling -> what a number in it is multiplied with; empty where numbers have no unit.
        phrases: of the reply's language.
    """

    def __init__(self, units: Mapping[str, float], phrases: Phrases) -> None:
        self.units = {plain(unit): factor for unit, factor in units.items()}
        self.phrases = phrases

    @cached_property
    def _unit(self) -> regex.Pattern[str]:
        ordered = sorted(self.units, key=len, reverse=True)
        spelled = "|".join(
            regex.escape(unit) + (r"(?![\p{Latin}\d])" if unit[-1].isascii() else "") for unit in ordered
        )
        return regex.compile(rf"[\s*_\\]{{0,3}}(?:text\{{)?({spelled or '(?!)'})(?!\s*/\s*\p{{L}})")

    def value(self, text: str) -> float | None:
        """The number that a text is, of a gold answer: a decimal point counts before the language's mark."""
        try:
            return float(text)
        except ValueError:
            measure = self._at(folded(text).text, 0)
            return measure.number if measure and not folded(text).text[measure.end :].strip() else None

    def read(self, reply: Reply) -> Extraction:
        """The number.

        Signs in their order: a box or an announcement with a colon; the only number; the last sign of
        equality; another announcement; a verb of being before the number with which the reply ends; the only
        number with a unit; the number with which the reply begins. Ends of a range are no answer.
        """
        return read_plainly(reply, lambda _, form: self._found(form.text))

    def _found(self, text: str) -> Extraction:
        def at(place: int, _colon: bool) -> _Value | None:
            return self._at(text, place)

        def said(value: _Value, why: str) -> Extraction:
            span = (value.start, value.end)
            return Extraction(value.number, span, why if value.number is not None else "ambiguous: a range")

        reached = self.phrases.reached(text, at)
        if item := self.phrases.chosen(text, reached):
            return said(self._result(text, item.what), "announced")
        values = list(self._values(text))
        if not values:
            return NOTHING
        values = [value for value in values if not self._is_compared(text, value)] or values
        if (first := self._at(text, 0)) and first.number is not None and _SET_OFF.match(text, first.end):
            return said(first, "the reply begins with it")
        if len({value.number for value in values}) == 1:
            return said(values[0], "the only number")
        if marked := self._marked(text):
            return marked
        signs = [match.end() for match in _EQUALS.finditer(text)]
        if signs and (answer := self.phrases.answer_at(text, signs[-1], at)):
            return said(self._rounded(text, answer[0], values), "the last result")
        weak = [item.what for item in reached if item.sort < 3]
        if weak:
            return said(weak[-1], "said to be the answer")
        if result := self._behind_calculation(text, values):
            return said(result, "the only number behind a calculation")
        last = values[-1]
        if _END.match(text, last.end) and self._is_said(text, last.start):
            return said(last, "the reply ends with it")
        behind = self._past_skipped(text, last.end)
        verb = behind > last.end and text[last.end : behind].strip()
        if verb and _SENTENCE_END.match(text, behind) and last.number is not None:
            return said(last, "the reply ends with it")  # a verb stands behind it, as in Japanese
        if named := self._in_outer_sentence(text, values):
            return named
        led = {value.number: value for value in values if self._is_said(text, value.start)}
        if len(led) == 1 and None not in led:
            return said(next(iter(led.values())), "the only number that a verb leads to")
        with_unit = {value.number: value for value in values if value.with_unit}
        if len(with_unit) == 1:
            return said(next(iter(with_unit.values())), "the only number with a unit")
        if (first := self._at(text, 0)) and regex.compile(r"[^\S\n]*[.。!*]*\s*(?:\n|$)").match(
            text, first.end
        ):
            return said(first, "the reply begins with it")
        return Extraction(None, None, "ambiguous: several numbers")

    def _marked(self, text: str) -> Extraction | None:
        """The number that is a member of an object, or the only one in bold."""
        found = [
            value
            for place in members(text)
            if (value := self._at(text, place)) and ends_member(text, value.end)
        ]
        if len({value.number for value in found}) == 1 and found[0].number is not None:
            return Extraction(found[0].number, (found[0].start, found[0].end), "a member of JSON")
        bold = [
            value
            for stretch in emphasised(text)
            for value in self._values(text[: stretch.end], stretch.start)
        ]
        if len({value.number for value in bold}) == 1 and bold[0].number is not None:
            return Extraction(bold[0].number, (bold[0].start, bold[0].end), "set in bold")
        return None

    def _in_outer_sentence(self, text: str, values: list[_Value]) -> Extraction | None:
        """The one number outside brackets, or that the first or the last sentence alone says."""
        brackets = [match.span() for match in _BRACKETS.finditer(text)]
        outside = [value for value in values if not any(begin < value.start < end for begin, end in brackets)]
        if len({value.number for value in outside}) == 1 and outside[0].number is not None:
            return Extraction(
                outside[0].number, (outside[0].start, outside[0].end), "the only number outside brackets"
            )
        stop = _FIRST_STOP.search(text)
        first = [value for value in outside if value.start < (stop.start() if stop else 0)]
        last = [value for value in outside if value.start >= last_sentence(text)]
        said = [
            group[0]
            for group in (first, last)
            if len({value.number for value in group}) == 1
            and group[0].number is not None
            and (self._is_said(text, group[0].start) or _LED.search(text[: group[0].start]))
        ]
        if len({value.number for value in said}) != 1:
            return None
        return Extraction(said[0].number, (said[0].start, said[0].end), "the only number of its sentence")

    def _is_said(self, text: str, place: int) -> bool:
        """Whether a verb of being, or the like, stands right before a place."""
        before = text[max(0, place - 16) : place].rstrip(" *_")
        return any(match.end() == len(before) for match in self.phrases.skipped.finditer(before))

    def _behind_calculation(self, text: str, values: list[_Value]) -> _Value | None:
        """The one number behind the last calculation of a reply; None where there are several, or a range."""
        ends = [match.end() for match in _CALCULATION.finditer(text)]
        behind = [value for value in values if ends and value.start >= ends[-1]]
        return (
            behind[0]
            if len({value.number for value in behind}) == 1 and behind[0].number is not None
            else None
        )

    def _result(self, text: str, value: _Value) -> _Value:
        """Of a calculation behind an announcement its result: what follows the last sign on the line."""
        stop = text.find("\n", value.end)
        line_end = stop if stop >= 0 else len(text)
        signs = [match.end() for match in _EQUALS.finditer(text, value.end, line_end)]
        answer = (
            self.phrases.answer_at(text, signs[-1], lambda place, _: self._at(text, place)) if signs else None
        )
        return answer[0] if answer else value

    def _is_compared(self, text: str, value: _Value) -> bool:
        """Whether an answer is compared with a number, or it is an interval: `below 13`; `every 8 hours`."""
        before = text[max(0, value.start - 24) : value.start].rstrip(" *_")
        if self.phrases.limit.match(text, _past_blanks(text, value.end)):
            return True
        return before.endswith(_COMPARES) or any(
            match.end() == len(before) for match in self.phrases.than.finditer(before)
        )

    def _past_skipped(self, text: str, place: int) -> int:
        """Behind words that say nothing, as verbs at the end of a sentence do."""
        while (
            match := self.phrases.skipped.match(text, place) or _GAP.match(text, place)
        ) and match.end() > place:
            place = match.end()
        return place

    def _rounded(self, text: str, value: _Value, values: list[_Value]) -> _Value:
        """What a result is rounded to, in its sentence behind a word for it, or at the end; else itself."""
        last = values[-1]
        if value.number is not None and last.number is not None and _END.match(text, last.end):
            said = text[last.start : last.end]
            decimals = (
                len(said.rpartition(self.phrases.words.decimal)[2])
                if self.phrases.words.decimal in said
                else 0
            )
            if last.start > value.end and abs(value.number - last.number) <= 0.5000001 * 10.0**-decimals:
                return last
        stop = _FIRST_STOP.search(text, value.end)
        about = any_of(self.phrases.words.about).search(text, value.end, stop.start() if stop else len(text))
        return (about and self._at(text, _past_blanks(text, about.end()))) or value

    def _values(self, text: str, begin: int = 0) -> list[_Value]:
        measures = []
        end = 0
        for match in _NUMBER.finditer(text, begin):
            if match.start() >= end and (value := self._at(text, match.start())):
                measures.append(value)
                end = value.end
        return measures

    def _at(self, text: str, place: int) -> _Value | None:
        match = _NUMBER.match(text, place)
        if not match:
            return None
        number = self._number(match)
        if (out_of := any_of(self.phrases.words.out_of).match(text, _past_blanks(text, match.end()))) and (
            score := _NUMBER.match(text, _past_blanks(text, out_of.end()))
        ):
            return _Value(self._number(score), score.start(), score.end(), False)
        if most := self._most(text, match):
            return _Value(number, place, most, False)
        unit = self._unit.match(text, match.end())
        end = unit.end() if unit else match.end()
        factor = self.units[unit[1]] if unit else 1
        if other := self._range_end(text, end) or self._range_end(text, match.end()):
            return _Value(None, place, other, bool(unit))
        return _Value(number * factor, place, end, bool(unit))

    def _most(self, text: str, match: regex.Match[str]) -> int | None:
        """Where the most that a score can be ends, as in `4/9` and `4 out of 9`; None without it."""
        unit = _WORD.match(text, match.end())
        place = _past_blanks(text, match.end())
        if unit and any_of(self.phrases.words.of).match(text, unit.end()):
            place = unit.end()
        of = any_of(self.phrases.words.of).match(text, place)
        stroke = text[place : place + 1] == "/"
        other = (
            _NUMBER.match(text, _past_blanks(text, of.end() if of else place + 1)) if of or stroke else None
        )
        if not other or not (match[0].isdecimal() and other[0].isdecimal()):
            return None
        highest = int(other[0])
        is_score = int(match[0]) <= highest and (of or highest >= _FEWEST_POINTS)
        return other.end() if is_score and text[other.end() : other.end() + 1] != "/" else None

    def _range_end(self, text: str, end: int) -> int | None:
        """Where a range ends whose first number ends at a place; None where there is none."""
        place = _past_blanks(text, end)
        joint = self.phrases.either.match(text, place) or _DASH.match(text, place)
        other = _NUMBER.match(text, _past_blanks(text, joint.end())) if joint else None
        return other.end() if other else None

    def _number(self, match: regex.Match[str]) -> float:
        said, group = match[0].replace("{,}", ",").replace("{.}", "."), match["group"]
        power = int(match["power"]) if match["power"] else 0
        if power:
            said = regex.split(r"\s?[x×*]", said)[0]
        decimal = self.phrases.words.decimal
        whole = said.lstrip("+-")
        if group == decimal and (said.count(group) == 1 or whole.startswith("0")):
            said = (
                said.replace(group, ".") if group != "." else said
            )  # `1.250` where the full stop is decimal
        elif group and not whole.startswith("0"):
            said = said.replace(group, "").replace(",", ".")
        else:
            said = said.replace(",", ".")
        return float(said.replace(" ", "")) * 10.0**power
