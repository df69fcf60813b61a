"""BRIDGE classification answers: one label, a list of labels, a list of codes.

Patterns, their order and their missing word boundaries are those of the official scorer
(BRIDGE, `dataset/classification.py`), because a score is comparable only with the same reading.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import regex  # the official scorer's engine: its \\b and \\w differ from those of `re` on some characters

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Lead, OfLabels, Reading
from medtasks_ext.answers.normalise import answer_part, fold, part_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: Characters of a piece from which on each character of the labels is looked up before the labels are.
_LONG = 1_000
#: small letters that the official search, which ignores case, takes for the same
SAME_LETTERS = (
    "sſ", "µμ", "\u0345ι\u1fbe", "ΐ\u1fd3", "ΰ\u1fe3", "βϐ", "εϵ", "θϑ", "κϰ", "πϖ", "ρϱ", "ςσ", "φϕ",
    "в\u1c80", "д\u1c81", "о\u1c82", "с\u1c83", "т\u1c84\u1c85", "ъ\u1c86", "ѣ\u1c87", "\u1c88ꙋ", "ṡẛ",
    "\ufb05\ufb06",
)  # fmt: skip
_SAME_AS = {letter: group for group in SAME_LETTERS for letter in group}
#: places at which a label begins that are looked at one by one before the official search takes over
_MOST_PLACES = 1_000


class _Prefixed(AnswerFormat):
    prefix: str

    @cached_property
    def _prefix(self) -> str:
        escaped: str = regex.escape(fold(self.prefix))
        return escaped


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
    def _patterns(self) -> tuple[regex.Pattern[str], ...]:
        labels = [fold(label) for label in self.labels]
        if self.longest_first:
            labels.sort(key=len, reverse=True)
        anyof = "|".join(map(regex.escape, labels))
        steps = {
            "three_step": (rf"{self._prefix}: ({anyof})", rf"{self._prefix}:?\s*({anyof})"),
            "two_step": (rf"{self._prefix}:\s*({anyof})",),
        }[self.pattern_set]
        return tuple(regex.compile(step, regex.IGNORECASE) for step in (*steps, rf"\b({anyof})\b"))

    @cached_property
    def _place(self) -> re.Pattern[str]:
        """Where the last pattern may match: wherever that does, and at a few places more."""
        ends = (
            "".join(
                f"[{re.escape(_SAME_AS[letter])}]" if letter in _SAME_AS else re.escape(letter)
                for letter in label[1:]
            )
            + ("(?![0-9a-z_])" if regex.match(r"\w", label[-1]) else "")
            for label in map(fold, self.labels)
        )
        firsts = (_SAME_AS.get(fold(label)[0], fold(label)[0]) for label in self.labels)
        return _by_first((first, end) for same, end in zip(firsts, ends, strict=True) for first in same)

    def _alone(self, response: str) -> regex.Match[str] | None:
        """The first match of the last pattern, whose word boundaries are slow in texts without a label."""
        *_, pattern = self._patterns
        begin = 0
        for _ in range(_MOST_PLACES):
            place = self._place.search(response, begin)
            if place is None:
                return None
            if match := pattern.match(response, place.start()):
                return match
            begin = place.start() + 1
        return pattern.search(response, begin)

    @property
    def lead(self) -> Lead:
        """The prefix."""
        return Lead(f"{self.prefix}:")

    def possible(self, document: Mapping[str, Any]) -> list[str] | None:
        """The labels; None where the prompt asks for a list of them."""
        return None if self.several else list(self.labels)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> str:
        """The label, lower-cased; gold is read with the first pattern only."""
        match = self._patterns[0].search(fold(text))
        if not match:
            raise GoldError(f"expected the line '{self.prefix}: <one of {len(self.labels)} labels>'")
        label: str = match[1].lower()
        return label

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The label of the first pattern that matches anywhere."""
        response = answer_part(text, cot=cot)
        for search in (*(pattern.search for pattern in self._patterns[:-1]), self._alone):
            if match := search(response):
                span = part_span(text, response, *match.span(1))
                return Reading(match[1].lower(), True, span, "the suite's pattern")
        return Reading(None, False)


