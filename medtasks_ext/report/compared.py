"""All entries of a suite and strategy against each other, on the tasks that all of them share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.results.changes import document_test_of
from medtasks_ext.results.conditions import Facts, comparable
from medtasks_ext.results.frames import table, table_of
from medtasks_ext.stats.comparison import (
    Pairs,
    Ranking,
    agreed,
    all_pairs,
    benjamini_hochberg,
    holm,
    least_half,
    ranking,
    win_shares,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array


@dataclass
class Compared:
    suite: str
    strategy: str
    sample: bool
    entries: list[int]  # places in the report; first the `tested` ones, published ones last
    tested: int  # how many of them have a score on each resample, and are compared by it
    datasets: list[str]  # ids behind the figures, which all of these entries have
    wins: Array  # (entries, entries) share of the tasks that the row wins against the column, ties half
    left_out: list[int]  # places of entries without which more can be compared: they share too few tasks
    unlike: list[str]  # datasets that were left out since entries were asked them otherwise
    pairs: Pairs | None = None  # differences, intervals and p-values of the tested ones, of two or more
    ranking: Ranking | None = None  # ranks of the tested ones
    p_holm: Array | None = None  # (tested, tested) adjusted by Holm, over all suites and strategies
    p_bh: Array | None = None  # (tested, tested) adjusted by Benjamini and Hochberg


def compared(
    entries: Sequence[Entry],
    draws: Mapping[int, Array],
    tasks: Registry,
    strategies: Sequence[str],
) -> list[Compared]:
    """In each, two entries have scores of tasks asked alike; `draws` is by `id` of an experiment."""
    scored = _scored(entries, tasks)
    comparisons = [
        item
        for sample in (False, True)
        for suite in groups_of(tasks)
        if suite.axis == "suite" and suite.parts
        for strategy in strategies
        for item in _compared(entries, draws, suite, strategy, sample, scored)
    ]
    for sample in (False, True):
        _adjust([item for item in comparisons if item.sample is sample])
    return comparisons


def _adjust(comparisons: Sequence[Compared]) -> None:
    """Set p-values adjusted for all pairs of all suites and strategies: one family, as `compare` has it."""
    tested = [(item, item.pairs.p_value) for item in comparisons if item.pairs is not None]
    raw = [matrix[np.triu_indices(len(matrix), 1)] for _, matrix in tested]
    if not raw:
        return
    ends = np.cumsum([len(part) for part in raw])[:-1]
    adjusted = [np.split(adjust(np.concatenate(raw)), ends) for adjust in (holm, benjamini_hochberg)]
    for (item, matrix), by_holm, by_bh in zip(tested, *adjusted, strict=True):
        item.p_holm, item.p_bh = _with_upper(matrix, by_holm), _with_upper(matrix, by_bh)


def pair_frame(comparisons: Sequence[Compared], entries: Sequence[Entry]) -> pa.Table:
    """The frame `pairs`: a row per suite, strategy and two entries with scores of documents."""
    import pyarrow as pa

    parts = [table_of("pairs", ())]
    for item in comparisons:
        if item.pairs is None or item.p_holm is None or item.p_bh is None:
            continue
        first, second = np.triu_indices(item.tested, 1)
        labels = [entries[place].label for place in item.entries]
        matrices = {**vars(item.pairs), "p_holm": item.p_holm, "p_bh": item.p_bh, "wins": item.wins}
        shared = {"suite": item.suite, "strategy": item.strategy, "sample": item.sample}
        columns = {name: matrix[first, second] for name, matrix in matrices.items()}
        columns |= {name: [value] * len(first) for name, value in shared.items()}
        columns["entry"] = [labels[place] for place in first.tolist()]
        columns["minus"] = [labels[place] for place in second.tolist()]
        columns["tasks"] = [len(item.datasets)] * len(first)
        parts.append(table("pairs", columns))
    return pa.concat_tables(parts)


def _with_upper(matrix: Array, values: Array) -> Array:
    filled: Array = matrix.copy()
    place = np.triu_indices(len(matrix), 1)
    filled[place] = values
    filled.T[place] = values
    return filled


#: (suite, strategy, synthetic) -> entry -> dataset -> experiment, for those with a score
_Scored = dict[tuple[str, str, bool], dict[int, dict[str, "Experiment"]]]


def _scored(entries: Sequence[Entry], tasks: Registry) -> _Scored:
    scored: _Scored = {}
    for place, entry in enumerate(entries):
        for item in entry.experiments.values():
            if item.score is None or not item.dataset.metadata.grouped:
                continue
            for suite in tasks.suites_of(item.dataset):
                key = (suite.id, item.strategy, item.sample)
                scored.setdefault(key, {}).setdefault(place, {})[item.dataset.id] = item
    return scored


def _compared(
    entries: Sequence[Entry],
    draws: Mapping[int, Array],
    suite: Group,
    strategy: str,
    sample: bool,
    known: _Scored,
) -> Iterator[Compared]:
    scored = known.get((suite.value, strategy, sample), {})
    ways: dict[str, list[Facts]] = {}
    own = {
        place: {name: _asked(entries[place], item, ways.setdefault(name, [])) for name, item in found.items()}
        for place, found in scored.items()
        if entries[place].kind != "published"
    }
    if not own or len(scored) < 2:
        return
    chosen = _comparable(own)
    alike = set.intersection(*(set(own[place].items()) for place in chosen))
    of_suite = [name for name in suite.datasets if name in suite.counted]
    datasets = [name for name in of_suite if any(name == known for known, _ in alike)]
    unlike = [
        name for name in of_suite if name not in datasets and all(name in own[place] for place in chosen)
    ]
    if not datasets:
        return
    published = [
        place
        for place, found in scored.items()
        if place not in own and all(name in found for name in datasets)
    ]
    tested = [place for place in chosen if all(id(scored[place][name]) in draws for name in datasets)]
    order = [*tested, *(place for place in chosen if place not in tested), *published]
    if len(order) < 2:
        return
    by_task = np.array([[scored[place][name].score for name in datasets] for place in order], dtype=float)
    weights = suite.weights(frozenset(datasets))
    weight = np.array([weights.get(name, 0.0) for name in datasets])
    found = Compared(
        suite=suite.value,
        strategy=strategy,
        sample=sample,
        entries=order,
        tested=len(tested),
        datasets=datasets,
        wins=win_shares(by_task),
        left_out=[place for place in own if place not in chosen],
        unlike=unlike,
    )
    if len(tested) > 1:
        means = by_task[: len(tested)] @ weight
        resampled = np.stack(
            [weight @ [draws[id(scored[place][name])] for name in datasets] for place in tested]
        )
        first = [scored[tested[0]][name].n for name in datasets]
        least = least_half(zip(weight.tolist(), first, strict=True))
        found.ranking = ranking(means, resampled)
        found.pairs = _tested_by_documents(
            all_pairs(means, resampled, least, sum(first)),
            [[(weights[name], scored[place][name]) for name in weights] for place in tested],
        )
    yield found


def _tested_by_documents(pairs: Pairs, items: Sequence[Sequence[tuple[float, Experiment]]]) -> Pairs:
    """With the documents' own tests and intervals in place of the bootstrap's, where these claim too much."""
    low, high, p_values = pairs.low.copy(), pairs.high.copy(), pairs.p_value.copy()
    for row, column in combinations(range(len(items)), 2):
        both = [
            (weight, one, other) for (weight, one), (_, other) in zip(items[row], items[column], strict=True)
        ]
        if (test := document_test_of(both)) is not None:
            p_values[row, column] = p_values[column, row] = test.p_value
            if found := test.interval:
                low[row, column], high[row, column] = found.low, found.high
                low[column, row], high[column, row] = -found.high, -found.low
    low, high, p_values = agreed(low, high, p_values)
    return replace(pairs, low=low, high=high, p_value=p_values)


def _comparable(own: Mapping[int, Mapping[str, Hashable]]) -> list[int]:
    """The entries to compare: as many pairs times shared tasks as leaving out one after another can give."""
    chosen = list(own)
    while len(chosen) > 2:
        worth = {place: _worth([own[other] for other in chosen if other != place]) for place in chosen}
        best = max(chosen, key=lambda place: worth[place])
        if worth[best] <= _worth([own[place] for place in chosen]):
            break
        chosen.remove(best)
    return chosen


def _worth(asked: Sequence[Mapping[str, Hashable]]) -> int:
    shared = set.intersection(*(set(item.items()) for item in asked))
    return len(asked) * (len(asked) - 1) * len(shared)


def _asked(entry: Entry, item: Experiment, ways: list[Facts]) -> Hashable:
    """What decides whether entries can be compared on a task; `ways` gains one that compares with none."""
    rows, everything = item.rows_hash, item.n == item.loaded.get("n_test")
    if not rows or (item.limited and not everything):
        try:
            rows += " ".join(item.read_documents().documents if item.read_documents else [entry.label])
        except MedtasksError:
            rows += entry.label
    way = next((one for one in ways if comparable(one, item.facts)), None)
    if way is None:
        ways.append(way := item.facts)
    return rows, item.n, way
