"""How far the score of a submitted result is trusted: what a check found, never what somebody says.

What the level says of answers, `results.confirmed` says of rows and words: a rank among published results
needs both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Trust(str, Enum):
    """The levels, from the lowest on."""

    SELF = "self-reported"
    ANSWERS = "answers checked"
    SITE = "confirmed by a second site"
    AGAIN = "run again"

    @property
    def place(self) -> int:
        """Its place among the levels, from 0."""
        return list(Trust).index(self)


@dataclass(frozen=True)
class Verdict:
    """What a check found of one result.

    Attributes:
        trust: the level.
        why: why it is no higher one, in words; empty where nobody asks.
        judged: the score follows from judges' verdicts, which stand as they were submitted.
        at_odds: the answers say otherwise than the record.
    """

    trust: Trust
    why: str = ""
    judged: bool = False
    at_odds: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether somebody else than the submitter has seen that the score follows.

        Checked answers do not prove what judges said of them.
        """
        least = Trust.SITE if self.judged else Trust.ANSWERS
        return self.trust.place >= least.place

    @property
    def words(self) -> str:
        """The level, and whether the verdicts of judges are the submitter's."""
        as_submitted = self.judged and self.trust is Trust.ANSWERS
        return f"{self.trust.value}, verdicts as submitted" if as_submitted else self.trust.value


def self_reported(why: str, *, at_odds: bool = False) -> Verdict:
    """The lowest level, and why it is no more."""
    return Verdict(Trust.SELF, why, at_odds=at_odds)


def levels_words(verdicts: Iterable[Verdict]) -> str:
    """How many results have which level: `answers checked in 2 of 5 tasks, self-reported in 3`."""
    found = Counter(item.words for item in sorted(verdicts, key=lambda item: -item.trust.place))
    of = sum(found.values())
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(
        f"{words} in {n}{f' of {of} tasks' if first == 0 else ''}"
        for first, (words, n) in enumerate(found.items())
    )
