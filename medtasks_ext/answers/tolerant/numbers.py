"""One value: a number with or without a unit, a date, or a gestational age."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from medtasks_ext.answers.tolerant.markers import end_of_answer, markers
from medtasks_ext.answers.tolerant.reply import LONGEST, NOTHING, Extraction, Reply

_SIGN = r"(?:(?<![\w.)])[-+])?"
_NUMBER = re.compile(
    rf"(?<![\w.])(?<!\d,){_SIGN}(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,12}})?|\d{{1,15}}(?:[.,]\d{{1,12}})?|\.\d{{1,12}})"
    r"(?:[eE][-+]?\d{1,3}|\s?[x×*]\s?10\s?\^\s?\{?[-+]?\d{1,3}\}?)?(?!\d|[.,]\d)"
)
_TIMES_TEN = re.compile(r"\s?[x×*]\s?10\s?\^\s?\{?([-+]?\d{1,3})\}?")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)")
#: a number that belongs to a unit
_UNIT = re.compile(
    r"/\s*(?:1[.,]73|100|24|10\^?\{?\d\}?)\s*(?:m|mL|ml|h|hours?|l|L|g|kg|µl|μl)?|\bm\^?[23]|\bcm\^?2|\bH2O|\bPCO2|\bSO2|\bO2"
)
_RANGE = re.compile(r"\s*(?:-|–|—|~|to|or|bis|a)\s*\d|\s*/\s*\d")
_BEFORE = re.compile(
    r"[\s*_`\"'(\[{<$\\#>~≈=•:]{0,12}(?:(?:approximately|about|roughly|around|approx\.?|boxed|text|mathbf|is|of|a|score|total|value)\b[\s*_`\"'(\[{<$\\~≈=:]{0,12}){0,4}",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"[=≈]\s*[*_$\\]{0,4}")

_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
]  # fmt: skip
_MONTH = "|".join(name[:3] + f"(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_DATES: list[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[int, int, int]]]] = [
    (re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)"), lambda m: (int(m[3]), int(m[1]), int(m[2]))),
    (re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)"), lambda m: (int(m[1]), int(m[2]), int(m[3]))),
    (
        re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE),
        lambda m: (int(m[3]), _month(m[1]), int(m[2])),
    ),
    (
        re.compile(
            rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\.?,?\s+(\d{{4}})\b", re.IGNORECASE
        ),
        lambda m: (int(m[3]), _month(m[2]), int(m[1])),
    ),
]
_AGE = re.compile(
    r"(?<!\d)(\d{1,3})[\s\"']*(?:weeks?|wks?|w)\b[\s\"',]*(?:and\s*)?[\s\"',]*(\d)[\s\"']*(?:days?|d)\b|(?<!\d)(\d{1,3})w(\d)d\b"
    r"|(?<![\d.])(\d{1,2})\s?\+\s?([0-6])\s*(?:weeks?|w)\b",
    re.IGNORECASE,
)
#: of a line that may hold the answer, in characters
_LONGEST_LINE = 1_000
Form = Literal["number", "date", "weeks_and_days"]


def read_value(reply: Reply, form: Form) -> Extraction:
    """The value of a reply as MedCalc-Bench writes it: `78.5`, `06/08/2024`, `('14 weeks', '2 days')`.

    It is what stands behind the last strong announcement; else the one value of the first line or of
    the reply; else what follows the last weak announcement or the last sign of equality.
    """
    if reply.begin >= reply.end:
        return Extraction(None, None, "the reply is empty")
    text, end = reply.text, end_of_answer(reply)
    begin = max(reply.begin, end - LONGEST)
    find = {"number": _numbers, "date": _dates, "weeks_and_days": _ages}[form]
    marked = markers(text, reply.begin, end)
    for marker in reversed([marker for marker in marked if marker.strong]):
        line_end = _line_end(text, marker.end, end)
        if form == "number" and (value := _at(text, marker.end, end)):
            return value._replace(why=value.why or "announced")
        if values := find(text, marker.end, line_end):
            return _first_of(values, "announced", strict=form == "number")
    values = find(text, begin, end)
    if len({value.answer for value in values}) == 1:
        return values[0]._replace(why="the only value")
    first = find(text, reply.begin, _line_end(text, reply.begin, end))
    sums = "=" in text[reply.begin : _line_end(text, reply.begin, end)]
    if form == "number" and not sums and (value := _at(text, reply.begin, end)):
        return value._replace(why=value.why or "the reply begins with it")
    if form != "number" and len({value.answer for value in first}) == 1:
        return first[0]._replace(why="the reply begins with it")
    for marker in reversed([marker for marker in marked if not marker.strong]):
        if form == "number" and (value := _at(text, marker.end, end)):
            return value._replace(why=value.why or "said to be the answer")
    signs = [match.end() for match in _EQUALS.finditer(text, begin, end)] if form == "number" else []
    if signs and (value := _at(text, signs[-1], end)):
        return value._replace(why=value.why or "the last result")
    if values:
        return Extraction(None, None, "ambiguous: several values")
    return NOTHING


def _line_end(text: str, place: int, end: int) -> int:
    limit = min(end, place + _LONGEST_LINE)
    rest = text[place:limit]
    line_break = text.find("\n", place + len(rest) - len(rest.lstrip()), limit)
    return limit if line_break < 0 else line_break


def _first_of(values: list[Extraction], why: str, *, strict: bool) -> Extraction:
    if strict and len({value.answer for value in values}) > 1:
        return Extraction(None, (values[0].span or (0, 0)), "ambiguous: several values")
    return values[0]._replace(why=why)


def _at(text: str, place: int, end: int) -> Extraction | None:
    """The number that stands at a place, no part of a range."""
    before = _BEFORE.match(text, place, end)
    match = _NUMBER.match(text, before.end() if before else place, end)
    if not match and before and text[before.end() - 1 : before.end()] in "-+":
        match = _NUMBER.match(text, before.end() - 1, end)
    if not match:
        return None
    if _RANGE.match(text, match.end(), end) and not _UNIT.match(text, match.end(), end):
        return Extraction(None, match.span(), "ambiguous: a range or a fraction")
    return Extraction(_plain_number(match[0]), match.span(), "")


def _numbers(text: str, begin: int, end: int) -> list[Extraction]:
    units = [match.span() for match in _UNIT.finditer(text, begin, end)]
    numbers, place = [], 0
    for match in _NUMBER.finditer(text, begin, end):
        while place < len(units) and units[place][1] <= match.start():
            place += 1
        if not (place < len(units) and units[place][0] <= match.start() < units[place][1]):
            numbers.append(Extraction(_plain_number(match[0]), match.span(), ""))
    if len(numbers) == 1:
        after = numbers[0].span[1] if numbers[0].span else begin
        if _RANGE.match(text, after, end) and not _UNIT.match(text, after, end):
            return []
    return numbers


def _plain_number(text: str) -> str:
    power = _TIMES_TEN.search(text)
    number = text[: power.start()] if power else text
    number = number.replace(",", "" if _THOUSANDS.fullmatch(number.lstrip("+-").split(".")[0]) else ".")
    return (f"{number}e{int(power[1])}" if power else number).lstrip("+")


def _dates(text: str, begin: int, end: int) -> list[Extraction]:
    dates = []
    for pattern, parts in _DATES:
        for match in pattern.finditer(text, begin, end):
            try:
                day = datetime(*parts(match))
            except ValueError:
                continue
            dates.append(Extraction(day.strftime("%m/%d/") + f"{day.year:04}", match.span(), ""))
    return sorted(dates, key=lambda item: item.span or (0, 0))


def _month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, start=1) if month.startswith(name[:3].lower()))


def _ages(text: str, begin: int, end: int) -> list[Extraction]:
    ages = []
    for match in _AGE.finditer(text, begin, end):
        weeks, days = [item for item in match.groups() if item is not None]
        ages.append(Extraction(f"('{int(weeks)} weeks', '{int(days)} days')", match.span(), ""))
    return ages
