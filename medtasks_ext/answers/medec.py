"""The faulty sentence of a clinical note and its correction (MEDEC as HELM reads it)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, reading
from medtasks_ext.answers.reader.announce import part_announced
from medtasks_ext.answers.reader.items import fenced
from medtasks_ext.answers.reader.words import reply_of, words_of
from medtasks_ext.answers.reasoning import without_reasoning
from medtasks_ext.privacy import excerpt

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


class Correction(TypedDict):
    flag: int  # 1: an error is reported
    sentence: int | None  # its number
    correction: str  # may be empty


class GoldCorrection(Correction):
    #: the number of the sentence as HELM reads it from the gold: from its whole text, in which it finds none
    #: unless the correction is empty
    official_sentence: int | None


class Medec(AnswerFormat):
    """`CORRECT`, or the number of the faulty sentence, a blank, and the corrected sentence.

    Anything but `CORRECT` alone says that there is an error. A reply is valid when it is `CORRECT`
    or begins with a number.
    """

    kind: Literal["medec"]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> GoldCorrection:
        answer = _parsed(text.strip())
        if answer["flag"] and answer["sentence"] is None:
            raise GoldError(
                f"{excerpt(text.strip())} is neither {CORRECT} nor begins with a sentence's number"
            )
        return GoldCorrection(**answer, official_sentence=_number(text.replace(".", "").strip()))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        answer = _parsed(without_reasoning(text).strip())
        return Reading(answer, not answer["flag"] or answer["sentence"] is not None)

    def _read_shared(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Reading:
        """The same, whatever dresses it up: `Correct.`, `**CORRECT**`, `Sentence 4: …`, `4. …`."""
        reply = reply_of(text)
        span = fenced(reply.text, reply.begin, reply.end) or part_announced(reply, words_of("en"))
        part = reply.text[slice(*span)]
        bare = part.strip(_MARKS)
        begin = span[0] + len(part) - len(part.lstrip(_MARKS))
        span, part = (begin, begin + len(bare)), bare
        answer: Correction | None = None
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
        return reading(answer, span if answer else None, why)

    def invalid_score(self, gold: Any) -> float:
        """1 for notes with an error, since an unreadable reply counts as the report of one."""
        return float(gold["flag"])


def _parsed(text: str) -> Correction:
    if text == CORRECT:
        return {"flag": 0, "sentence": None, "correction": ""}
    match = _SENTENCE.match(text)
    sentence = _number(match[1]) if match else None
    return {"flag": 1, "sentence": sentence, "correction": match[2].strip() if match else ""}


def _number(text: str) -> int | None:
    """The integer that the whole text is, or None; also where it has more digits than Python reads."""
    try:
        return int(text)
    except ValueError:
        return None
