"""BRIDGE generation answers: the whole normalised response, or a passage per question."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import regex  # the official scorer's engine

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import answer_part, fold
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.prose import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_EMPHASIS = re.compile(r"[*_`]{1,3}")


class Text(AnswerFormat):
    """Free text. A prefix that the answer format asks for stays in both texts, as officially scored."""

    kind: Literal["text"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """One reference, or several when the row has an `output_list`."""
        given = row.get("output_list") or [text]
        if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
            raise GoldError("output_list must be a list of texts")
        references = [fold(item) for item in given]
        if not any(references):
            raise GoldError("empty reference")
        return references

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The normalised response; an empty one is invalid."""
        response = answer_part(text, cot=cot)
        return Reading(response, True) if response else Reading(None, False)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The text without a fence, and without what stands before the first line `Result:`."""
        span = text_of(reply_of(text), "result")
        answer = fold(text[slice(*span)])
        why = "the text" if answer else "the reply is empty"
        return {
            "gold": document.get("gold"),
            "answer": answer or None,
            "span": span if answer else None,
            "why": why,
        }


class Passages(AnswerFormat):
    """One passage per question, each on a line `prefix question: passage;` (CAS-evidence).

    Each line goes to the first question that has no answer yet and whose pattern matches it.
    """

    kind: Literal["passages"]
    prefix: str
    questions: dict[str, str]

    @cached_property
    def _patterns(self) -> dict[str, tuple[regex.Pattern[str], ...]]:
        prefix = regex.escape(fold(self.prefix))
        return {
            question: (
                regex.compile(rf"{prefix} {regex.escape(question)}: ([^;]+)", regex.IGNORECASE),
                regex.compile(rf"{regex.escape(question)}:\s*([^;]+)", regex.IGNORECASE),
            )
            for question in map(fold, self.questions)
        }

    @cached_property
    def _any(self) -> regex.Pattern[str]:
        """Any of the questions."""
        return regex.compile("|".join(f"{regex.escape(item)}:" for item in self._patterns), regex.IGNORECASE)

    def _passages(self, text: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self._lines(text):
            for question, (exact, loose) in self._patterns.items():
                if question not in found and (match := loose.search(line)):  # it matches where `exact` does
                    match = exact.search(line) or match
                    found[question] = match[1].strip()
                    break
            if len(found) == len(self._patterns):
                break
        return {question: found[question] for question in self._patterns if question in found}

    def _lines(self, text: str) -> Iterator[str]:
        """The lines that hold a question and a colon: what stands between them is passed in one search."""
        end = -1
        for match in self._any.finditer(text) if ":" in text else ():
            if match.start() > end:
                begin = text.rfind("\n", 0, match.start()) + 1
                end = text.find("\n", match.end()) % (len(text) + 1)  # -1 becomes the end of the text
                yield text[begin:end].strip()

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The passages in the order of the questions; each must be there."""
        passages = self._passages(fold(text))
        if len(passages) < len(self.questions):
            raise GoldError(
                f"expected a line '{self.prefix} <question>: <...>;' for: {', '.join(self.questions)}"
            )
        return list(passages.values())

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The passages, empty where there is none; valid only if none is missing."""
        passages = self._passages(answer_part(text, cot=cot))
        answer = [passages.get(question, "") for question in self._patterns]
        return Reading(answer, len(passages) == len(self.questions))

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The passages without bullets and emphasis."""
        reply = reply_of(text)
        part = _EMPHASIS.sub("", reply.part)
        passages = self._passages(fold(part))
        answer = [passages.get(question, "") for question in self._patterns] if passages else None
        why = "lines of questions" if passages else "no line of a question was found"
        return {
            "gold": document.get("gold"),
            "answer": answer,
            "span": (reply.begin, reply.end) if passages else None,
            "why": why,
        }
