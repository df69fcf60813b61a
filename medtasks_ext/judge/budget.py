"""What judging costs: estimates before, a limit while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.judge.client import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from medtasks_ext.judge.jury import Judge, Jury
    from medtasks_ext.judge.store import JudgementStore
    from medtasks_ext.runs.judgements import Usage


@dataclass(frozen=True)
class Estimate:
    """What is still to be asked of one judge."""

    judge: str
    requests: int  # to send
    prompt_tokens: int  # estimated
    completion_tokens: int  # at most
    cost: float | None  # USD at most, or None where no price is known
    batch_cost: float | None  # the same through the provider's batch interface, or None where none is known
    measured: bool  # whether prompt tokens follow from this judge's own counts so far


def estimate(judge: Judge, prompt_bytes: Iterable[int], so_far: Iterable[Usage]) -> Estimate:
    """Estimate from the sizes of the prompts.

    Bytes become tokens at the rate that the server has counted for this judge; before it has counted
    any, four bytes are taken for a token.
    """
    sizes, counted = list(prompt_bytes), [usage for usage in so_far if usage.counted and usage.prompt_bytes]
    rate = 1 / BYTES_PER_TOKEN
    if counted:
        rate = sum(item.prompt_tokens for item in counted) / sum(item.prompt_bytes for item in counted)
    prompt, completion = round(sum(sizes) * rate), len(sizes) * judge.max_tokens
    cost = judge.cost(prompt, completion) if judge.price is not None else None
    share = judge.batch_share
    batch_cost = None if cost is None or share is None else cost * share
    return Estimate(judge.name, len(sizes), prompt, completion, cost, batch_cost, bool(counted))


class Budget:
    """Money spent, money that requests under way may cost, and the limit on both.

    A request whose reply never arrived may have been charged, so its highest cost counts as spent.

    Args:
        limit: USD, or None.
        spent: USD that earlier calls spent.
        unsure: USD at most of their requests that were sent and whose reply never came.
        unpriced: their replies of judges without a price.
    """

    def __init__(
        self, limit: float | None = None, spent: float = 0.0, unsure: float = 0.0, unpriced: int = 0
    ) -> None:
        self.limit, self.spent, self.unsure, self.unpriced = limit, spent, unsure, unpriced
        self.exhausted = False
        self._reserved: list[float] = []
        self._freed = asyncio.Condition()

    async def reserve(self, amount: float) -> bool:
        """Set money aside for a request; False if the limit does not allow it, now or later."""
        if self.limit is None:
            return True
        async with self._freed:
            while self.spent + self.unsure + sum(self._reserved) + amount > self.limit:
                if not self._reserved or self.exhausted:
                    self.exhausted = True
                    self._freed.notify_all()
                    return False
                await self._freed.wait()
            self._reserved.append(amount)
            return True

    async def settle(self, reserved: float, *, spent: float | None = 0.0, unsure: float = 0.0) -> None:
        """Give back what was set aside, and count what the request did cost; None where nobody knows."""
        self.spent += spent or 0.0
        self.unpriced += spent is None
        self.unsure += unsure
        if self.limit is None:
            return
        async with self._freed:
            self._reserved.remove(reserved)
            self._freed.notify_all()


def highest_cost(judge: Judge, prompt_bytes: int) -> float:
    """USD that a request can cost at most: a token is at least a byte."""
    return judge.cost(prompt_bytes, judge.max_tokens)


def budget_of(limit: float | None, jury: Jury, stores: Iterable[JudgementStore]) -> Budget:
    """The budget of a call, with what earlier calls on the same folders spent.

    Args:
        limit: USD, or None.
        jury: whose prices hold for replies that were recorded without a cost.
    """
    judges = {judge.name: judge for judge in jury.models}
    spent = unsure = 0.0
    unpriced = 0
    for store in stores:
        unsure += store.unsure
        for (_, name), replies in store.usage.items():
            for usage in replies:
                judge = judges.get(name)
                cost = usage.cost
                if cost is None and judge is not None:
                    cost = judge.spent(usage)
                spent += cost or 0.0
                unpriced += cost is None
    return Budget(limit, spent, unsure, unpriced)
