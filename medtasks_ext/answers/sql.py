"""SQL statements, as HELM's EHRSQL annotator takes them from a reply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired, repaired
from medtasks_ext.answers.normalise import after_result, has_unclosed_reasoning, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.markers import after_last_marker, ends_with_marker, is_abstention, sql_of
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """What scoring needs of the row.

        Raises:
            GoldError: the columns `query` and `is_impossible` are not what they should be.
        """
        query, impossible = row["query"], row["is_impossible"]
        if not isinstance(query, str) or not query.strip():
            raise GoldError("query is empty")
        if not isinstance(impossible, bool):
            raise GoldError(f"is_impossible is {excerpt(impossible)}, not true or false")
        return GoldQuery(query=query.strip(), answerable=not impossible, slots=bool(row.get("value")))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The content of the first `<sql>` element, else the whole reply; back-ticks and a line `sql` go."""
        if has_unclosed_reasoning(text):
            return Reading(None, False)
        reply = strip_reasoning(text)
        reply = (after_result(reply) if cot else reply).strip()
        tagged = _TAGGED.search(reply)
        sql = _LANGUAGE_LINE.sub("", (tagged[1] if tagged else reply).replace("`", "").strip())
        return Reading(Statement(empty=not reply, sql=sql), not reply or bool(_SELECT.search(sql)))

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The statement alone, without sentences around it; a reply such as `null` is an abstention."""
        reply = reply_of(text)
        answer: Statement | None = None
        span, why = sql_of(reply), "the statement"
        unclosed = reply.begin >= reply.end and has_unclosed_reasoning(text)
        if span:
            answer = Statement(empty=False, sql=text[slice(*span)].strip().rstrip(";").rstrip())
        elif not unclosed and (
            ends_with_marker(reply) or is_abstention(reply.text[slice(*after_last_marker(reply))])
        ):
            answer, why = Statement(empty=True, sql=""), "the reply says that there is no answer"
        if answer is None:
            why = "no statement was found"
        return repaired(document, answer, span, why)
