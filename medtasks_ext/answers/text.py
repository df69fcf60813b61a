"""Free text: as BRIDGE folds it before it is scored, with passages by question, or as it stands (HELM)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import regex  # the official scorer's engine
from pydantic import Field, StringConstraints

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, reading
from medtasks_ext.answers.reasoning import without_reasoning

#: full-width forms and marks -> ASCII; the official table has no entry for ！ and ？
_FOLDED = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in "！？"}
_FOLDED |= {"\u3000": " ", "。": ".", "“": '"', "”": '"', "‘": "'", "’": "'"}


def fold(text: str) -> str:
    """Lower-case, full-width forms to ASCII, strip (BRIDGE, `util/preprocess.py`), of gold and responses."""
    text = text.lower()
    if not text.isascii():
        for wide in _FOLDED.keys() & set(text):  # one by one: `translate` looks each character up
            text = text.replace(wide, _FOLDED[wide])
    return text.strip()


def answer_part(text: str, *, cot: bool) -> str:
    """Fold a response and cut what stands before its answer (BRIDGE, `dataset/process.py`).

    An unclosed trace changes nothing.
    """
    text = _after_first(fold(text), "</think>")
    if cot:
        text = _after_first(text, "result:").strip()
    return _after_first(text, "assistantfinal").strip()


def _after_first(text: str, marker: str) -> str:
    return text.partition(marker)[2] if marker in text else text


def tagged(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where what stands in the tags of a name begins and ends; one that never ends holds nothing."""
    opening, closing = f"<{name}>", f"</{name}>"
    begin = text.find(opening)
    while begin >= 0 and (end := text.find(closing, begin := begin + len(opening))) >= 0:
        inside = text[begin:end]
        start = end - len(inside.lstrip())
        yield start, max(start, begin + len(inside.rstrip()))
        begin = text.find(opening, end + len(closing))


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
        return reading(answer_part(text, cot=cot) or None)


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

    def _passages(self, text: str) -> dict[str, str]:
        passages: dict[str, str] = {}
        for line in map(str.strip, text.split("\n")):
            for question, (exact, loose) in self._patterns.items():
                # the loose pattern matches where the exact one does
                if question not in passages and (match := loose.search(line)):
                    passages[question] = (exact.search(line) or match)[1].strip()
                    break
        return {question: passages[question] for question in self._patterns if question in passages}

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The passages in the order of the questions; each must be there."""
        passages = self._passages(fold(text))
        if len(passages) < len(self.questions):
            raise GoldError(
                f"expected a line '{self.prefix} <question>: <...>;' for: {', '.join(self.questions)}"
            )
        return list(passages.values())

    def mentions(self, gold: list[str]) -> list[str]:
        return gold

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The passages, empty where there is none; valid only if none is missing."""
        passages = self._passages(answer_part(text, cot=cot))
        answer = [passages.get(question, "") for question in self._patterns]
        return Reading(answer, len(passages) == len(self.questions))


@lru_cache(maxsize=4)
def _result(marker: str | None) -> re.Pattern[str]:
    words, blank = "result" if marker is None else f"result|{re.escape(marker)}", r"[^\S\n]*"
    before = rf"^{blank}(?:[*_#]+{blank})?"
    return re.compile(rf"{before}(?:{words})[*_]*{blank}[:：][*_]*", re.IGNORECASE | re.MULTILINE)


class FreeText(AnswerFormat):
    """Any text."""

    kind: Literal["free_text"]
    #: the field that answers are compared with, where that is not the task's target. A benchmark without gold
    #: answers has no target, and HELM compares with the input.
    reference: str | None = None
    #: a word besides `Result` with which the answer begins under chain-of-thought.
    marker: str | None = Field(default=None, min_length=1)
    #: the answer is what stands in the last tag of this name; a reply without one holds none.
    tag: Annotated[str, StringConstraints(pattern=r"^\w+$")] | None = None

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        gold = (str(row[self.reference]) if self.reference else text).strip()
        if self.tag and (spans := [*tagged(gold, self.tag)]):
            gold = gold[slice(*spans[-1])]
        if not gold:
            raise GoldError("empty reference")
        return gold

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """Under chain-of-thought the answer is what follows the first line that begins with `Result:` or the
        marker. Later ones may be lines of the answer, since notes have results, too.
        """
        if self.tag:
            begin, end = max(tagged(text, self.tag), default=(0, 0))
            return reading(text[begin:end].strip() or None)
        answer = without_reasoning(text)
        result = _result(self.marker).search(answer) if cot else None
        return reading(answer[result.end() if result else 0 :].strip() or None)
