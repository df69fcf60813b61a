"""All entries of a suite and strategy against each other, on the tasks that all of them share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.report.groups import groups_of
from medtasks_ext.results.comparison import EQUAL, Pairs, all_pairs
from medtasks_ext.results.multiplicity import adjust_pairs, benjamini_hochberg, holm
from medtasks_ext.results.ranking import Ranking, ranking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from medtasks_ext.metrics.statistic import Array
    from medtasks_ext.registry import Registry
    from medtasks_ext.report.groups import Group
    from medtasks_ext.results.experiments import Entry, Experiment


@dataclass(frozen=True)
class Compared:
    """One suite, one strategy, synthetic rows or real ones.

    Attributes:
        entries: places in the report; first the `tested` ones, published ones last.
        tested: how many of them have a score on each resample, and are compared by it.
        datasets: ids behind the figures, which all of these entries have.
        pairs: differences, intervals and p-values of the tested ones; None for fewer than two.
        p_holm: (tested, tested) adjusted by Holm.
        p_bh: (tested, tested) adjusted by Benjamini and Hochberg.
        ranking: ranks of the tested ones.
        wins: (entries, entries) share of the tasks that the row wins against the column, ties half.
        left_out: places of entries that share too few tasks with the others.
        unlike: datasets that were left out since their rows or versions differ between entries.
    """

    suite: str
    strategy: str
    sample: bool
    entries: list[int]
    tested: int
    datasets: list[str]
    pairs: Pairs | None
    p_holm: Array | None
    p_bh: Array | None
    ranking: Ranking | None
    wins: Array
    left_out: list[int]
    unlike: list[str]


def compared(
    entries: Sequence[Entry],
    draws: Sequence[Mapping[str, Array]],
    tasks: Registry,
    strategies: Sequence[str],
) -> list[Compared]:
    """The comparisons of a report: for each suite and strategy in which at least two entries have scores.

    Entries whose rows or task version differ for a task are not compared on it; prompts may differ, which is
    a comparison that one may want.

    Args:
        entries: of the report.
        draws: for each entry, task -> its score on each resample.
        tasks: the registry.
        strategies: of the report.
    """
    suites = [group for group in groups_of(tasks) if group.axis == "suite"]
    return [
        found
        for suite in suites
        for strategy in strategies
        for sample in (False, True)
        for found in _compared(entries, draws, suite, strategy, sample)
    ]


def _compared(
    entries: Sequence[Entry], draws: Sequence[Mapping[str, Array]], suite: Group, strategy: str, sample: bool
) -> Iterator[Compared]:
    scored = {
        place: found
        for place, entry in enumerate(entries)
        if entry.sample is sample and (found := _scored(entry, suite, strategy))
    }
    own = {place: found for place, found in scored.items() if entries[place].kind != "published"}
    if not own or len(scored) < 2:
        return
    chosen, left_out = _with_tasks_in_common(own)
    common = [name for name in suite.datasets if all(name in scored[place] for place in chosen)]
    unlike = [name for name in common if not _same(entries, chosen, scored, name)]
    datasets = [name for name in common if name not in unlike]
    if not datasets:
        return
    published = [
        place for place, found in scored.items() if place not in own and all(name in found for name in datasets)
    ]
    tested = [
        place for place in chosen if all(scored[place][name].task in draws[place] for name in datasets)
    ]
    order = [*tested, *(place for place in chosen if place not in tested), *published]
    if len(order) < 2:
        return
    by_task = np.array([[scored[place][name].score for name in datasets] for place in order], dtype=float)
    weights = suite.weights(datasets)
    weight = np.array([weights.get(name, 0.0) for name in datasets])
    pairs = p_holm = p_bh = places = None
    if len(tested) > 1:
        means = by_task[: len(tested)] @ weight
        resampled = np.stack(
            [weight @ [draws[place][scored[place][name].task] for name in datasets] for place in tested]
        )
        pairs, places = all_pairs(means, resampled), ranking(means, resampled)
        p_holm, p_bh = (adjust_pairs(pairs.p_value, adjust) for adjust in (holm, benjamini_hochberg))
    yield Compared(
        suite.value,
        strategy,
        sample,
        order,
        len(tested),
        datasets,
        pairs,
        p_holm,
        p_bh,
        places,
        _wins(by_task),
        left_out,
        unlike,
    )


def _scored(entry: Entry, suite: Group, strategy: str) -> dict[str, Experiment]:
    members = set(suite.datasets)
    return {
        item.dataset.id: item
        for item in entry.experiments.values()
        if item.strategy == strategy and item.score is not None and item.dataset.id in members
    }


def _with_tasks_in_common(own: Mapping[int, Mapping[str, Experiment]]) -> tuple[list[int], list[int]]:
    """Entries that share a task, and those left out for it: the ones with the rarest tasks first."""
    chosen, left_out = list(own), list[int]()
    while len(chosen) > 1 and not set.intersection(*(set(own[place]) for place in chosen)):
        held = Counter(name for place in chosen for name in own[place])
        least = min(chosen, key=lambda place: (max(held[name] for name in own[place]), len(own[place])))
        chosen.remove(least)
        left_out.append(least)
    return chosen, left_out


def _wins(scores: Array) -> Array:
    """(entries, entries) from (entries, tasks)."""
    lead = scores[:, None, :] - scores[None, :, :]
    return ((lead > EQUAL) + (np.abs(lead) <= EQUAL) / 2).mean(axis=2)


# ---------------------------------------------------------------------- the same documents


def _same(
    entries: Sequence[Entry], chosen: Sequence[int], scored: Mapping[int, Mapping[str, Experiment]], name: str
) -> bool:
    """Whether all these entries were asked the same documents of a dataset, in versions that compare."""
    items = [scored[place][name] for place in chosen]
    if len({(item.settings["version"], item.settings["rows"], item.n) for item in items}) > 1:
        return False
    some = [entries[place].settings.get("documents", "all") for place in chosen]
    return set(some) <= {"all"} or len(items) == 1 or len({_documents(item) for item in items}) == 1


def _documents(item: Experiment) -> tuple[str, ...] | int:
    """Keys of its documents; something that equals no other where they cannot be read."""
    try:
        return tuple(item.read_documents().documents) if item.read_documents else id(item)
    except MedtasksError:
        return id(item)
