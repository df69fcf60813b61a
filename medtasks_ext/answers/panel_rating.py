"""A value of a scale, scored by how many experts chose it (script concordance)."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, field_validator

from medtasks_ext.answers.formats import AnswerFormat, GoldError, Reading, Repaired
from medtasks_ext.answers.normalise import strip_reasoning
from medtasks_ext.answers.tolerant import reply_of
from medtasks_ext.answers.tolerant.numbers import read_value
from medtasks_ext.privacy import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters behind the marker in which the suite's reader looks for the value.
_WINDOW = 5
#: How far shares that were rounded may be from their whole.
_ROUNDED = 0.03
_MINUS = str.maketrans("−–‒﹣－", "-----")


class PanelRating(AnswerFormat):
    """One integer of a scale, such as -2 to +2, after a marker.

    The field that `votes` names has the experts' votes, a number per value, in the order of the scale:
    counts, or shares of the panel. The gold answer is what each value is worth: its votes over the most votes
    that any value has. The official reader takes the five characters behind the first marker, and joins what
    it finds there: `+1` is a value, `+1-2` is none.

    Attributes:
        values: of the scale, in order.
        votes: the field of a row that has the votes.
        marker: what the value follows.
    """

    kind: Literal["panel_rating"]
    values: list[int] = Field(min_length=2)
    votes: str
    marker: str = "Rating: "
    released: ClassVar[Literal["always", "direct", "never"]] = "always"

    @field_validator("values")
    @classmethod
    def _ordered(cls, values: list[int]) -> list[int]:
        if values != sorted(set(values)):
            raise ValueError("list each value once, in rising order")
        return values

    def read_gold(self, text: str, row: Mapping[str, Any]) -> dict[str, float]:
        """Value -> what it is worth; the target names one that is worth most."""
        votes = row.get(self.votes)
        if not isinstance(votes, list) or len(votes) != len(self.values):
            raise GoldError(f"{self.votes} has no list of {len(self.values)} votes: {excerpt(votes)}")
        for value, count in zip(self.values, votes, strict=True):
            if not _is_count(count):
                raise GoldError(f"{self.votes} of {value} are {excerpt(count)}, expected a number from 0 on")
        if not any(votes):
            raise GoldError(f"{self.votes} are all 0, expected experts who chose a value")
        if not all(count == int(count) for count in votes) and not _are_shares(votes):
            raise GoldError(
                f"{self.votes} are no whole numbers, expected counts, shares that add up to 1 or 100,"
                " or credits of which the highest is 1"
            )
        worth = {str(value): count / max(votes) for value, count in zip(self.values, votes, strict=True)}
        if worth.get(self._read(text, row, cot=False).answer) != 1:
            raise GoldError(f"{excerpt(text)} is not the value that most experts chose")
        return worth

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        spelled = [f"{value:+d}" if value else "0" for value in self.values]
        return re.compile("|".join(map(re.escape, sorted(spelled, key=len, reverse=True))))

    def _read(self, text: str, row: Mapping[str, Any], *, cot: bool) -> Reading:
        """The value behind the first marker of the reply."""
        reply = strip_reasoning(text)
        _, marker, rest = reply.partition(self.marker)
        found = list(self._pattern.finditer(rest[:_WINDOW])) if marker else []
        joined = "".join(match[0] for match in found)
        if not re.fullmatch(r"[+-]?\d{1,9}", joined) or int(joined) not in self.values:
            return Reading(None, False)
        place = len(text) - len(rest) + found[0].start()
        return Reading(str(int(joined)), True, (place, place + len(joined)), "behind the marker")

    def _read_repaired(self, text: str, document: Mapping[str, Any], *, cot: bool) -> Repaired:
        """The one value of the scale that the reply announces."""
        found = read_value(reply_of(text.translate(_MINUS)), "number")
        answer, why = None, found.why
        if found.answer is not None:
            number = float(found.answer)
            known = number.is_integer() and int(number) in self.values
            answer, why = (str(int(number)), found.why) if known else (None, "not on the scale")
        return {"gold": document.get("gold"), "answer": answer, "span": found.span, "why": why}

    def not_covered(self, golds: list[dict[str, float]]) -> list[str]:
        """Values that no row's experts preferred."""
        best = {value for gold in golds for value, worth in gold.items() if worth == 1}
        return [str(value) for value in self.values if str(value) not in best]


def _are_shares(votes: list[float]) -> bool:
    """Whether fractions are shares of the panel, or credits as the score has them: both say the same."""
    return max(votes) == 1 or any(math.isclose(sum(votes), whole, rel_tol=_ROUNDED) for whole in (1, 100))


def _is_count(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < math.inf
