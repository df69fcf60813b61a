"""All entries of a suite and strategy against each other, on the tasks that all of them share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import strategy_title
from medtasks_ext.report.groups import Group, groups_of
from medtasks_ext.report.groups import title as title_of
from medtasks_ext.results.compared import document_test_of
from medtasks_ext.results.conditions import Facts, comparable, moving
from medtasks_ext.results.experiments import Entry, Experiment
from medtasks_ext.results.frames import table, table_of
from medtasks_ext.runs.manifest import DRAWN
from medtasks_ext.stats.comparison import (
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

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.stats.statistic import Array


def compared(
    entries: Sequence[Entry], draws: Mapping[int, Array], tasks: Registry, strategies: Sequence[str]
) -> list[Json]:
    """Of each suite and strategy the entries with scores of tasks that were asked alike.

    `entries` of one: their places in the report, first those that are tested, published ones last; `tasks`:
    how many all of them share; `left_out`: places of entries without which more can be compared; `wins`: the
    share of the tasks that the row wins against the column, ties half. Of two or more with scores on each
    resample (`draws`, by `id` of an experiment) also matrices of `difference`, its ends and p-values, and
    ranks with their ends.
    """
    scored: dict[tuple[str, str, bool], dict[int, dict[str, Experiment]]] = {}
    for place, entry in enumerate(entries):
        for item in entry.experiments.values():
            if item.score is not None and item.dataset.metadata.grouped:
                key = (item.dataset.suite.id, item.strategy, item.sample)
                scored.setdefault(key, {}).setdefault(place, {})[item.dataset.id] = item
    suites = [group for group in groups_of(tasks) if group.axis == "suite" and group.parts]
    comparisons = []
    for sample in (False, True):
        found = [
            {"suite": suite.value, "strategy": strategy, "sample": sample, **of}
            for suite in suites
            for strategy in strategies
            if (of := _compared(entries, draws, suite, scored.get((suite.value, strategy, sample), {})))
        ]
        _adjust([item for item in found if len(item["p"])])
        comparisons += found
    return comparisons


def _adjust(comparisons: Sequence[Json]) -> None:
    """Set p-values adjusted for all pairs of all suites and strategies: one family, as `compare` has it."""
    pairs = [np.triu_indices(len(item["p"]), 1) for item in comparisons]
    raw = [item["p"][place] for item, place in zip(comparisons, pairs, strict=True)]
    ends = np.cumsum([len(part) for part in raw])[:-1]
    for name, adjust in (("p_holm", holm), ("p_bh", benjamini_hochberg)) if raw else ():
        parts = np.split(adjust(np.concatenate(raw)), ends)
        for item, place, values in zip(comparisons, pairs, parts, strict=True):
            item[name] = item["p"].copy()
            item[name][place] = item[name].T[place] = values


def pair_frame(comparisons: Sequence[Json], entries: Sequence[Entry]) -> pa.Table:
    """The frame `pairs`: a row per suite, strategy and two entries with scores of documents."""
    import pyarrow as pa

    parts = [table_of("pairs", ())]
    for item in comparisons:
        first, second = np.triu_indices(len(item["p"]), 1)
        labels = np.array([entries[place].label for place in item["entries"]])
        if len(first):
            matrices = ("difference", "low", "high", "p_holm", "p_bh", "wins")
            columns = {name: item[name][first, second] for name in matrices}
            columns |= {"entry": labels[first], "minus": labels[second], "p_value": item["p"][first, second]}
            same = ("suite", "strategy", "sample", "tasks")
            parts.append(table("pairs", columns | {name: [item[name]] * len(first) for name in same}))
    return pa.concat_tables(parts)


def _compared(
    entries: Sequence[Entry],
    draws: Mapping[int, Array],
    suite: Group,
    scored: Mapping[int, Mapping[str, Experiment]],
) -> Json | None:
    ways: dict[str, list[Facts]] = {}
    own = {
        place: {name: _asked(entries[place], item, ways.setdefault(name, [])) for name, item in found.items()}
        for place, found in scored.items()
        if entries[place].kind != "published"
    }
    if not own or len(scored) < 2:
        return None
    chosen = _comparable(own)
    alike = {name for name, _ in set.intersection(*(set(own[place].items()) for place in chosen))}
    of_suite = [name for name in suite.datasets if name in suite.counted]
    datasets = [name for name in of_suite if name in alike]
    published = [place for place, found in scored.items() if place not in own and found.keys() >= {*datasets}]
    tested = [place for place in chosen if all(id(scored[place][name]) in draws for name in datasets)]
    order = [*tested, *(place for place in chosen if place not in tested), *published]
    if not datasets or len(order) < 2:
        return None
    by_task = np.array([[scored[place][name].score for name in datasets] for place in order], dtype=float)
    found = {
        "entries": order,
        "tasks": len(datasets),
        "wins": win_shares(by_task),
        "left_out": [place for place in own if place not in chosen],
        "p": np.empty((0, 0)),
    }
    if len(tested) > 1:
        weights = suite.weights(frozenset(datasets))
        weight = np.array([weights.get(name, 0.0) for name in datasets])
        means = by_task[: len(tested)] @ weight
        resampled = [weight @ [draws[id(scored[place][name])] for name in datasets] for place in tested]
        n = [scored[tested[0]][name].n for name in datasets]
        ranks = ranking(means, np.stack(resampled))
        found |= {"rank": ranks.rank, "rank_low": ranks.low, "rank_high": ranks.high}
        pairs = all_pairs(
            means, np.stack(resampled), least_half(zip(weight.tolist(), n, strict=True)), sum(n)
        )
        found["difference"] = pairs.difference
        items = [[(weights[name], scored[place][name]) for name in weights] for place in tested]
        ends = _tested_by_documents(pairs.low.copy(), pairs.high.copy(), pairs.p_value.copy(), items)
        found |= zip(("low", "high", "p"), ends, strict=True)
    return found


def _tested_by_documents(
    low: Array, high: Array, p_values: Array, items: Sequence[Sequence[tuple[float, Experiment]]]
) -> tuple[Array, Array, Array]:
    """With the documents' own tests and intervals in place of the bootstrap's, where these claim too much."""
    for row, column in combinations(range(len(items)), 2):
        both = [
            (weight, one, other) for (weight, one), (_, other) in zip(items[row], items[column], strict=True)
        ]
        if (test := document_test_of(both)) is not None:
            p_values[row, column] = p_values[column, row] = test.p_value
            if found := test.interval:
                low[row, column], high[row, column] = found.low, found.high
                low[column, row], high[column, row] = -found.high, -found.low
    return agreed(low, high, p_values)


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
    rows, everything = item.conditions.rows or "", item.n == item.loaded.get("n_test")
    if not rows or (item.limited and not everything):
        try:
            rows += " ".join(item.read_documents().documents if item.read_documents else [entry.label])
        except MedtasksError:
            rows += entry.label
    way = next((one for one in ways if comparable(one, item.facts)), None)
    if way is None:
        ways.append(way := item.facts)
    return rows, item.n, way


_NAMED = 3  # tasks that a sentence names
_PART = "no scores of whole test sets"
_MISSING = f"{_PART}, so there is no rank, and they are not on a card"


def differences(entries: Sequence[Entry], comparisons: Sequence[Json]) -> list[str]:
    """Sentences: within entries, between entries task by task, of published ones.

    Entries and suites of which the same is said share a sentence.
    """
    own = [entry for entry in entries if entry.kind != "published"]
    of: dict[str, dict[str, None]] = {}
    for whom, what in (
        *((entry.label, what) for entry in own for what in _of_tasks(entry)),
        *_between(own),
        *_of_comparisons(entries, comparisons),
        *_published(entries),
        *((entry.label, note) for entry in own for note in entry.notes),
    ):
        of.setdefault(what, {})[whom] = None
    return [f"{'; '.join(names)}: {what}" for what, names in of.items()]


def _of_tasks(entry: Entry) -> Iterator[str]:
    """What keeps scores of an entry from being final, or from standing beside others."""
    of: dict[str, list[Experiment]] = {}
    for item in entry.experiments.values():
        documents, scored = item.words.get("documents", "all"), item.score is not None
        drawn = documents.startswith(DRAWN)
        less = scored and not item.limited and item.rows < (item.rows_of_suite or 0)
        ends = "{:.3f} and {:.3f}".format(*(item.bounds or (item.score or 0.0, item.score or 0.0)))
        for holds, words in (
            (drawn, f"an estimate, {documents}: compared only by its interval, and in no rank"),
            (item.limited and not drawn, f"only {documents} of {{tasks}} were asked: {_PART}"),
            (less, f"rows are missing here of {{tasks}} ({{first}}): {_MISSING}"),
            (
                scored and item.covered < 1,
                f"{1 - item.covered:.0%} of the answers to {{tasks}} wait for a judge, so the score is not "
                f"final: between {ends} when all are judged",
            ),
            (
                item.conditions.source == "rebuilt",
                "rows rebuilt from the source, not the suite's own: {tasks}",
            ),
            (item.cut.get("shots_dropped"), "prompts that carry fewer examples, to fit the context: {tasks}"),
        ):
            if holds:
                of.setdefault(words, []).append(item)
    for words, items in of.items():
        every = len(items) == len(entry.experiments) > 1
        tasks = "each task" if every else _some([item.task for item in items])
        yield words.format(tasks=tasks, first=f"{items[0].task}: {items[0].in_part}")


def _between(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    by_task: dict[str, list[Experiment]] = {}
    for entry in entries:
        for name, item in entry.experiments.items():
            if not item.sample:
                by_task.setdefault(name, []).append(item)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, items in by_task.items():
        ways = dict.fromkeys(item.facts for item in items)
        unlike = (difference for pair in combinations(ways, 2) for difference in moving(*pair))
        for condition in dict.fromkeys(difference.condition for difference in unlike):
            key = (items[0].dataset.metadata.suite, items[0].strategy, condition)
            groups.setdefault(key, []).append(name)
    for (suite, strategy, condition), names in groups.items():
        yield (
            _title(suite, strategy),
            f"entries differ in the {condition} of {_some(names)}; such "
            "entries are not ranked or tested against each other on them",
        )


def _of_comparisons(entries: Sequence[Entry], comparisons: Sequence[Json]) -> Iterator[tuple[str, str]]:
    for item in comparisons:
        if names := ", ".join(entries[place].label for place in item["left_out"]):
            what = f"not compared, since they share too few tasks asked alike with others: {names}"
            yield (_title(item["suite"], item["strategy"]), what)


def _published(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    notes = {entry.paper: entry.notes[0] for entry in reversed(entries) if entry.paper and entry.notes}
    for suite in dict.fromkeys(entry.paper for entry in entries if entry.paper in notes):
        yield (f"published scores of {title_of('suite', suite)}", f"from {notes[suite]}")


def _title(suite: str, strategy: str) -> str:
    return f"{title_of('suite', suite)}, {strategy_title(strategy)}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) == 1 else f"{len(names)} tasks ({shown}{', …' if len(names) > _NAMED else ''})"
