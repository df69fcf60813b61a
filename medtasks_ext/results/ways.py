"""One model asked in several ways: which of its results answer "did that help?", document by document.

Strategies, numbers of examples and wordings of one model are tested in pairs. Juries are not: two juries that
rate the same answers otherwise say something of themselves, and nothing of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Literal

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import strategy_order, strategy_title
from medtasks_ext.results.conditions import moving

if TYPE_CHECKING:
    from medtasks_ext.results.experiments import Entry

#: entries: two that somebody set side by side. strategies, prompts: one model asked in two ways.
Question = Literal["entries", "strategies", "prompts"]
#: Conditions that are the wording of a prompt.
_OF_PROMPTS = frozenset({"wording", "examples in the prompt", "examples as turns"})


@dataclass(frozen=True)
class Pair:
    before: Entry  # the first; of strategies under the names of zero-shot tasks
    after: Entry  # the second
    question: Question  # what the comparison answers
    words: str  # the two in short


def pairs_to_compare(entries: Sequence[Entry]) -> list[Pair]:
    """Two entries; or all pairs of strategies of one.

    Two entries of one model that were asked with unlike strategies alone are compared by these.
    """
    if len(entries) == 1 and (pairs := _of_ways(combinations(_by_strategy(entries[0]).items(), 2))):
        return pairs
    if len(entries) != 2:
        names = "; ".join(entry.label for entry in entries) or "none"
        same = " (the runs hold the same results of one strategy)" if len(entries) == 1 else ""
        what = f"two entries are compared; here are {len(entries)}: {names}{same}"
        remedy = "name one run of each of the two, or one run with several strategies"
        raise MedtasksError(what, remedy=remedy)
    first, second = entries
    if first.sample != second.sample:
        what = "one of the two was run on synthetic sample rows, which are never set beside real ones"
        raise MedtasksError(what, remedy="compare runs on the same rows")
    both = first.experiments.keys() & second.experiments.keys()
    if first.model == second.model and not both:
        return _of_ways(product(_by_strategy(first).items(), _by_strategy(second).items()))
    unlike = {
        item.condition
        for name in both
        for item in moving(first.experiments[name].facts, second.experiments[name].facts)
    }
    in_other_words = first.model == second.model and bool(unlike) and unlike <= _OF_PROMPTS
    question: Question = "prompts" if in_other_words else "entries"
    return [Pair(first, second, question, f"{first.label} → {second.label}")]


def _of_ways(ways: Iterable[tuple[tuple[str, Entry], tuple[str, Entry]]]) -> list[Pair]:
    return [
        Pair(before, after, "strategies", f"{strategy_title(one)} → {strategy_title(other)}")
        for (one, before), (other, after) in ways
        if before.experiments.keys() & after.experiments.keys()
    ]


def _by_strategy(entry: Entry) -> dict[str, Entry]:
    strategies = sorted({item.strategy for item in entry.experiments.values()}, key=strategy_order)
    return {
        strategy: entry.part(
            {item.dataset.id: item for item in entry.experiments.values() if item.strategy == strategy},
            f"{entry.label}, {strategy_title(strategy)}",
        )
        for strategy in strategies
    }
