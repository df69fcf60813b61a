"""Tasks of a plan that are asked in turn: what their prompts share of a record counts once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from medtasks_ext.prompts.counting import shared_characters
from medtasks_ext.runner.chat import Counter
from medtasks_ext.runner.plan import CountedTask
from medtasks_ext.runner.turns import LONG


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
