"""What judging a task's answers cost, and what it costs at most."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks_ext.run.charge import most_tokens

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Usage
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.judge.jury import Judge
    from medtasks_ext.results.prices import JudgePrice

#: Bytes per token where a server does not count: English and Chinese text come close to it.
BYTES_PER_TOKEN = 4


class Reply(NamedTuple):
    """What a reply took."""

    usage: Usage
    cost: float | None  # US dollars, at the price of the jury file at the time; None where it had none


@dataclass(frozen=True)
class JudgingCost:
    usd: float | None = None  # at the prices of the time; None where no reply had one
    unsure: float = 0.0  # US dollars at most of requests whose reply never came
    replies: int = 0
    unpriced: int = 0  # replies of judges without a price
    #: replies whose tokens nobody counted believably; they count at the highest cost that they can have
    estimated: int = 0

    @classmethod
    def of(cls, replies: Iterable[Reply], unsure: float) -> JudgingCost:
        """`unsure`: US dollars at most of requests whose reply never came."""
        counted = list(replies)
        priced = [reply.cost for reply in counted if reply.cost is not None]
        return cls(
            usd=sum(priced) if priced else None,
            unsure=unsure,
            replies=len(counted),
            unpriced=len(counted) - len(priced),
            estimated=sum(reply.cost is not None and not reply.usage.counted for reply in counted),
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


@dataclass(frozen=True)
class CostEstimate:
    judge: str
    requests: int  # to send
    prompt_tokens: int  # estimated
    completion_tokens: int  # at most
    cost: float | None  # USD at most, or None where no price is known
    measured: bool  # whether prompt tokens follow from this judge's own counts so far


def estimate(judge: Judge, prompt_bytes: Iterable[int], so_far: Iterable[Usage]) -> CostEstimate:
    """Estimate from the sizes of the prompts.

    Bytes become tokens at the rate that the server has counted for this judge; before it has counted
    any, four bytes are taken for a token.
    """
    sizes, counted = list(prompt_bytes), [usage for usage in so_far if usage.counted and usage.prompt_bytes]
    rate = 1 / BYTES_PER_TOKEN
    if counted:
        rate = sum(item.prompt for item in counted) / sum(item.prompt_bytes or 0 for item in counted)
    prompt, completion = round(sum(sizes) * rate), len(sizes) * judge.max_tokens
    cost = judge.cost(prompt, completion) if judge.price is not None else None
    return CostEstimate(judge.name, len(sizes), prompt, completion, cost, bool(counted))


def highest_cost(judge: Judge, messages: list[dict[str, str]], schema: Mapping[str, Any]) -> float:
    """The schema of the verdict is counted, too."""
    return judge.cost(most_tokens(messages) + len(json.dumps(schema)), judge.max_tokens)
