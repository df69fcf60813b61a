"""SQL statements, as HELM's EHRSQL annotator takes them from a reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, reading
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.items import fenced
from medtasks_ext.answers.reader.words import Reply, reply_of, words_of
from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.privacy import excerpt

_TAGGED = re.compile(r"<\s*sql\s*>(.*?)</?\s*sql\s*>", re.DOTALL | re.IGNORECASE)
_LANGUAGE_LINE = re.compile(r"^sql\n", re.MULTILINE)
_SELECT = re.compile(r"\bselect\b", re.IGNORECASE)


class GoldQuery(TypedDict):
    """What scoring needs of a row."""

    query: str
    answerable: bool  # whether the database holds an answer
    slots: bool  # whether the question has values to fill in


class Statement(TypedDict):
    empty: bool  # whether the reply says that there is no answer
    sql: str


class Sql(AnswerFormat):
    """One SQL statement, or an empty reply where the question cannot be answered.

    The answer is `{"empty": whether the reply is blank, "sql": the statement}`: a reply that is not
    blank counts as an attempt even where no statement is left of it. It is valid if it is blank or
    holds a SELECT. A reasoning trace that was never closed is neither a statement nor an abstention.
    """

    kind: Literal["sql"]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> GoldQuery:
        query, impossible = row["query"], row["is_impossible"]
        if not isinstance(query, str) or not query.strip():
            raise GoldError("query is empty")
        if not isinstance(impossible, bool):
            raise GoldError(f"is_impossible is {excerpt(impossible)}, not true or false")
        return GoldQuery(query=query.strip(), answerable=not impossible, slots=bool(row.get("value")))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The content of the first `<sql>` element, else the whole reply; back-ticks and a line `sql` go."""
        if reply_of(text).unclosed:
            return Reading(None, False)
        reply = without_reasoning(text).strip()
        tagged = _TAGGED.search(reply)
        sql = _LANGUAGE_LINE.sub("", (tagged[1] if tagged else reply).replace("`", "").strip())
        return Reading(Statement(empty=not reply, sql=sql), not reply or bool(_SELECT.search(sql)))

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        """The statement alone, without sentences around it; an announcement of nothing is an abstention."""
        reply = reply_of(text)
        begin, end = part_announced(reply, words_of("en"))
        if span := _statement(reply._replace(begin=begin, end=end)):
            sql = text[slice(*span)].strip()
            return reading(Statement(empty=False, sql=sql), span, "the statement")
        said = reply.text[begin:end].strip(" \t\n*_`#>\"'.;")
        if not reply.unclosed and (said.casefold() in _NOTHING or said.endswith(":")):
            return reading(Statement(empty=True, sql=""), None, "the reply says that there is no answer")
        return reading(None, None, "no statement was found")


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
    """Where the last SQL statement of a reply stands: an element `<sql>`, a fence, or lines from SELECT or
    WITH on."""
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
