"""One computed value: a number, a date, or a gestational age (MedCalc-Bench as HELM reads it)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal, TypedDict, get_args

import regex

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, reading_of
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.finders import Numbers
from medtasks_ext.answers.reader.words import NOTHING, UNCLOSED, Extraction, reply_of, words_of
from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.privacy import excerpt

Form = Literal["number", "date", "weeks_and_days"]
#: category as sources spell it -> its one name here
CATEGORIES = {
    "lab": "lab",
    "lab test": "lab",
    "physical": "physical",
    "date": "date",
    "dosage": "dosage",
    "dosage conversion": "dosage",
    "risk": "risk",
    "severity": "severity",
    "diagnosis": "diagnosis",
}
#: spellings that HELM's metric knows; answers of any other category score 0 there
HELM_CATEGORIES = frozenset({"physical", "date", "dosage conversion", "risk", "severity", "diagnosis"})
_HELM_TUPLE = re.compile(r"\('(\d+) weeks', '(\d+) days'\)")
_TUPLE = re.compile(r"""\(?\s*(["']?)(\d{1,4}) weeks?\1\s*,\s*(["']?)(\d{1,4}) days?\3\s*\)?""")


class GoldValue(TypedDict):
    """A gold answer; limits are numbers (dates and ages: days)."""

    answer: str
    category: str
    form: Form
    lower: float
    upper: float


class MedCalc(AnswerFormat):
    """A bare value. The row's fields `category`, `lower_limit` and `upper_limit` say what is right.

    The answer is the whole stripped reply; the metric reads the value in it. It is valid when it is a value
    of the form that the question asks for.
    """

    kind: Literal["medcalc"]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> GoldValue:
        answer, category = text.strip(), str(row["category"])
        if category not in CATEGORIES:
            raise GoldError(f"category {excerpt(category)} is none of: {', '.join(CATEGORIES)}")
        form: Form = "number"
        if CATEGORIES[category] == "date":
            form = "weeks_and_days" if _HELM_TUPLE.match(answer) else "date"
        lower, upper = (_limit(row, name, form) for name in ("lower_limit", "upper_limit"))
        return GoldValue(answer=answer, category=category, form=form, lower=lower, upper=upper)

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = without_reasoning(text).strip()
        forms = [row["gold"]["form"]] if row.get("gold") else get_args(Form)
        return Reading(reply, any(loose_value(reply, form) is not None for form in forms))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        gold = document.get("gold")
        return reading_of(_said_value(text, gold["form"] if gold else "number"))

    def ceiling(self, gold: Any) -> float:
        """0 for categories that HELM's metric does not know."""
        return float(gold["category"] in HELM_CATEGORIES)


def value(text: str, form: Form) -> float | None:
    """The value of a stripped text as HELM reads it, or None: a number, or a count of days.

    A number is what Python's `float` takes (`1e5`, `inf`, `1_000` and digits of other scripts
    among them). A date is month/day/year. A gestational age is `('14 weeks', '2 days')`, whatever
    follows it.
    """
    try:
        if form == "number":
            return float(text)
        if form == "date":
            return datetime.strptime(text, "%m/%d/%Y").toordinal()
        match = _HELM_TUPLE.match(text)
        return int(match[1]) * 7 + int(match[2]) if match else None
    except ValueError:
        return None


def loose_value(text: str, form: Form) -> float | None:
    """The value, with gestational ages as the questions write them, too: `(4 weeks, 3 days)`."""
    match = _TUPLE.fullmatch(text) if form == "weeks_and_days" else None
    return int(match[2]) * 7 + int(match[4]) if match else value(text, form)


def _limit(row: Mapping[str, Any], name: str, form: Form) -> float:
    text = str("" if row.get(name) is None else row[name]).strip()
    limit = value(text, form)
    if limit is None or not math.isfinite(limit):
        raise GoldError(
            f"{name} {excerpt(text)} is no {form.replace('_', ' ')}" if text else f"{name} is missing"
        )
    return limit


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


def _said_value(response: str, form: Form) -> Extraction:
    """The value of a reply as MedCalc-Bench writes it: `78.5`, `06/08/2024`, `('14 weeks', '2 days')`.

    A date or an age is the one that follows the last announcement, or the only one of the reply.
    """
    words = words_of("en")
    if form == "number":
        found = Numbers({}, words).reader.read(response)
        return found if found.answer is None else found._replace(answer=f"{found.answer:.15g}")
    reply = reply_of(response)
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
