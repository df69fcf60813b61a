"""What judging a task's answers cost, and what it costs at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Fault
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.results.prices import JudgePrice
    from medtasks_ext.runs.outcomes import Judgement


@dataclass(frozen=True)
class JudgingCost:
    usd: float | None = None  # at the prices of the time; None where no reply had one
    unsure: float = 0.0  # US dollars at most of requests whose reply never came
    replies: int = 0
    unpriced: int = 0  # replies of judges without a price
    #: replies whose tokens nobody counted believably; they count at the highest cost that they can have
    estimated: int = 0

    @classmethod
    def of(cls, replies: Iterable[Judgement | Fault], unsure: float) -> JudgingCost:
        """`unsure`: US dollars at most of requests whose reply never came."""
        counted = list(replies)
        priced = [reply.cost for reply in counted if reply.cost is not None]
        return cls(
            usd=sum(priced) if priced else None,
            unsure=unsure,
            replies=len(counted),
            unpriced=len(counted) - len(priced),
            estimated=sum(
                reply.cost is not None and reply.usage is not None and not reply.usage.counted
                for reply in counted
            ),
        )

    def __add__(self, other: JudgingCost) -> JudgingCost:
        usd = [one for one in (self.usd, other.usd) if one is not None]
        return JudgingCost(
            sum(usd) if usd else None,
            self.unsure + other.unsure,
            self.replies + other.replies,
            self.unpriced + other.unpriced,
            self.estimated + other.estimated,
        )

    @property
    def whole(self) -> bool:
        return self.usd is not None and not self.unpriced

    def record(self) -> Json:
        return asdict(self)


def jury_cost_bound(
    judges: Sequence[JudgePrice], input_tokens: int, documents: int, answer_budget: int
) -> float:
    """Upper bound of judging answers by MedHELM's rule, in US dollars.

    Each judge reads the benchmark's input and a full answer, and fills its own reply budget; rubric and gold
    are not counted. The published jury costs follow from the published tokens by this rule.
    """
    read = input_tokens + documents * answer_budget
    return sum(judge.price.of(read, documents * judge.reply_budget) for judge in judges)
