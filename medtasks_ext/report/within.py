"""One model asked in several ways: strategies and wordings in pairs, suite by suite.

The numbers are those of `medtasks compare` on the same runs. A model's pairs of all suites are one family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.changes import Shared, mean_change, shared_scores
from medtasks_ext.results.ways import Pair, Question, prompt_pairs, strategy_pairs
from medtasks_ext.stats.comparison import benjamini_hochberg, holm

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.stats.comparison import Comparison
    from medtasks_ext.stats.statistic import Array


@dataclass(frozen=True)
class Within:
    """Two ways to ask one model, on the tasks of a suite that it has scores of in both."""

    pair: str  # the two in short, as `medtasks compare` names them
    before: str  # label of the first way
    after: str  # of the second
    question: Question  # strategies or prompts
    suite: str  # its id
    sample: bool  # whether the rows are synthetic
    tasks: int  # how many
    score_before: float  # mean score of the first way
    score_after: float  # of the second
    comparison: Comparison  # second minus first, document by document
    p_holm: float = 1.0  # adjusted by Holm, over all suites and pairs of the model
    p_bh: float = 1.0  # adjusted by Benjamini and Hochberg


def within_models(entries: Sequence[Entry], draws: Mapping[int, Array], tasks: Registry) -> list[Within]:
    """The pairs of every model.

    Args:
        draws: `id` of an experiment -> its score on each resample.
    """
    suites = [group for group in groups_of(tasks) if group.axis == "suite"]
    found: list[Within] = []
    by_model: dict[tuple[str, bool], list[Entry]] = {}
    for entry in entries:
        by_model.setdefault((entry.model, entry.sample), []).append(entry)
    for own in by_model.values():
        pairs = [pair for entry in own for pair in strategy_pairs(entry)] + prompt_pairs(own)
        found += _adjusted([line for pair in pairs for line in _lines(pair, draws, suites)])
    return found


def _lines(pair: Pair, draws: Mapping[int, Array], suites: Sequence[Group]) -> Iterator[Within]:
    shared: dict[str, dict[str, Shared]] = {}
    for name, one in pair.before.experiments.items():
        other = pair.after.experiments.get(name)
        if other is None or not one.dataset.metadata.grouped:
            continue
        scores = shared_scores(one, other, draws.get(id(one)), draws.get(id(other)))
        if scores is not None:
            strategy = "" if pair.question == "strategies" else one.strategy
            shared.setdefault(strategy, {})[one.dataset.id] = scores
    for strategy, by_dataset in shared.items():
        for suite in suites:
            parts = [[by_dataset[name] for name in part if name in by_dataset] for part in suite.parts]
            parts = [part for part in parts if part]
            if not parts:
                continue
            change = mean_change(parts)
            after = sum(sum(item.after for item in part) / len(part) for part in parts) / len(parts)
            named = f", {strategy_title(strategy)}" if strategy else ""
            yield Within(
                pair.words + named,
                pair.before.label + named,
                pair.after.label + named,
                pair.question,
                suite.value,
                pair.before.sample,
                sum(map(len, parts)),
                after - change.difference,
                after,
                change,
            )


def _adjusted(lines: Sequence[Within]) -> list[Within]:
    raw = [line.comparison.p_value for line in lines]
    adjusted = zip(lines, holm(raw), benjamini_hochberg(raw), strict=True)
    return [replace(line, p_holm=float(one), p_bh=float(other)) for line, one, other in adjusted]
