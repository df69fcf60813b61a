"""What changed from one entry to another: by task, by group, and which documents flipped.

Entries are compared on the documents that both were asked; what differs in the settings of a task is named
beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import SUFFIX, strategy_order, strategy_title
from medtasks_ext.results.conditions import differences, moving, value_words
from medtasks_ext.results.experiments import Entry, Experiment, Fault
from medtasks_ext.results.frames import table_of
from medtasks_ext.results.labels import Labels, restricted
from medtasks_ext.results.models import published_rows
from medtasks_ext.results.published import published_entries
from medtasks_ext.results.reading import Results, read_results
from medtasks_ext.stats.bootstrap import resample
from medtasks_ext.stats.comparison import (
    EQUAL,
    MOST_DOCUMENTS,
    Comparison,
    PairedTest,
    Part,
    benjamini_hochberg,
    compare,
    document_test,
    holm,
    least_half,
)
from medtasks_ext.stats.statistic import Counts, by_unit

if TYPE_CHECKING:
    import pyarrow as pa

    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.stats.statistic import Array


@dataclass(frozen=True)
class Shared:
    """What both entries say of a task on the documents that both were asked."""

    row: Json  # of the frame `task_changes`, without what depends on other rows
    scores: tuple[float, float]  # of the first and of the second
    n: int  # documents
    resampled: tuple[Array, Array]  # both scores on each resample of the documents, (resamples,) each
    counts: tuple[Counts, Counts]  # of both entries by unit
    flips: list[Json]  # rows of the frame `flipped`: documents whose score changed, the largest changes first


def task_changes(first: Entry, second: Entry) -> tuple[list[Shared], list[Fault]]:
    """Every task that both entries have a score of, and why other shared tasks cannot be compared."""
    changes, faults = [], []
    for name, one in first.experiments.items():
        other = second.experiments.get(name)
        if other is None or one.score is None or other.score is None:
            continue
        try:
            changes.append(_task_change(one, other))
        except MedtasksError as error:
            faults.append(Fault(str(error.where or name), error.what, error.remedy))
    return changes, faults


def document_test_of(items: Sequence[tuple[float, Experiment, Experiment]]) -> PairedTest | None:
    """Of (weight in the group's score, both experiments); None where the bootstrap is to be taken."""
    n = sum(one.n for _, one, _ in items)
    if n > MOST_DOCUMENTS and len(items) > 1:
        return None
    try:
        return document_test(
            [Part(weight, *_counts(*_shared_documents(one, other))) for weight, one, other in items], n
        )
    except MedtasksError:
        return None


def _task_change(one: Experiment, other: Experiment) -> Shared:
    before, after = _shared_documents(one, other)
    counts, n = _counts(before, after), len(before.documents)
    before_draws, after_draws = (resample([item], one.dataset.id)["score"] for item in counts)
    scores = counts[0].values()["score"], counts[1].values()["score"]
    strategies = one.strategy != other.strategy
    # what follows from another strategy; other words of the same kind do, the suite's own and others do not
    implied = {"strategy", "rows", "examples in the prompt"} if strategies else set()
    implied |= {"wording"} if strategies and one.conditions.wording == other.conditions.wording else set()
    unlike = dict.fromkeys(item.condition for item in differences(one.facts, other.facts) if item.known)
    flips = _flips(one.task, before, after)
    shared = Shared({}, scores, n, (before_draws, after_draws), counts, flips)
    shared.row.update(
        _change_row(one.dataset.id if strategies else one.task, scores, mean_change([[shared]])),
        documents=n,
        documents_of_one_alone=sum(len(_documents(item).documents) for item in (one, other)) - 2 * n,
        gained=sum(flip["after"] > flip["before"] for flip in flips),
        lost=sum(flip["after"] < flip["before"] for flip in flips),
        differs=", ".join(name for name in unlike if name not in implied),
    )
    return shared


def _change_row(name: str, scores: Sequence[float], found: Comparison) -> Json:
    """What rows of tasks and of groups have in common."""
    return {
        **{"name": name, "before": scores[0], "after": scores[1], "difference": found.difference},
        **{"interval_low": found.interval.low, "interval_high": found.interval.high},
        **{"p": found.p_value, "method": found.method, "detectable": found.detectable},
    }


def mean_change(parts: Sequence[Sequence[Shared]]) -> Comparison:
    """Second minus first in a mean over parts, each the mean of its tasks; a task alone is a group of one."""
    weighted = [(1 / len(parts) / len(part), item) for part in parts for item in part]
    n = sum(item.n for _, item in weighted)
    scores = [sum(weight * item.scores[side] for weight, item in weighted) for side in (1, 0)]
    draws = [np.sum([weight * item.resampled[side] for weight, item in weighted], axis=0) for side in (1, 0)]
    tested = n <= MOST_DOCUMENTS or len(weighted) == 1
    sizes = [(weight, item.counts[0].n_units if tested else item.n) for weight, item in weighted]
    test = document_test([Part(of, *item.counts[::-1]) for of, item in weighted], n) if tested else None
    return compare(scores, draws, least_half(sizes), sum(size for _, size in sizes), test)


def _documents(experiment: Experiment) -> DocumentScores:
    if experiment.estimate is not None:
        what = "is an estimate over drawn documents, which is compared only by its interval"
        remedy = "`medtasks report` prints it; the same run without --error asks the rest"
        raise MedtasksError(what, where=experiment.task, remedy=remedy)
    if experiment.read_documents is None:
        what = "has no scores of its documents"
        remedy = "run lm_eval with --log_samples, or `medtasks run`"
        raise MedtasksError(what, where=experiment.task, remedy=remedy)
    return experiment.read_documents()


def _shared_documents(one: Experiment, other: Experiment) -> tuple[DocumentScores, DocumentScores]:
    """Both sides of the documents that both scored; where files differ, of those with the same content."""
    _check_alike(one, other)
    before, after = _documents(one), _documents(other)
    # the prompt of a strategy may be part of the rows
    of = "data" if one.strategy != other.strategy else "rows"
    same_rows = one.words.get(of) == other.words.get(of)

    def places(scores: DocumentScores) -> dict[tuple[str, str], int]:
        keys = zip(scores.documents, scores.documents if same_rows else scores.contents, strict=True)
        return {key: place for place, key in enumerate(keys) if scores.scored[place]}

    mine, theirs = places(before), places(after)
    pairs = [(place, theirs[key]) for key, place in mine.items() if key in theirs]
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    if len(set(before.units[first].tolist())) < 2:
        raise MedtasksError(
            "the two were not asked the same documents", where=one.task, remedy="run both on the same rows"
        )
    return before.at(first), after.at(second)


_OF_JURIES = (
    "was judged by different juries",
    "judge both runs with one jury: medtasks judge RUN --jury NAME",
)
#: Condition -> what is said of a task where it differs, and the remedy.
_NEVER_TESTED = {
    **dict.fromkeys(("jury", "requests", "protocol"), _OF_JURIES),
    "version": ("was run in different versions", "medtasks rescore RUN, or run it again"),
}


def _check_alike(one: Experiment, other: Experiment) -> None:
    """Refuse what no test may set side by side: other juries, other versions of the task."""
    for item in moving(one.facts, other.facts):
        words, remedy = _NEVER_TESTED.get(item.field, ("", ""))
        if words:
            shown = f"{value_words(item.field, item.one)} | {value_words(item.field, item.other)}"
            raise MedtasksError(f"{words} ({shown}), so it is not compared", where=one.task, remedy=remedy)


def _counts(before: DocumentScores, after: DocumentScores) -> tuple[Counts, Counts]:
    """Of both sides by the units of the first."""
    units = before.units.tolist()
    first, second = (
        Counts(by_unit(side.counts, units), {"score": side.statistic}, side.labels)
        for side in (before, after)
    )
    return first, second


def _flips(task: str, before: DocumentScores, after: DocumentScores) -> list[Json]:
    one, other = before.scores, after.scores
    # nothing to find and nothing found has no score, and is no change for the better or worse
    moved = np.flatnonzero(np.abs(np.nan_to_num(other - one)) > EQUAL)
    order = moved[np.argsort(-np.abs(other[moved] - one[moved]), kind="stable")]
    return [
        {
            **{"task": task, "document": before.documents[place]},
            **{"before": float(one[place]), "after": float(other[place])},
        }
        for place in order
    ]


def _mean(parts: Iterable[Iterable[float]]) -> float:
    return fmean(fmean(part) for part in parts)


def _parts_in(parts: Iterable[Sequence[str]], known: Mapping[str, Any]) -> list[list[Any]]:
    """Of each part what is known of its tasks; parts without any are left out."""
    return [some for part in parts if (some := [known[name] for name in part if name in known])]


def suite_groups(tasks: Registry) -> set[str]:
    return {suite + suffix for suite in tasks.suites for suffix in SUFFIX.values()}


def group_change(name: str, parts: Sequence[Sequence[Shared]], n_tasks: int) -> Json:
    """The change in a mean over parts, each the mean of its tasks, of which the group has so many."""
    scores = [_mean((item.scores[side] for item in part) for part in parts) for side in (0, 1)]
    row = _change_row(name, scores, mean_change(parts))
    return {**row, "tasks": sum(map(len, parts)), "of": n_tasks}


def asked_changes(
    pair: Pair, changes: Sequence[Shared], names: Iterable[str], tasks: Registry
) -> Iterator[Json]:
    """Each name of a task or group in which both have scores, over the tasks that both have.

    Where single documents of one are not known, as of a published model, there is the difference alone, and
    `method` says why.
    """
    by_name = {change.row["name"]: change for change in changes}
    unknown = [
        entry.label
        for entry in (pair.before, pair.after)
        if not any(item.read_documents for item in entry.experiments.values())
    ]
    both = {
        task: (item.score, other.score)
        for task, item in (pair.before.experiments.items() if unknown else ())
        if (other := pair.after.experiments.get(task)) and None not in (item.score, other.score)
        if not any(unlike.field in _NEVER_TESTED for unlike in moving(item.facts, other.facts))
    }
    for name in filter(tasks.knows, names):
        parts = tasks.parts(name)
        of = sum(map(len, parts))
        if shared := _parts_in(parts, by_name):
            yield group_change(name, shared, of)
        elif scored := _parts_in(parts, both):
            before, after = (_mean((scores[side] for scores in part) for part in scored) for side in (0, 1))
            yield {
                **{"name": name, "before": before, "after": after, "difference": after - before},
                **dict.fromkeys(("interval_low", "interval_high", "p", "detectable")),
                "method": "interval of the difference unknown: no document of "
                f"{' or '.join(unknown)} is known",
                **{"tasks": sum(map(len, scored)), "of": of},
            }


class Pair(NamedTuple):
    before: Entry  # the first; of strategies under the names of zero-shot tasks
    after: Entry  # the second
    question: Literal["entries", "strategies"]  # set side by side, or one model asked in two ways
    words: str  # the two in short


def pairs_to_compare(entries: Sequence[Entry]) -> list[Pair]:
    """All pairs of some entries; or of the strategies of one.

    Two entries of one model that were asked with unlike strategies alone are compared by these.
    """
    if len(entries) == 1 and (pairs := _of_ways(combinations(_by_strategy(entries[0]).items(), 2))):
        return pairs
    if len(entries) < 2:
        names = "; ".join(entry.label for entry in entries) or "none"
        same = " (the runs hold the same results of one strategy)" if entries else ""
        what = f"two entries are compared; here are {len(entries)}: {names}{same}"
        remedy = "name one run of each of the two, or one run with several strategies"
        raise MedtasksError(what, remedy=remedy)
    if len({entry.sample for entry in entries}) > 1:
        what = "some were run on synthetic sample rows, which are never set beside real ones"
        raise MedtasksError(what, remedy="compare runs on the same rows")
    first, second, *more = entries
    if not more and first.model == second.model and not first.experiments.keys() & second.experiments.keys():
        return _of_ways(product(_by_strategy(first).items(), _by_strategy(second).items()))
    return [
        Pair(one, other, "entries", f"{one.label} → {other.label}") for one, other in combinations(entries, 2)
    ]


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


class Compared(NamedTuple):
    pairs: list[Json]  # entries that were compared
    sample: bool  # whether their rows are synthetic
    #: `asked`, `groups`, `labels`: frames `group_changes`, of each name that was asked, group, and label of
    #: documents; `tasks`: the frame `task_changes`; `flipped`: the documents whose score changed
    frames: dict[str, pa.Table]
    faults: list[Fault]  # what was left out


def _pair_row(pair: Pair) -> Json:
    one, other = pair.before.words, pair.after.words
    unlike = (name for name in {**one, **other} if one.get(name, "") != other.get(name, ""))
    return {
        **{"pair": pair.words, "question": pair.question},
        **{"before": pair.before.label, "after": pair.after.label},
        "settings": {name: (one.get(name, "–"), other.get(name, "–")) for name in unlike},
    }


def read_named(names: Sequence[str], tasks: Registry) -> Results:
    """Runs by their folders, and published models by their names: what `compare_results` takes."""
    others = [name for name in names if not Path(name).exists()]
    known = published_entries(tasks) if others else []
    found = [entry for name in others for entry in published_rows(name, known)]
    results = read_results([Path(name) for name in names if name not in others], tasks)
    results.entries += found
    return results


def compare_results(results: Results, tasks: Registry, labels: Sequence[Labels] = ()) -> Compared:
    """Compare all pairs of the entries that were read, or the strategies of one.

    Each label of documents gets a line, and so does each name of a task or group that the runs were asked,
    suites where no run says any. Their p-values are adjusted by Holm over all of these lines.
    """
    pairs = pairs_to_compare(results.entries)
    asked = list(dict.fromkeys(chain.from_iterable(entry.asked for entry in results.entries)))
    asked = asked or sorted(suite_groups(tasks))
    changes: list[tuple[Pair, list[Shared]]] = []
    faults, of_names = list(results.faults), []
    for item in chain.from_iterable(entry.experiments.values() for entry in results.entries):
        item.read_documents = item.read_documents and cache(item.read_documents)  # for each of its pairs
    for pair in pairs:
        published = "published" in (pair.before.kind, pair.after.kind)
        found, more = ([], []) if published else task_changes(pair.before, pair.after)
        changes.append((pair, found))
        faults += more
        of_names += [{"pair": pair.words, **row} for row in asked_changes(pair, found, asked, tasks)]
    of_names.sort(key=lambda row: asked.index(row["name"]))
    if not of_names and not any(found for _, found in changes):
        labels_of = dict.fromkeys(entry.label for pair in pairs for entry in (pair.before, pair.after))
        why = f": {faults[0].where} {faults[0].what}" if faults else ""
        raise MedtasksError(
            f"{' and '.join(labels_of)} have no scored task in common that can be compared{why}",
            remedy=(faults[0].remedy if faults else "") or "run both on the same tasks and rows",
        )
    of_labels = [
        {"pair": pair.words, **row} for pair in pairs for row in _label_changes(pair, labels, faults)
    ]
    flipped = [
        {"pair": pair.words, **row} for pair, found in changes for change in found for row in change.flips
    ]
    of_tasks = [{"pair": pair.words, **change.row} for pair, found in changes for change in found]
    frames = {
        "asked": table_of("group_changes", _adjusted(of_names)),
        "groups": table_of("group_changes", _group_rows(changes, tasks)),
        "tasks": table_of("task_changes", _adjusted(of_tasks)),
        "labels": table_of("group_changes", _adjusted(of_labels)),
        "flipped": table_of("flipped", flipped),
    }
    return Compared([*map(_pair_row, pairs)], pairs[0].before.sample, frames, faults)


def _label_changes(pair: Pair, labels: Sequence[Labels], faults: list[Fault]) -> Iterator[Json]:
    """The change on the documents of each label, over the tasks that both have with such documents."""
    by_axis: dict[str, list[Labels]] = {}
    for one in labels:
        if one.model in (None, pair.before.model) and one.model in (None, pair.after.model):
            by_axis.setdefault(one.axis, []).append(one)
        else:
            what = f"says what {one.model} knows, and two models are compared"
            faults.append(Fault(one.where, what, "leave it out", skipped=False))
    for axis, some in by_axis.items():
        for value in dict.fromkeys(value for one in some for value in one.values):
            sides = [_labelled(entry, some, value, faults) for entry in (pair.before, pair.after)]
            found, _ = task_changes(*sides)  # a task with one such document says nothing
            if found:
                yield group_change(f"{axis}: {value}", [found], len(found))


def _labelled(entry: Entry, labels: Sequence[Labels], value: str, faults: list[Fault]) -> Entry:
    kept: dict[str, Experiment] = {}
    for name, item in entry.experiments.items():
        for one in labels:
            if item.task not in one.tasks or item.score is None:
                continue
            try:
                part = restricted(item, one, value)
            except MedtasksError as error:
                fault = Fault(str(error.where), error.what, error.remedy)
                faults += [] if fault in faults else [fault]
                continue
            if part:
                kept[name] = part
    return replace(entry, experiments=kept)


def _group_rows(changes: Sequence[tuple[Pair, list[Shared]]], tasks: Registry) -> list[Json]:
    """Every suite, and every other group in which the changes have two tasks, each set of tasks once.

    Suites and strategies are one family of tests, other groups a second.
    """
    suites: list[Json] = []
    others: list[Json] = []
    names = suite_groups(tasks)
    for pair, found in changes:
        by_name = {change.row["name"]: change for change in found}
        seen = set[frozenset[str]]()
        for group in sorted(tasks.listed, key=lambda name: name not in names):
            shared, members = _parts_in(tasks.parts(group), by_name), frozenset(tasks.leaves(group))
            if sum(map(len, shared)) < (1 if group in names else 2) or (
                group not in names and members in seen
            ):
                continue
            seen.add(members)
            row = group_change(group, shared, sum(map(len, tasks.parts(group))))
            (suites if group in names else others).append({"pair": pair.words, **row})
    return [*_adjusted(suites), *_adjusted(others)]


def _adjusted(rows: Sequence[Json]) -> list[Json]:
    """Rows of one family of tests, with their adjusted p-values; those without a test have none."""
    raw = np.array([row["p"] for row in rows if row["p"] is not None])
    adjusted = zip(holm(raw).tolist(), benjamini_hochberg(raw).tolist(), strict=True)
    none = (None, None)
    return [
        {**row, **dict(zip(("p_holm", "p_bh"), none if row["p"] is None else next(adjusted), strict=True))}
        for row in rows
    ]
