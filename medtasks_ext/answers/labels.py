"""BRIDGE classification answers: one label, a list of labels, a list of codes.

Patterns, their order and their missing word boundaries are the official ones (`dataset/classification.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal

import regex  # the official scorer's engine: its \\b and \\w differ from those of `re` on some characters

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Lead, OfLabels, Reading, reading
from medtasks_ext.answers.text import answer_part, fold

#: `pattern_set` -> its patterns, of which the first that matches counts: P is the prefix, X the answer
_EXACT, _LOOSE, _BARE = "{P}: ({X})", r"{P}:?\s*({X})", r"\b({X})\b"
_PATTERNS = {
    "three_step": (_EXACT, _LOOSE, _BARE),
    "two_step": (r"{P}:\s*({X})", _BARE),
    "list_three_step": (_EXACT, _LOOSE, _BARE),
    "list_two_step": (_EXACT, _BARE),
    "list_whole_line": (_EXACT, _LOOSE, "({X})"),
}


class _Prefixed(AnswerFormat):
    prefix: str

    def _compiled(self, name: str, answer: str) -> list[regex.Pattern[str]]:
        prefix = regex.escape(fold(self.prefix))
        return [regex.compile(form.format(P=prefix, X=answer), regex.I) for form in _PATTERNS[name]]


class Label(OfLabels, _Prefixed):
    """One label after a prefix, as in `AIS: yes`.

    `three_step` tries `prefix: label`, then the prefix with a loose separator, then the bare
    label between word boundaries; `two_step` tries the first (any white space) and the last.
    Longer labels are tried before shorter ones, or, with `longest_first: false`, in written order.
    """

    kind: Literal["label"]
    pattern_set: Literal["three_step", "two_step"] = "three_step"
    longest_first: bool = True
    #: whether the prompt asks for a list, of which the official reading takes the first item.
    several: bool = False
    has_label_pool: ClassVar[bool] = True
    draws_invalid: ClassVar[bool] = True

    @cached_property
    def _patterns(self) -> list[regex.Pattern[str]]:
        labels = [fold(label) for label in self.labels]
        if self.longest_first:
            labels.sort(key=len, reverse=True)
        return self._compiled(self.pattern_set, "|".join(map(regex.escape, labels)))

    @property
    def lead(self) -> Lead:
        return Lead(f"{self.prefix}:")

    def possible(self, document: Mapping[str, Any]) -> list[str] | None:
        """The labels; None where the prompt asks for a list of them."""
        return None if self.several else list(self.labels)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        match = self._patterns[0].search(fold(text))
        if not match:
            raise GoldError(f"expected the line '{self.prefix}: <one of {len(self.labels)} labels>'")
        label: str = match[1].lower()
        return label

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        response = answer_part(text, cot=cot)
        for pattern in self._patterns:
            if match := pattern.search(response):
                begin, end = (len(text.rstrip()) - len(response) + place for place in match.span(1))
                # not where small letters are longer than capitals
                span = (begin, end) if begin >= 0 and "İ" not in text else None
                return reading(match[1].lower(), span, "the suite's pattern")
        return reading(None)


class _List(_Prefixed):
    pattern_set: Literal["list_three_step", "list_two_step", "list_whole_line"] = "list_three_step"
    has_label_pool: ClassVar[bool] = True

    @cached_property
    def _patterns(self) -> list[regex.Pattern[str]]:
        return self._compiled(self.pattern_set, ".+")

    def _line(self, text: str) -> str:
        matches = (pattern.search(text) for pattern in self._patterns)
        return next((match[1] for match in matches if match), text)

    def _predicted(self, text: str, *, cot: bool) -> set[str]:
        line = self._line(answer_part(text, cot=cot))
        pieces = _pieces(line)
        if '"' in line or "'" in line:
            return {piece.replace('"', "").replace("'", "") for piece in pieces}
        return pieces


def _pieces(line: str) -> set[str]:
    return {piece.strip() for piece in set(line.split(","))}


class LabelList(OfLabels, _List):
    """Several labels of a closed list, separated by commas."""

    kind: Literal["label_list"]
    draws_invalid: ClassVar[bool] = True

    @cached_property
    def _known(self) -> list[str]:
        return sorted((fold(label) for label in self.labels), key=len, reverse=True)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        known = sorted(_pieces(self._line(fold(text))) & set(self._known))
        if not known:
            raise GoldError(f"no known label in the line '{self.prefix}: ...'")
        return known

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        pieces = self._predicted(text, cot=cot)
        named = {next((label for label in self._known if label in piece), "") for piece in pieces} - {""}
        return reading(sorted(named) or None)


class CodeList(_List):
    """Codes or terms of an open list, separated by commas. The official rule never calls it invalid."""

    kind: Literal["code_list"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        line = self._line(fold(text))
        if not line.strip():
            raise GoldError(f"no code in the line '{self.prefix}: ...'")
        return sorted(_pieces(line))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        return reading(sorted(self._predicted(text, cot=cot)))
