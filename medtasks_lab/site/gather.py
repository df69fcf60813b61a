"""What the leaderboard shows: published models, and submitted ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.report.standing import size_of
from medtasks_ext.results.conditions import Comparability, Difference
from medtasks_ext.results.experiments import Entry, Experiment, Fault, label_entries
from medtasks_ext.results.models import facts_of, identity_of
from medtasks_ext.results.published import published_entries
from medtasks_lab.submissions.read import submission_folders, submitted_entry
from medtasks_lab.submissions.record import Submission, read_record

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

#: fact of the registry of models -> what it is called here
_FACTS = {
    "maker": "organisation",
    "access": "access",
    "domain": "domain",
    "reasoning": "reasoning",
    "released": "date",
    "licence": "license",
}
#: Weights that nobody may have.
_ACCESS = {"closed": "proprietary"}


@dataclass(frozen=True, eq=False)
class BoardLine:
    """A line of the leaderboard: a model, asked in one way."""

    entry: Entry
    record: Submission | None  # of a submitted one
    #: what is known of the model (`results.models.facts_of`)
    known: Mapping[str, str] = field(default_factory=dict)

    @property
    def published(self) -> bool:
        """Whether a paper prints it."""
        return self.record is None

    @cached_property
    def model(self) -> str:
        """What lines of one model have in common: its id in the registry or on the hub, else its name."""
        known = identity_of(self.entry)
        return (known.id if known else self.entry.details.get("hub_id") or self.entry.model).casefold()

    @property
    def page(self) -> str:
        """The name of the model's page: letters, digits and dashes, and nothing that leads elsewhere."""
        name = re.sub(r"[^a-z0-9]+", "-", self.model).strip("-")[:60]
        return f"{name or 'model'}-{sha256(self.model.encode()).hexdigest()[:6]}.html"

    @cached_property
    def facts(self) -> dict[str, str | float]:
        """What can be filtered by, as far as it is known."""
        found: dict[str, str | float | None] = {
            ours: self.known.get(name, "") for name, ours in _FACTS.items()
        }
        found |= {
            "organisation": found["organisation"] or self._owner,
            "size": size_of(self.entry, self.known),
            "access": _ACCESS.get(self.known.get("access", ""), self.known.get("access", "")),
            "domain": self.known.get("domain", "").partition(" ")[0].lower(),
        }
        return {name: value for name, value in found.items() if value}

    @cached_property
    def beside(self) -> dict[str, Comparability | None]:
        """Task -> how far its score can stand beside those that the suite's paper prints."""
        if self.published:
            return {}
        return {name: item.beside_the_paper for name, item in self.entry.experiments.items()}

    def unlike(self, item: Experiment) -> tuple[Difference, ...]:
        """What differs from how the suite's paper asked, and can move the score."""
        found = self.beside.get(item.task)
        return () if found is None else found.moving

    @property
    def _owner(self) -> str:
        return self.entry.model.partition("/")[0] if self.record else ""


@dataclass
class Site:
    """Everything that is shown."""

    tasks: Registry  # the registry
    lines: list[BoardLine] = field(default_factory=list)  # published ones first
    faults: list[Fault] = field(default_factory=list)  # submissions that are left out

    @property
    def invented(self) -> bool:
        """Whether any score is invented."""
        return any(line.record is not None and line.record.invented is not None for line in self.lines)

    @cached_property
    def models(self) -> dict[str, list[BoardLine]]:
        """Page of a model -> its lines."""
        found: dict[str, list[BoardLine]] = {}
        for line in self.lines:
            found.setdefault(line.page, []).append(line)
        return found


def gather_site(tasks: Registry, submissions: Path | None, *, published: bool = True) -> Site:
    """Read what is shown.

    Args:
        submissions: folder with `ORG/MODEL/DATE`; None for none.
        published: also models that papers print.

    Raises:
        MedtasksError: there is nothing to show.
    """
    site = Site(tasks)
    own = list(_submitted(submissions, tasks, site.faults)) if submissions else []
    label_entries([entry for entry, _ in own])
    papers = published_entries(tasks) if published else []
    for entry, record in [*((entry, None) for entry in papers), *own]:
        site.lines.append(BoardLine(entry, record, facts_of(entry, papers)))
    if not site.lines:
        raise MedtasksError(
            "there is nothing to show",
            where=submissions,
            remedy="name a folder of submissions, or show published models: leave --no-published out",
        )
    return site


def _submitted(root: Path, tasks: Registry, faults: list[Fault]) -> Sequence[tuple[Entry, Submission]]:
    found = []
    for folder in submission_folders(root):
        try:
            record = read_record(folder)
        except MedtasksError as error:
            faults.append(Fault(str(error.where), error.what, error.remedy))
            continue
        entry = submitted_entry(record, folder, tasks)
        if unknown := record.tasks.keys() - entry.experiments.keys():
            faults.append(
                Fault(
                    str(folder), f"{len(unknown)} tasks are not known (first: {min(unknown)})", "submit anew"
                )
            )
        if entry.experiments:
            found.append((entry, record))
    return found
