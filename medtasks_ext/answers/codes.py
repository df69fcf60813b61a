"""ICD-10 codes in free text, as HELM's billing-code metric reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medtasks_ext.answers.formats import AnswerFormat, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.prose import after_last_marker

if TYPE_CHECKING:
    from collections.abc import Mapping

# a letter, two characters of which the first is a digit, up to four behind the dot, which may be missing
_WHOLE_ICD10 = re.compile(
    r"(?<![A-Za-z0-9.])([A-TV-Z]\d[0-9A-Z])(?:\.([0-9A-Z]{1,4})|(\d[0-9A-Z]{0,3}))?(?![A-Za-z0-9])"
)
_ICD10 = re.compile(r"\b[A-Z]\d{1,3}(?:\.\d{1,4})?\.?\b")


class CodesInText(AnswerFormat):
    """A set of ICD-10 codes. Gold and reply are read by one pattern (HELM, `mimiciv_billing_code_metrics`).

    No case folding; the dot is significant; codes that the pattern cannot read (a letter after
    the dot, a letter in position 2 or 3, procedure codes) shrink to their stem or vanish.
    """

    kind: Literal["codes_in_text"]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The readable gold codes, sorted; there may be none."""
        return self._codes(text)

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The readable codes of the reply; a reply without any is invalid."""
        reply = strip_reasoning(text)
        codes = self._codes(after_result(reply) if cot else reply)
        return Reading(codes, bool(codes))

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The codes with letters behind their dot, of the gold and of what follows the last announcement."""
        reply = reply_of(text)
        span = after_last_marker(reply)
        codes, target = _whole_codes(reply.text[slice(*span)]), str(document.get("target") or "")
        return {
            "gold": _whole_codes(target) or document.get("gold"),
            "answer": codes or None,
            "span": span if codes else None,
            "why": "codes in the reply" if codes else "no code was found",
        }

    @staticmethod
    def _codes(text: str) -> list[str]:
        return sorted({code.rstrip(".") for code in _ICD10.findall(text.replace("**", ""))})


def _whole_codes(text: str) -> list[str]:
    text = text.replace("*", " ").replace("_", " ")
    found = _WHOLE_ICD10.findall(text) or _WHOLE_ICD10.findall(text.upper())
    return sorted({f"{stem}.{more}" if (more := dotted or plain) else stem for stem, dotted, plain in found})
