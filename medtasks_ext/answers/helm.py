"""Corrections, computed values and SQL, as HELM reads them: MEDEC, MedCalc-Bench, EHRSQL."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args

import regex

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, reading
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.finders import Numbers
from medtasks_ext.answers.reader.items import fenced
from medtasks_ext.answers.reader.words import NOTHING, UNCLOSED, Reply, reply_of, words_of
from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.privacy import excerpt

# ---------------------------------------------------------------- the faulty sentence of a note

#: what is answered for a note without error
CORRECT = "CORRECT"
_IS_CORRECT = re.compile(
    r"(?:(?:the\s+)?(?:(?:clinical\s+|medical\s+)?(?:note|text|answer)|all\s+sentences)\s+(?:is|are)\s+)?"
    r"(?:[*_]{0,2}(?-i:CORRECT)[*_]{0,2}(?=[\s.,(–—-])|correct(?:ion\s+not\s+needed)?[*_.!\"'\s]{0,6}(?:\n|\Z)"
    r"|(?:no\s+errors?\b|there\s+(?:is\s+no\s+error|are\s+no\s+errors)\b)(?![^.\n]{0,80}\b(?:except|but|other\s+than)))",
    re.IGNORECASE,
)
#: what stands behind a correction: a blank line, a fence, a reason
_CORRECTION_END = re.compile(
    r"\n\s*\n|\n?```|\n[\s*_#-]{0,6}(?:explanation|reason|rationale|note|why)\b", re.IGNORECASE
)
_CORRECTED = re.compile(
    r"[\s*_.,;:-]{0,8}(?:the\s+)?(?:corrected|correct|revised)(?:\s+(?:sentence|version|text))?"
    r"(?:\s+(?:is|reads))?[*_\s]{0,4}:[*_\s]{0,4}",
    re.IGNORECASE,
)
_FAULTY = re.compile(
    r"(?:(?:the\s+)?(?:there\s+is\s+an\s+)?(?:error\s+(?:is\s+)?in\s+)?sentence\s*(?:no\.?|number|id)?\s*[#:]?[\s*_]{0,4})?[\[(]?(\d{1,4})(?![\d,]|\.\d)[\])]?[*_]{0,2}\s*[.:)–—-]{0,2}\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
#: a line for each sentence, which is no answer, and such a line that says that all is well
_NUMBERED = re.compile(r"^[\s*_]{0,8}(\d{1,3})[.)][^\S\n]+(.*)$", re.MULTILINE)
_WELL = re.compile(r"(?:the|this)?\s?(?:sentence|text)?\s?(?:is\s)?correct[.\s*_]{0,6}\Z", re.IGNORECASE)
#: how far behind the number the corrected sentence is announced, in characters
_NEAR = 300
_SENTENCE = re.compile(r"(\d+)(.*)", re.DOTALL)
_MARKS = " \t\n\r*_`#>\"'"


class Medec(AnswerFormat):
    """`CORRECT`, or the number of the faulty sentence, a blank, and the corrected sentence.

    Anything but `CORRECT` alone says that there is an error. A reply is valid when it is `CORRECT`
    or begins with a number.
    """

    kind: Literal["medec"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, Any]:
        answer = _parsed(text.strip())
        if answer["flag"] and answer["sentence"] is None:
            raise GoldError(
                f"{excerpt(text.strip())} is neither {CORRECT} nor begins with a sentence's number"
            )
        # as HELM reads it: from the whole text, in which it finds none unless the correction is empty
        return {**answer, "official_sentence": _number(text.replace(".", "").strip())}

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        answer = _parsed(without_reasoning(text).strip())
        return Reading(answer, not answer["flag"] or answer["sentence"] is not None)

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = reply_of(text)
        span = fenced(reply.text, reply.begin, reply.end) or part_announced(reply, words_of("en"))
        part = reply.text[slice(*span)]
        bare = part.strip(_MARKS)
        begin = span[0] + len(part) - len(part.lstrip(_MARKS))
        span, part = (begin, begin + len(bare)), bare
        answer: dict[str, Any] | None = None
        lines = _NUMBERED.findall(part)
        numbered = [line[0] for line in lines[:3]] == ["1", "2", "3"]
        if _IS_CORRECT.match(part) or (numbered and all(_WELL.match(line.strip()) for _, line in lines)):
            answer = _parsed(CORRECT)
        elif numbered:
            pass
        elif match := _FAULTY.match(part):
            begin = span[0] + match.start(2)
            if said := _CORRECTED.search(reply.text, begin, min(span[1], begin + _NEAR)):
                begin = said.end()
            if stop := _CORRECTION_END.search(reply.text, begin, span[1]):
                span = span[0], stop.start()
            correction = text[begin : span[1]].strip(' \t\r\n*_"“”')  # as it stands in the response
            answer = {"flag": 1, "sentence": int(match[1]), "correction": correction}
        why = "the reply says so" if answer else "neither CORRECT nor the number of a sentence"
        return reading(answer, span, why)

    def invalid_score(self, gold: Any) -> float:
        """1 for notes with an error, since an unreadable reply counts as the report of one."""
        return float(gold["flag"])


def _parsed(text: str) -> dict[str, Any]:
    """Whether an error is reported (1), the sentence's number, and the correction, which may be empty."""
    if text == CORRECT:
        return {"flag": 0, "sentence": None, "correction": ""}
    match = _SENTENCE.match(text)
    sentence = _number(match[1]) if match else None
    return {"flag": 1, "sentence": sentence, "correction": match[2].strip() if match else ""}


