"""Lists of drugs after `Final Answer:` (ClinicBench's treatment recommendation)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import after_result, strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.lists import items_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARKER = re.compile(r"\bfinal[^\S\n]{1,9}answer[*_]*[^\S\n]*[:：]", re.IGNORECASE)
_LIST_END = re.compile(r"[\n;；•▪●◦]")
# a bullet or number before an item; a number within a line needs a full stop, since brands end in `13)`
_BULLET = re.compile(r"^\s*(?:[-*+–—·]\s+|\(?\d{1,3}[.)]\s+)+")
_INLINE_NUMBER = re.compile(r"\s\d{1,2}\.\s+(?=\w)")
_COMMA = re.compile(r"[，、]|,(?!\d)|(?<!\d),")  # none within 1,000
# a drug's reason: ` - for pain`, `: an antibiotic`
_EXPLAINED = re.compile(r"(?:\*{0,2}\s*[:：]\s|\s+[-–—]\s).*", re.DOTALL)
_WORD = re.compile(r"\w")
_NO_DRUG = re.compile(r"\W*(?:i|we|there|it|this|as an ai)\b.*\.\s*\Z", re.IGNORECASE | re.DOTALL)


class DrugList(AnswerFormat):
    """Names of drugs, separated by line breaks, commas, semicolons, bullets or numbers.

    What follows the last `Final Answer:` is read, without that mark the whole reply (under
    chain-of-thought what follows the last `Result:`). The answer is a list of items, each the list of
    its pieces between commas: some names hold commas, which only the gold list can tell.
    """

    kind: Literal["drug_list"]
    released: ClassVar[Literal["always", "direct", "never"]] = "direct"

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The gold drugs, one on each line after `Final Answer:`.

        Raises:
            GoldError: there is none.
        """
        drugs = [line.strip() for line in _after_marker(text).split("\n") if _WORD.search(line)]
        if not drugs:
            raise GoldError("no drug is listed")
        return drugs

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The items of the list; a reply without a word in it is invalid."""
        reply = strip_reasoning(text)
        if cot and not _MARKER.search(reply):
            reply = after_result(reply)
        items = [
            pieces_of(line)
            for part in _LIST_END.split(_after_marker(reply))
            if part
            for line in _numbered(part)
        ]
        items = [pieces for pieces in items if pieces]
        return Reading(items, True) if items else Reading(None, False)

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The items of a list in any form; what stands behind a dash or colon explains an item."""
        found = items_of(text, reply_of(text))
        parts = [
            part
            for item in found.items
            if not _NO_DRUG.match(item)
            for part in _LIST_END.split(_EXPLAINED.sub("", item).strip("*_ "))
            if part
        ]
        items = [pieces for part in parts for line in _numbered(part) if (pieces := pieces_of(line))]
        why = "a list" if items else "no list was found"
        return {
            "gold": document.get("gold"),
            "answer": items or None,
            "span": found.span if items else None,
            "why": why,
        }


def _after_marker(text: str) -> str:
    markers = list(_MARKER.finditer(text))
    return text[markers[-1].end() :] if markers else text


def _numbered(line: str) -> list[str]:
    return _INLINE_NUMBER.split(_BULLET.sub("", line, count=1))


def pieces_of(item: str) -> list[str]:
    """What stands between the commas of a text."""
    return [piece.strip() for piece in _COMMA.split(item) if _WORD.search(piece)]
