"""All entries of a suite and strategy against each other, on the tasks that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

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
    entries: Sequence[Entry], draws: Mapping[int, Array], tasks: Registry, strategies: Sequence[str]
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
            key = (item.dataset.suite.id, item.strategy, item.sample)
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


_NAMED = 3  # tasks that a sentence names


#: Of whom something is to be known, and what: entries and suites of which the same is said share a sentence.
_Said: TypeAlias = "tuple[str, str]"


def differences(entries: Sequence[Entry], comparisons: Sequence[Compared]) -> list[str]:
    """Sentences: within entries, between entries task by task, of published ones."""
    own = [entry for entry in entries if entry.kind != "published"]
    of: dict[str, dict[str, None]] = {}
    for whom, what in (
        *_limited(own),
        *_short(own),
        *_pending(own),
        *_named(own, "rows rebuilt from the source, not the suite's own", lambda item: item.rebuilt),
        *_named(own, "prompts that carry fewer examples, to fit the context", _has_fewer_examples),
        *_between(own),
        *_of_comparisons(entries, comparisons),
        *_published(entries),
        *((entry.label, note) for entry in own for note in entry.notes),
    ):
        of.setdefault(what, {})[whom] = None
    return [f"{'; '.join(names)}: {what}" for what, names in of.items()]


def _title(suite: str, strategy: str) -> str:
    return f"{title_of('suite', suite)}, {strategy_title(strategy)}"


def _limited(entries: Sequence[Entry]) -> Iterator[_Said]:
    for entry in entries:
        by_words: dict[str, list[str]] = {}
        for item in entry.experiments.values() if entry.limited else ():
            by_words.setdefault(item.words["documents"], []).append(item.task)
        for words, names in by_words.items():
            if words != "all" and words.startswith(DRAWN):
                yield (entry.label, f"an estimate, {words}: compared only by its interval, and in no rank")
            elif words != "all":
                where = "each task" if len(by_words) == 1 else _some(names)
                yield (entry.label, f"only {words} of {where} were asked: no scores of whole test sets")


def _short(entries: Sequence[Entry]) -> Iterator[_Said]:
    """Tasks whose rows here are fewer than the suite's."""
    for entry in entries:
        less = {
            item.task: item.in_part
            for item in entry.experiments.values()
            if item.score is not None and item.rows < (item.rows_of_suite or 0) and not item.limited
        }
        if less:
            first = next(iter(less))
            yield (
                entry.label,
                f"rows are missing here of {_some([*less])} ({first}: {less[first]}): no "
                "scores of whole test sets, so there is no rank, and they are not on a card",
            )


def _pending(entries: Sequence[Entry]) -> Iterator[_Said]:
    for entry in entries:
        for item in entry.experiments.values():
            if item.covered < 1 and item.score is not None:
                low, high = item.bounds or (item.score, item.score)
                yield (
                    f"{entry.label}, {item.task}",
                    f"{1 - item.covered:.0%} of the answers wait for a judge, so "
                    f"the score is not final: between {low:.3f} and {high:.3f} when all are judged",
                )


def _named(entries: Sequence[Entry], what: str, holds: Callable[[Experiment], bool]) -> Iterator[_Said]:
    for entry in entries:
        names: dict[str, list[str]] = {}
        for item in filter(holds, entry.experiments.values()):
            title = _title(item.dataset.metadata.suite, item.strategy)
            names.setdefault(title, []).append(item.dataset.id)
        yield from ((f"{entry.label}, {title}", f"{what}: {_some(some)}") for title, some in names.items())


def _has_fewer_examples(item: Experiment) -> bool:
    return item.cut.get("shots_dropped", 0) > 0


def _between(entries: Sequence[Entry]) -> Iterator[_Said]:
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


def _of_comparisons(entries: Sequence[Entry], comparisons: Sequence[Compared]) -> Iterator[_Said]:
    for item in comparisons:
        title = _title(item.suite, item.strategy)
        if item.left_out:
            names = ", ".join(entries[place].label for place in item.left_out)
            yield (title, f"not compared, since they share too few tasks asked alike with others: {names}")
        if item.unlike:
            yield (title, f"{_some(item.unlike)} left out of comparisons: other conditions")


def _published(entries: Sequence[Entry]) -> Iterator[_Said]:
    notes: dict[str, str] = {}
    for entry in entries:
        if entry.kind == "published" and entry.notes:
            notes.setdefault(entry.paper, entry.notes[0])
    for suite, note in notes.items():
        yield (f"published scores of {title_of('suite', suite)}", f"from {note}")


def _some(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_NAMED])
    return f"{len(names)} tasks ({shown}{', …' if len(names) > _NAMED else ''})"