def _number(text: str) -> int | None:
    """An integer; None also where it has more digits than Python reads."""
    try:
        return int(text)
    except ValueError:
        return None


# ---------------------------------------------------------------- a number, a date or a gestational age

Form = Literal["number", "date", "weeks_and_days"]
#: category as sources spell it -> its one name here
CATEGORIES = {name: name.split()[0] for name in (
    "lab", "lab test", "physical", "date", "dosage", "dosage conversion", "risk", "severity", "diagnosis",
)}  # fmt: skip
#: spellings that HELM's metric knows; answers of any other category score 0 there
HELM_CATEGORIES = frozenset({"physical", "date", "dosage conversion", "risk", "severity", "diagnosis"})
_HELM_TUPLE = re.compile(r"\('(\d+) weeks', '(\d+) days'\)")
_TUPLE = re.compile(r"""\(?\s*(["']?)(\d{1,4}) weeks?\1\s*,\s*(["']?)(\d{1,4}) days?\3\s*\)?""")


class MedCalc(AnswerFormat):
    """A bare value. The row's fields `category`, `lower_limit` and `upper_limit` say what is right.

    The answer is the whole stripped reply; the metric reads the value in it. It is valid when it is a value
    of the form that the question asks for.
    """

    kind: Literal["medcalc"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Limits are numbers; those of dates and ages are days."""
        answer, category = text.strip(), str(row["category"])
        if category not in CATEGORIES:
            raise GoldError(f"category {excerpt(category)} is none of: {', '.join(CATEGORIES)}")
        form: Form = "number"
        if CATEGORIES[category] == "date":
            form = "weeks_and_days" if _HELM_TUPLE.match(answer) else "date"
        lower, upper = (_limit(row, name, form) for name in ("lower_limit", "upper_limit"))
        return {"answer": answer, "category": category, "form": form, "lower": lower, "upper": upper}

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = without_reasoning(text).strip()
        forms = [row["gold"]["form"]] if row.get("gold") else get_args(Form)
        return Reading(reply, any(loose_value(reply, form) is not None for form in forms))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        gold = document.get("gold")
        return _said_value(text, gold["form"] if gold else "number")

    def ceiling(self, gold: Any) -> float:
        """0 for categories that HELM's metric does not know."""
        return float(gold["category"] in HELM_CATEGORIES)


def value(text: str, form: Form) -> float | None:
    """The value of a stripped text as HELM reads it, or None: a number, or a count of days.

    A number is what Python's `float` takes (`1e5`, `inf`, `1_000`). A date is month/day/year. A gestational
    age is `('14 weeks', '2 days')`, whatever follows it.
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


def _said_value(response: str, form: Form) -> Reading:
    """A date or an age is the one that follows the last announcement, or the only one of the reply."""
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


def _dates(text: str, begin: int, end: int) -> list[Reading]:
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
        dates.append(reading(day.strftime("%m/%d/") + f"{day.year:04}", match.span()))
    return dates


def _ages(text: str, begin: int, end: int) -> list[Reading]:
    return [
        reading(f"('{int(match['weeks'])} weeks', '{int(match['days'])} days')", match.span())
        for match in _AGE.finditer(text, begin, end)
    ]


# ---------------------------------------------------------------- an SQL statement

_TAGGED = re.compile(r"<\s*sql\s*>(.*?)</?\s*sql\s*>", re.DOTALL | re.IGNORECASE)
_LANGUAGE_LINE = re.compile(r"^sql\n", re.MULTILINE)
_SELECT = re.compile(r"\bselect\b", re.IGNORECASE)


class Sql(AnswerFormat):
    """One SQL statement, or an empty reply where the question cannot be answered.

    The answer is `{"empty": whether the reply is blank, "sql": the statement}`: a reply that is not
    blank counts as an attempt even where no statement is left of it. It is valid if it is blank or
    holds a SELECT. A reasoning trace that was never closed is neither a statement nor an abstention.
    """

    kind: Literal["sql"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, Any]:
        query, impossible = row["query"], row["is_impossible"]
        if not isinstance(query, str) or not query.strip():
            raise GoldError("query is empty")
        if not isinstance(impossible, bool):
            raise GoldError(f"is_impossible is {excerpt(impossible)}, not true or false")
        # whether the database holds an answer, and whether the question has values to fill in
        return {"query": query.strip(), "answerable": not impossible, "slots": bool(row.get("value"))}

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        if reply_of(text).unclosed:
            return reading(None)
        reply = without_reasoning(text).strip()
        tagged = _TAGGED.search(reply)
        sql = _LANGUAGE_LINE.sub("", (tagged[1] if tagged else reply).replace("`", "").strip())
        return Reading({"empty": not reply, "sql": sql}, not reply or bool(_SELECT.search(sql)))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        reply = reply_of(text)
        begin, end = part_announced(reply, words_of("en"))
        if span := _statement(reply._replace(begin=begin, end=end)):
            sql = text[slice(*span)].strip()
            return reading({"empty": False, "sql": sql}, span, "the statement")
        said = reply.text[begin:end].strip(" \t\n*_`#>\"'.;")
        if not reply.unclosed and (said.casefold() in _NOTHING or said.endswith(":")):
            return reading({"empty": True, "sql": ""}, None, "the reply says that there is no answer")
        return reading(None, why="no statement was found")


#: said where the question cannot be answered; a reply may also end with its announcement
_NOTHING = frozenset({"", "null", "none", "n/a", "not answerable", "unanswerable", "empty"})
#: of a statement, and what follows one
_BEGINS = re.compile(
    r"^[\s`*>]{0,8}(select\b|with\s+(?:recursive\s+)?\w{1,40}\s+as\s*\()", re.IGNORECASE | re.MULTILINE
)
_STOP = re.compile(
    r"(?<=;)\s*(?=\n|\Z|`|[A-Z][a-z])|\n\s*\n|\n(?=(?:this|the|note|here|it)\b)|```", re.IGNORECASE
)


def _statement(reply: Reply) -> tuple[int, int] | None:
    """Where the last SQL statement stands: an element `<sql>`, a fence, or lines from SELECT or WITH on."""
    part, offset = reply.text[reply.begin : reply.end], reply.begin
    if tagged := _TAGGED.search(part):
        return offset + tagged.start(1), offset + tagged.end(1)
    if block := fenced(part, 0, len(part)):
        offset, part = offset + block[0], part[slice(*block)]
    begins = [match.start(1) for match in _BEGINS.finditer(part)]
    if not begins:
        return None
    place = begins[0] if block else begins[-1]
    stop = None if block else _STOP.search(part, place)
    return offset + place, offset + (stop.start() if stop else len(part))
