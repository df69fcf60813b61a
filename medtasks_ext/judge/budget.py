"""What judging costs: estimates before, and what earlier calls have spent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks_ext.engines.budget import most_tokens
from medtasks_ext.judge.engine import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from medtasks_ext.engines.records import Usage
    from medtasks_ext.judge.jury import Judge, Jury
    from medtasks_ext.judge.store import JudgementStore


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


def paid(jury: Jury, stores: Iterable[JudgementStore]) -> tuple[list[float | None], float]:
    """What earlier calls spent, for `budget_of`; the jury's prices hold for replies without a cost."""
    judges = {judge.name: judge for judge in jury.models}
    costs, unsure = list[float | None](), 0.0
    for store in stores:
        unsure += store.unsure
        for (_, name), replies in store.replies.items():
            for reply in replies:
                cost, judge = reply.cost, judges.get(name)
                if cost is None and judge is not None and reply.usage is not None:
                    cost = judge.spent(reply.usage)
                costs.append(cost)
    return costs, unsure