class _List(_Prefixed):
    pattern_set: Literal["list_three_step", "list_two_step", "list_whole_line"] = "list_three_step"
    has_label_pool: ClassVar[bool] = True

    @cached_property
    def _patterns(self) -> tuple[regex.Pattern[str], ...]:
        exact, loose, bare = rf"{self._prefix}: (.+)", rf"{self._prefix}:?\s*(.+)", r"\b(.+)\b"
        steps = {
            "list_three_step": (exact, loose, bare),
            "list_two_step": (exact, bare),
            "list_whole_line": (exact, loose, r"(.+)"),
        }[self.pattern_set]
        return tuple(regex.compile(step, regex.IGNORECASE) for step in steps)

    def _line(self, text: str) -> str:
        """What the first pattern that matches takes for the list; the whole text if none does."""
        matches = (pattern.search(text) for pattern in self._patterns)
        return next((match[1] for match in matches if match), text)

    def _predicted(self, text: str, *, cot: bool) -> set[str]:
        line = self._line(answer_part(text, cot=cot))
        pieces = _pieces(line)
        if '"' in line or "'" in line:
            return {piece.replace('"', "").replace("'", "") for piece in pieces}
        return pieces


def _by_first(parts: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    """Any of the words, by first characters: most places of a text are passed with one look.

    Args:
        parts: (first character, pattern of the others) of each word.
    """
    groups = groupby(sorted(parts), key=lambda part: part[0])
    return re.compile(
        "|".join(f"{re.escape(first)}(?:{'|'.join(end for _, end in same)})" for first, same in groups)
    )


def _pieces(line: str) -> set[str]:
    """What stands between commas."""
    return {piece.strip() for piece in set(line.split(","))}


class LabelList(OfLabels, _List):
    """Several labels of a closed list, separated by commas."""

    kind: Literal["label_list"]
    draws_invalid: ClassVar[bool] = True

    @cached_property
    def _known(self) -> list[str]:
        return sorted((fold(label) for label in self.labels), key=len, reverse=True)

    @cached_property
    def _any(self) -> re.Pattern[str]:
        known = set(self._known)
        shortest = [label for label in known if not any(other in label for other in known - {label})]
        return _by_first((label[0], re.escape(label[1:])) for label in shortest)

    @cached_property
    def _characters(self) -> set[str]:
        return set("".join(self._known))

    def _named(self, piece: str) -> str | None:
        """The first label that a piece contains."""
        known = self._known
        if len(piece) > _LONG:  # labels with a character that is not there are passed
            missing = {character for character in self._characters if character not in piece}
            known = [label for label in known if missing.isdisjoint(label)]
        elif not self._any.search(piece):
            return None
        return next((label for label in known if label in piece), None)

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """The known labels of the line, sorted; a line without any is an error."""
        known = sorted(_pieces(self._line(fold(text))) & set(self._known))
        if not known:
            raise GoldError(f"no known label in the line '{self.prefix}: ...'")
        return known

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """For each comma piece the first (longest) label that it contains; none at all is invalid."""
        named = {label for piece in self._predicted(text, cot=cot) if (label := self._named(piece))}
        return Reading(sorted(named), True) if named else Reading(None, False)


class CodeList(_List):
    """Codes or terms of an open list, separated by commas. The official rule never calls it invalid."""

    kind: Literal["code_list"]

    def read_gold(self, text: str, row: Mapping[str, Any]) -> list[str]:
        """Every piece of the line as it stands, sorted."""
        line = self._line(fold(text))
        if not line.strip():
            raise GoldError(f"no code in the line '{self.prefix}: ...'")
        return sorted(_pieces(line))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """Every piece of the line as it stands; an empty response gives one empty piece."""
        return Reading(sorted(self._predicted(text, cot=cot)), True)
