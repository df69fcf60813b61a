"""Two published models against each other: the tasks that both have, suite by suite."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.models import identity_of, published_rows, version_of
from medtasks_ext.results.published import published_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry


@dataclass(frozen=True)
class PublishedRow:
    """A row of a suite's table.

    Attributes:
        suite: title of the suite.
        name: of the model, as the table prints it.
        version: that it is of, or the id of open weights on the hub; None where nobody says.
    """

    suite: str
    name: str
    version: str | None

    @property
    def words(self) -> str:
        """As readers see it; the version where the name does not tell."""
        version = self.version or "version not said"
        return self.name if version in self.name else f"{self.name} ({version})"


@dataclass(frozen=True)
class PublishedChange:
    """One suite and strategy.

    Attributes:
        before: the first model's row.
        after: the second's.
        strategy: of the scores.
        scores: (task, score of the first, score of the second), the largest changes first. A table without
            scores of tasks has those of its groups.
    """

    before: PublishedRow
    after: PublishedRow
    strategy: str
    scores: tuple[tuple[str, float, float], ...]

    @property
    def suite(self) -> str:
        """Title of the suite."""
        return self.before.suite

    @property
    def mean_before(self) -> float:
        """Mean score of the first on what both have."""
        return fmean(before for _, before, _ in self.scores)

    @property
    def mean_after(self) -> float:
        """Mean score of the second."""
        return fmean(after for _, _, after in self.scores)

    @property
    def better(self) -> int:
        """How often the second is better."""
        return sum(after > before for _, before, after in self.scores)

    @property
    def worse(self) -> int:
        """How often the second is worse."""
        return sum(after < before for _, before, after in self.scores)


@dataclass(frozen=True)
class PublishedComparison:
    """What papers print of two models.

    Attributes:
        before: title of the first.
        after: of the second.
        changes: suite by suite, where one table has both.
        alone: rows of suites that have one of the two only.
    """

    before: str
    after: str
    changes: tuple[PublishedChange, ...]
    alone: tuple[PublishedRow, ...]


def published_changes(one: str, other: str, tasks: Registry) -> PublishedComparison:
    """What papers print of two models, where one paper has both.

    Args:
        one: name of the first, as `results.models.published_rows` takes it.
        other: of the second.

    Raises:
        MedtasksError: a name is unknown or means several, both mean one model, or no paper has both.
    """
    entries = published_entries(tasks)
    first, second = ({entry.paper: entry for entry in published_rows(name, entries)} for name in (one, other))
    if any(entry is second.get(paper) for paper, entry in first.items()):
        raise MedtasksError(f"{one!r} and {other!r} are one model", remedy="name two models")
    changes = [
        change
        for paper, entry in first.items()
        if paper in second
        for change in _changes(entry, second[paper], tasks)
    ]
    papers = dict.fromkeys([*first, *second])
    alone = [
        _row(first.get(paper) or second[paper], tasks)
        for paper in papers
        if not (paper in first and paper in second)
    ]
    if not changes:
        raise MedtasksError(
            "no paper prints scores of tasks of both: "
            + "; ".join(f"{row.suite} has {row.words}" for row in alone),
            remedy="name two models of one paper",
        )
    titles = _title(one, first), _title(other, second)
    return PublishedComparison(titles[0], titles[1], tuple(changes), tuple(alone))


def _title(name: str, rows: Mapping[str, Entry]) -> str:
    model = identity_of(next(iter(rows.values())))
    return model.title if model else name


def _row(entry: Entry, tasks: Registry) -> PublishedRow:
    model = identity_of(entry)
    version = version_of(entry) or (model.hub_id if model else None)
    return PublishedRow(tasks.suites[entry.paper].title, entry.model, version)


def _changes(one: Entry, other: Entry, tasks: Registry) -> Iterator[PublishedChange]:
    scores: dict[str, list[tuple[str, float, float]]] = {}
    for name, item in one.experiments.items():
        rival = other.experiments.get(name)
        if rival is not None and item.score is not None and rival.score is not None:
            scores.setdefault(item.strategy, []).append((name, item.score, rival.score))
    if not scores:
        whole = one.paper  # the group of all tasks is a mean of the others
        shared = [
            (name, score, other.groups[name])
            for name, score in one.groups.items()
            if name in other.groups and name != whole
        ]
        scores = {"zero_shot": shared} if shared else {}
    for strategy, found in scores.items():
        ordered = sorted(found, key=lambda item: -abs(item[2] - item[1]))
        yield PublishedChange(_row(one, tasks), _row(other, tasks), strategy, tuple(ordered))
