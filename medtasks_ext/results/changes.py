"""What changed from one entry to another: by task, by group, and which documents flipped.

Entries are compared on the documents that both were asked, so runs of unlike extent can be compared;
what differs in the settings of a task is named beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.conditions import comparable
from medtasks_ext.results.experiments import Fault, differing
from medtasks_ext.results.rollup import mean
from medtasks_ext.stats.bootstrap import mean_over_tasks, resample
from medtasks_ext.stats.comparison import EQUAL, Comparison, compare, compare_resamples, document_test
from medtasks_ext.stats.counts import Counts, by_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.document_scores import DocumentScores
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_ext.stats.statistic import Array

#: with fewer tasks in common a group says no more than its task
SMALLEST_GROUP = 2
#: documents up to which a report tests all pairs of entries on them
MOST_TESTED_EACH = 500


@dataclass(frozen=True)
class Flip:
    """A document whose score changed."""

    task: str
    document: str
    before: float
    after: float


@dataclass(frozen=True)
class TaskChange:
    """One task in two entries.

    Attributes:
        task: its name.
        before: score of the first entry on the shared documents.
        after: of the second.
        comparison: second minus first.
        n: shared documents.
        alone: documents that one of the two alone was asked.
        flips: documents whose score changed, the largest changes first.
        differs: settings of the task that are not alike.
        resampled: both scores on each resample of the shared documents, (resamples,) each.
    """

    task: str
    before: float
    after: float
    comparison: Comparison
    n: int
    alone: int
    flips: tuple[Flip, ...]
    differs: tuple[str, ...]
    resampled: tuple[Array, Array]


@dataclass(frozen=True)
class GroupChange:
    """One group in two entries, over the tasks that both have.

    Attributes:
        name: of the group.
        before: mean score of the first entry.
        after: of the second.
        comparison: second minus first, documents resampled within tasks.
        n_shared: tasks that both have a score of.
        n_tasks: tasks that the group's score is taken over.
    """

    name: str
    before: float
    after: float
    comparison: Comparison
    n_shared: int
    n_tasks: int


def task_changes(first: Entry, second: Entry) -> tuple[list[TaskChange], list[Fault]]:
    """Every task that both entries have a score of.

    Returns:
        The changes, in the order of the first entry, and why other shared tasks cannot be compared.
    """
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


def document_p_value(one: Experiment, other: Experiment) -> float | None:
    """The p-value of a task by the test on its documents that `compare` takes.

    None where the score is no mean over documents, or they are not known; also where more than 500 were
    asked, for whom the bootstrap's is as good, and the tests of many pairs would take long.
    """
    if one.n > MOST_TESTED_EACH:
        return None
    try:
        before, after = _documents(one), _documents(other)
        _, counts = _paired(one, other, before, after)
    except MedtasksError:
        return None
    test = document_test(*counts)
    return None if test is None else test.p_value


def _task_change(one: Experiment, other: Experiment) -> TaskChange:
    before, after = _documents(one), _documents(other)
    places, counts = _paired(one, other, before, after)
    dataset = one.dataset.id
    draws = tuple(resample([item], dataset)["score"].values for item in counts)
    n = len(places[0])
    return TaskChange(
        task=one.task,
        before=counts[0].values()["score"],
        after=counts[1].values()["score"],
        comparison=compare(counts[1], counts[0], (draws[1], draws[0])),
        n=n,
        alone=len(before.documents) + len(after.documents) - 2 * n,
        flips=_flips(one.task, before, after, places),
        differs=comparable(one.asked, other.asked).known,
        resampled=(draws[0], draws[1]),
    )


def _documents(experiment: Experiment) -> DocumentScores:
    if experiment.read_documents is None:
        raise MedtasksError(
            "has no scores of its documents",
            where=experiment.task,
            remedy="run lm_eval with --log_samples, or `medtasks run`",
        )
    return experiment.read_documents()


def _paired(
    one: Experiment, other: Experiment, before: DocumentScores, after: DocumentScores
) -> tuple[tuple[Array, Array], tuple[Counts, Counts]]:
    """Places of the shared documents in both, and their counts by unit."""
    _check_alike(one, other)
    places = _shared(before, after, same_rows=one.settings.get("rows") == other.settings.get("rows"))
    if len(places[0]) < 2:
        raise MedtasksError(
            "the two were not asked the same documents", where=one.task, remedy="run both on the same rows"
        )
    counts = _counts(before, places[0]), _counts(after, places[1], like=before.units[places[0]])
    return places, counts


def _check_alike(one: Experiment, other: Experiment) -> None:
    """Refuse what no test may set side by side: other juries, other versions of the task."""
    for setting, words, remedy in (
        (
            "jury",
            "was judged by different juries",
            "judge both runs with one jury: medtasks judge RUN --jury NAME",
        ),
        ("version", "was run in different versions", "medtasks rescore RUN, or run it again"),
    ):
        values = [item.settings.get(setting) for item in (one, other)]
        if values[0] != values[1]:
            shown = " | ".join(value or "none" for value in values)
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
    return Counts(by_unit(scores.counts[places], units.tolist()), {"score": scores.statistic})


def _flips(
    task: str, before: DocumentScores, after: DocumentScores, places: tuple[Array, Array]
) -> tuple[Flip, ...]:
    one, other = before.scores[places[0]], after.scores[places[1]]
    # nothing to find and nothing found has no score, and is no change for the better or worse
    moved = np.flatnonzero(np.abs(np.nan_to_num(other - one)) > EQUAL)
    order = moved[np.argsort(-np.abs(other[moved] - one[moved]), kind="stable")]
    return tuple(
        Flip(task, before.documents[places[0][place]], float(one[place]), float(other[place]))
        for place in order
    )


def group_changes(changes: Sequence[TaskChange], tasks: Registry) -> list[GroupChange]:
    """Every group of the registry in which the changes have at least two tasks, each strategy by itself."""
    by_name = {change.task: change for change in changes}
    found = []
    for group in tasks.groups:
        parts = [[by_name[name] for name in part if name in by_name] for part in tasks.parts(group)]
        shared = [part for part in parts if part]
        if sum(map(len, shared)) >= SMALLEST_GROUP:
            found.append(_group_change(group, shared, sum(map(len, tasks.parts(group)))))
    return found


def _group_change(name: str, parts: Sequence[Sequence[TaskChange]], n_tasks: int) -> GroupChange:
    scores = [
        mean(
            value
            for value in (mean(getattr(item, side) for item in part) for part in parts)
            if value is not None
        )
        for side in ("before", "after")
    ]
    draws = [
        mean_over_tasks([mean_over_tasks([item.resampled[side] for item in part]) for part in parts])
        for side in (0, 1)
    ]
    before, after = scores
    assert before is not None and after is not None
    return GroupChange(
        name=name,
        before=before,
        after=after,
        comparison=compare_resamples((after, before), (draws[1], draws[0])),
        n_shared=sum(map(len, parts)),
        n_tasks=n_tasks,
    )


def settings_that_differ(first: Entry, second: Entry) -> Mapping[str, tuple[str, str]]:
    """Setting -> its value in both entries, where they are not alike."""
    return {
        name: (first.settings.get(name, "–"), second.settings.get(name, "–"))
        for name in differing([first.settings, second.settings])
    }
