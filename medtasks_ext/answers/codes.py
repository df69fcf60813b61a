"""ICD-10 codes in free text, as HELM's billing-code metric reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from medtasks_ext.answers.formats import AnswerFormat, Reading
from medtasks_ext.answers.normalise import after_result, strip_reasoning

if TYPE_CHECKING:
    from collections.abc import Mapping

_ICD10 = re.compile(r"\b[A-Z]\d{1,3}(?:\.\d{1,4})?\.?\b")


class CodesInText(AnswerFormat):
    """A set of ICD-10 codes. Gold and reply are read by one pattern (HELM, `mimiciv_billing_code_metrics`).

    No case folding; the dot is significant; codes that the pattern cannot read (a letter after
    the dot, a letter in position 2 or 3, procedure codes) shrink to their stem or vanish.
    """

    kind: Literal["codes_in_text"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The readable gold codes, sorted; there may be none."""
        return self._codes(text)

    def read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The readable codes of the reply; a reply without any is invalid."""
        reply = strip_reasoning(text)
        codes = self._codes(after_result(reply) if cot else reply)
        return Reading(codes, bool(codes))

    @staticmethod
    def _codes(text: str) -> list[str]:
        return sorted({code.rstrip(".") for code in _ICD10.findall(text.replace("**", ""))})
