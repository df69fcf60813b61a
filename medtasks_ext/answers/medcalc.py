"""One computed value: a number, a date, or a gestational age (MedCalc-Bench as HELM reads it)."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, get_args

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, reading_of
from medtasks_ext.answers.reader.reply import reply_of, without_reasoning
from medtasks_ext.answers.reader.values import Form, read_value
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """The gold answer with its limits."""
        answer, category = text.strip(), str(row["category"])
        if category not in CATEGORIES:
            raise GoldError(f"category {excerpt(category)} is none of: {', '.join(CATEGORIES)}")
        form: Form = "number"
        if CATEGORIES[category] == "date":
            form = "weeks_and_days" if _HELM_TUPLE.match(answer) else "date"
        lower, upper = (_limit(row, name, form) for name in ("lower_limit", "upper_limit"))
        return GoldValue(answer=answer, category=category, form=form, lower=lower, upper=upper)

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The reply without reasoning trace; under chain-of-thought what follows `Result:`."""
        reply = without_reasoning(text)
        reply = reply.strip()
        forms = [row["gold"]["form"]] if row.get("gold") else get_args(Form)
        return Reading(reply, any(loose_value(reply, form) is not None for form in forms))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        """The value of the reply, written as the gold answers write values."""
        gold = document.get("gold")
        return reading_of(read_value(reply_of(text), gold["form"] if gold else "number"))

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
