"""Two published models against each other: the tasks that both have, suite by suite."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import fmean
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.published import published_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry


@dataclass(frozen=True)
class PublishedChange:
    """One suite and strategy.

    Attributes:
        suite: title of the suite.
        strategy: of the scores.
        before: mean score of the first model on the shared tasks.
        after: of the second.
        tasks: (task, score of the first, score of the second), the largest changes first.
    """

    suite: str
    strategy: str
    before: float
    after: float
    tasks: tuple[tuple[str, float, float], ...]

    @property
    def better(self) -> int:
        """Tasks on which the second is better."""
        return sum(after > before for _, before, after in self.tasks)

    @property
    def worse(self) -> int:
        """Tasks on which the second is worse."""
        return sum(after < before for _, before, after in self.tasks)


def published_named(name: str, entries: Sequence[Entry]) -> list[Entry]:
    """The published models of a name, one of a suite at most: its own, else the one that begins so.

    Raises:
        MedtasksError: there is none.
    """
    found: dict[str, Entry] = {}
    # a date or version may follow: gpt-4o-0806, GPT-4o (2024-05-13)
    dated = re.compile(rf"{re.escape(name)}(-\d[\w-]*| \(.*\))", re.IGNORECASE)
    for matches in (re.compile(re.escape(name), re.IGNORECASE), dated):
        for entry in entries:
            if matches.fullmatch(entry.model):
                found.setdefault(entry.paper, entry)
    if not found:
        models = {entry.model.lower(): entry.model for entry in entries}
        close = [model for key, model in models.items() if name.lower() in key][:4]
        close = close or [models[key] for key in get_close_matches(name.lower(), models, n=4)]
        raise MedtasksError(
            f"no run and no published model is called {name!r}"
            + (f"; similar: {', '.join(close)}" if close else ""),
            remedy="name folders of runs; or models as `medtasks report --published all` lists them",
        )
    return list(found.values())


def published_changes(one: str, other: str, tasks: Registry) -> list[PublishedChange]:
    """What papers print of two models, where one paper has both.

    Raises:
        MedtasksError: a name is unknown, or no paper has both.
    """
    entries = published_entries(tasks)
    first, second = published_named(one, entries), published_named(other, entries)
    by_suite = {entry.paper: entry for entry in second}
    found = []
    for entry in first:
        if (rival := by_suite.get(entry.paper)) is None:
            continue
        strategies = dict.fromkeys(item.strategy for item in entry.experiments.values())
        for strategy in strategies:
            both = [
                (name, item.score, rival.experiments[name].score)
                for name, item in entry.experiments.items()
                if item.strategy == strategy and name in rival.experiments
            ]
            shared = [(name, one, two) for name, one, two in both if one is not None and two is not None]
            if shared:
                title = tasks.suites[entry.paper].title
                before, after = fmean(item[1] for item in shared), fmean(item[2] for item in shared)
                ordered = sorted(shared, key=lambda item: -abs(item[2] - item[1]))
                found.append(PublishedChange(title, strategy, before, after, tuple(ordered)))
    if not found:
        papers = " and ".join(
            f"{name} by {', '.join(tasks.suites[entry.paper].title for entry in some)}"
            for name, some in ((one, first), (other, second))
        )
        raise MedtasksError(
            f"no paper prints scores of tasks of both: {papers}", remedy="name two models of one paper"
        )
    return found
