"""One model asked in several ways: strategies and wordings in pairs, suite by suite.

The numbers are those of `medtasks compare` on the same runs. A model's pairs of all suites are one family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.changes import Shared, mean_change, shared_scores
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.ways import Pair, prompt_pairs, strategy_pairs
from medtasks_ext.stats.comparison import benjamini_hochberg, holm

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry
    from medtasks_ext.stats.statistic import Array


def within_models(entries: Sequence[Entry], draws: Mapping[int, Array], tasks: Registry) -> pa.Table:
    """The frame `within`: two ways to ask one model, on the tasks of a suite that it has in both.

    Args:
        draws: `id` of an experiment -> its score on each resample.
    """
    suites = [group for group in groups_of(tasks) if group.axis == "suite"]
    found: list[Json] = []
    by_model: dict[tuple[str, bool], list[Entry]] = {}
    for entry in entries:
        by_model.setdefault((entry.model, entry.sample), []).append(entry)
    for own in by_model.values():
        pairs = [pair for entry in own for pair in strategy_pairs(entry)] + prompt_pairs(own)
        lines = [line for pair in pairs for line in _lines(pair, draws, suites)]
        raw = [line["p_value"] for line in lines]
        adjusted = zip(lines, holm(raw), benjamini_hochberg(raw), strict=True)
        found += [{**line, "p_holm": one, "p_bh": other} for line, one, other in adjusted]
    return table_of("within", found)


def _lines(pair: Pair, draws: Mapping[int, Array], suites: Sequence[Group]) -> Iterator[Json]:
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
            yield {
                "pair": pair.words + named,
                **{"before": pair.before.label + named, "after": pair.after.label + named},
                **{"question": pair.question, "suite": suite.value, "sample": pair.before.sample},
                "tasks": sum(map(len, parts)),
                **{"score_before": after - change.difference, "score_after": after},
                **{"difference": change.difference, "p_value": change.p_value, "method": change.method},
                **{"low": change.interval.low, "high": change.interval.high},
            }
