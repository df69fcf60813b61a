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


@lru_cache(maxsize=4)
def _result_line(marker: str | None) -> re.Pattern[str]:
    words = "result" if marker is None else f"result|{re.escape(marker)}"
    return re.compile(
        rf"^{_BLANK}(?:[*_#]+{_BLANK})?(?:{words})[*_]*{_BLANK}[:：][*_]*", re.IGNORECASE | re.MULTILINE
    )


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
        if cot and (marker := _result_line(self.marker).search(answer)):
            answer = answer[marker.end() :]
        answer = answer.strip()
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
