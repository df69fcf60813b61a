"""The tokens of a plan that an engine does not read anew: what prompts begin with alike.

All prompts of a task begin with its instruction and examples. Prompts of two strategies that are asked in
turn about one record (see `turns`) begin with that record as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from medtasks_ext.runner.turns import LONG, shared_characters

if TYPE_CHECKING:
    from medtasks_ext.runner.chat import Counter
    from medtasks_ext.runner.plan import CountedTask


@dataclass(frozen=True)
class Cache:
    """What a cache keeps of the beginning of a prompt."""

    block: int = 16  # tokens that it keeps or drops together; vLLM's on GPUs
    least: int = 0  # tokens of a beginning that is kept at all

    def kept(self, tokens: float) -> int:
        """The tokens of a beginning that come from the cache."""
        whole = int(tokens // self.block) * self.block
        return whole if whole >= self.least else 0


#: Of vLLM.
ENGINES_CACHE = Cache()
#: What OpenAI says of its own; others differ.
PROVIDERS_CACHE = Cache(block=128, least=1024)


@dataclass(frozen=True)
class Beginning:
    """A prompt of a task and what it is about."""

    prompt: str
    record: str  # the longest text of the row that stands in it; empty where none is known


def opening(prompts: Sequence[str], count: Counter) -> int:
    """Tokens that all of these prompts begin with; 0 for a single one, of which nobody knows."""
    if len(prompts) < 2:
        return 0
    alike = shared_characters(min(prompts), max(prompts))  # the first and the last in order differ most
    return count([prompts[0][:alike]])[0]


def with_records_shared(counted: Sequence[CountedTask], count: Counter) -> list[CountedTask]:
    """The tasks, those that are asked about a record after another one with what they share of it."""
    first: dict[tuple[str, int], CountedTask] = {}
    for task in sorted(counted, key=lambda task: -task.budget):  # a run asks them in this order
        first.setdefault((task.dataset, task.n_shots), task)
    return [
        task
        if (leader := first[task.dataset, task.n_shots]) is task
        else replace(task, shared=_shared(leader, task, count))
        for task in counted
    ]


def _shared(leader: CountedTask, task: CountedTask, count: Counter) -> float:
    """Tokens that prompts about the same document begin with, on average; 0 where a run asks them apart."""
    pairs = list(zip(leader.beginnings, task.beginnings, strict=False))
    if not pairs:
        return 0.0
    sizes = [shared_characters(one.prompt, other.prompt) for one, other in pairs]
    alike = [one.prompt[:size] for (one, _), size in zip(pairs, sizes, strict=True)]
    tokens = fmean(count(alike))
    per_token = fmean(sizes) / tokens if tokens else 0.0
    if all(other.record and other.record in text for (_, other), text in zip(pairs, alike, strict=True)):
        tokens += task.longer  # all of a record is shared, however long it is
    return tokens if (tokens - task.opening) * per_token >= LONG else 0.0
