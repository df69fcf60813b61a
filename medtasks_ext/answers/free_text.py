"""Free text without normalisation, as HELM scores and judges it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.prose import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLANK = r"[^\S\n]*"


_BEFORE_RESULT = re.compile(rf"{_BLANK}(?:[*_#]+{_BLANK})?")


@lru_cache(maxsize=4)
def _result(marker: str | None) -> re.Pattern[str]:
    words = "result" if marker is None else f"result|{re.escape(marker)}"
    return re.compile(rf"(?:{words})[*_]*{_BLANK}[:：][*_]*", re.IGNORECASE)


def _end_of_result_line(text: str, marker: str | None) -> int | None:
    """Where the answer begins after the first line that begins with `Result:` or the marker.

    The words are searched for first, since most texts have fewer of them than lines and blanks.
    """
    looked_at = 0
    for match in _result(marker).finditer(text):
        begin = text.rfind("\n", looked_at, match.start()) + 1
        # a line in which the words were found before does not begin with these
        if (begin or not looked_at) and _BEFORE_RESULT.fullmatch(text, begin, match.start()):
            return match.end()
        looked_at = match.end()
    return None


class FreeText(AnswerFormat):
    """Any text.

    Attributes:
        reference: the field that answers are compared with, where that is not the task's target. A
            benchmark without gold answers has no target, and HELM compares with the input.
        marker: a word besides `Result` with which the answer begins under chain-of-thought.
    """

    kind: Literal["free_text"]
    reference: str | None = None
    marker: str | None = Field(default=None, min_length=1)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The reference text, stripped.

        Raises:
            GoldError: it is empty.
        """
        gold = (str(row[self.reference]) if self.reference else text).strip()
        if not gold:
            raise GoldError("empty reference")
        return gold

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The response without its reasoning, stripped; an empty one is invalid.

        Under chain-of-thought the answer is what follows the first line that begins with `Result:` or
        the marker.
        Later ones may be lines of the answer, since notes have results, too.
        """
        answer = strip_reasoning(text)
        begin = _end_of_result_line(answer, self.marker) if cot else None
        answer = answer[begin:].strip()
        return Reading(answer, True) if answer else Reading(None, False)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The text without a fence around it, and without what stands before the first line `Result:`."""
        span = text_of(
            reply_of(text), "result" if self.marker is None else f"result|{re.escape(self.marker)}"
        )
        answer = text[slice(*span)].strip()
        why = "the text" if answer else "the reply is empty"
        return {
            "gold": document.get("gold"),
            "answer": answer or None,
            "span": span if answer else None,
            "why": why,
        }
