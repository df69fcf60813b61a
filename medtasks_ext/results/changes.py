"""What changed from one entry to another: by task, by group, and which documents flipped.

Entries are compared on the documents that both were asked, so runs of unlike extent can be compared;
what differs in the settings of a task is named beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.strategies import SUFFIX
from medtasks_ext.results.condition_words import value_words
from medtasks_ext.results.conditions import differences, moving
from medtasks_ext.results.experiments import Entry, Experiment, Fault, differing
from medtasks_ext.stats.bootstrap import resample
from medtasks_ext.stats.comparison import Comparison, compare, compare_resamples, least_half
from medtasks_ext.stats.permutation import EQUAL, MOST_DOCUMENTS, PairedTest, Part, document_test
from medtasks_ext.stats.statistic import Counts, by_unit

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.stats.statistic import Array

#: with fewer tasks in common a group says no more than its task
SMALLEST_GROUP = 2


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
        pairs = [_paired(one, other, _documents(one), _documents(other))[1] for _, one, other in items]
    except MedtasksError:
        return None
    parts = [Part(weight, *pair) for (weight, _, _), pair in zip(items, pairs, strict=True)]
    return document_test(parts, n)


def _task_change(one: Experiment, other: Experiment) -> Shared:
    before, after = _documents(one), _documents(other)
    places, counts = _paired(one, other, before, after)
    draws = [resample([item], one.dataset.id)["score"].values for item in counts]
    scores, n = tuple(item.values()["score"] for item in counts), len(places[0])
    strategies = one.strategy != other.strategy
    # what follows from another strategy; other words of the same kind do, the suite's own and others do not
    implied = {"strategy", "rows", "examples in the prompt"} if strategies else set()
    implied |= {"wording"} if strategies and one.conditions.wording == other.conditions.wording else set()
    unlike = dict.fromkeys(item.condition for item in differences(one.facts, other.facts) if item.known)
    flips = _flips(one.task, before, after, places)
    shared = Shared({}, (scores[0], scores[1]), n, (draws[0], draws[1]), counts, flips)
    shared.row.update(
        _change_row(one.dataset.id if strategies else one.task, scores, mean_change([[shared]])),
        documents=n,
        documents_of_one_alone=len(before.documents) + len(after.documents) - 2 * n,
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
    draws = [sum(weight * item.resampled[side] for weight, item in weighted) for side in (1, 0)]
    if n > MOST_DOCUMENTS and len(weighted) > 1:
        after, before = (sum(weight * item.scores[side] for weight, item in weighted) for side in (1, 0))
        least = least_half((weight, item.n) for weight, item in weighted)
        return compare_resamples((after, before), (draws[0], draws[1]), least, n)
    counts = [(weight, item.counts) for weight, item in weighted]
    return compare([Part(weight, *pair[::-1]) for weight, pair in counts], n, (draws[0], draws[1]))


def _documents(experiment: Experiment) -> DocumentScores:
    if experiment.estimate is not None:
        what = "is an estimate over drawn documents, which is compared by its interval alone"
        remedy = "`medtasks report` prints it; the same run without --error asks the rest"
        raise MedtasksError(what, where=experiment.task, remedy=remedy)
    if experiment.read_documents is None:
        what = "has no scores of its documents"
        remedy = "run lm_eval with --log_samples, or `medtasks run`"
        raise MedtasksError(what, where=experiment.task, remedy=remedy)
    return experiment.read_documents()


def _paired(
    one: Experiment, other: Experiment, before: DocumentScores, after: DocumentScores
) -> tuple[tuple[Array, Array], tuple[Counts, Counts]]:
    _check_alike(one, other)
    places = _shared(before, after, same_rows=_same_rows(one, other))
    counts = _counts(before, places[0]), _counts(after, places[1], like=before.units[places[0]])
    if counts[0].n_units < 2:
        raise MedtasksError(
            "the two were not asked the same documents", where=one.task, remedy="run both on the same rows"
        )
    return places, counts


def _same_rows(one: Experiment, other: Experiment) -> bool:
    """Whether a document's name says which one it is. The prompt of a strategy may be part of the rows."""
    if one.strategy != other.strategy:
        return one.words.get("data") == other.words.get("data")
    return one.rows_hash == other.rows_hash


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


def _shared(one: DocumentScores, other: DocumentScores, *, same_rows: bool) -> tuple[Array, Array]:
    """Places of the documents that both scored; where files differ, of those with the same content."""

    def keys(scores: DocumentScores) -> list[tuple[str, str]]:
        return [
            (key, "" if same_rows else content)
            for key, content in zip(scores.documents, scores.contents, strict=True)
        ]

    theirs = {key: place for place, key in enumerate(keys(other)) if other.scored[place]}
    pairs = [
        (place, theirs[key]) for place, key in enumerate(keys(one)) if one.scored[place] and key in theirs
    ]
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    return first, second


def _counts(scores: DocumentScores, places: Array, like: Array | None = None) -> Counts:
    """Counts of some documents by unit; `like` gives the units where they shall be another entry's."""
    units = scores.units[places] if like is None else like
    matrix = by_unit(scores.counts[places], units.tolist())
    return Counts(matrix, {"score": scores.statistic}, scores.labels)


def _flips(
    task: str, before: DocumentScores, after: DocumentScores, places: tuple[Array, Array]
) -> list[Json]:
    one, other = before.scores[places[0]], after.scores[places[1]]
    # nothing to find and nothing found has no score, and is no change for the better or worse
    moved = np.flatnonzero(np.abs(np.nan_to_num(other - one)) > EQUAL)
    order = moved[np.argsort(-np.abs(other[moved] - one[moved]), kind="stable")]
    return [
        {
            **{"task": task, "document": before.documents[places[0][place]]},
            **{"before": float(one[place]), "after": float(other[place])},
        }
        for place in order
    ]


def group_changes(changes: Sequence[Shared], tasks: Registry) -> list[Json]:
    """Every suite, and every other group in which the changes have two tasks; each strategy by itself."""
    suites = suite_groups(tasks)
    by_name = {change.row["name"]: change for change in changes}
    found = []
    for group in tasks.listed:
        parts = [[by_name[name] for name in part if name in by_name] for part in tasks.parts(group)]
        shared = [part for part in parts if part]
        if sum(map(len, shared)) >= (1 if group in suites else SMALLEST_GROUP):
            found.append(group_change(group, shared, sum(map(len, tasks.parts(group)))))
    return found


def suite_groups(tasks: Registry) -> set[str]:
    return {suite + suffix for suite in tasks.suites for suffix in SUFFIX.values()}


def group_change(name: str, parts: Sequence[Sequence[Shared]], n_tasks: int) -> Json:
    """The change in a mean over parts, each the mean of its tasks, of which the group has so many."""
    scores = [
        sum(sum(item.scores[side] for item in part) / len(part) for part in parts) / len(parts)
        for side in (0, 1)
    ]
    row = _change_row(name, scores, mean_change(parts))
    return {**row, "tasks": sum(map(len, parts)), "of": n_tasks}


def settings_that_differ(first: Entry, second: Entry) -> Mapping[str, tuple[str, str]]:
    return {
        name: (first.words.get(name, "–"), second.words.get(name, "–"))
        for name in differing([first.words, second.words])
    }
