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
from medtasks_ext.results.experiments import Entry, Experiment, Fault, told_apart
from medtasks_ext.results.published import published_entries
from medtasks_lab.submissions.read import submission_folders, submitted_entry
from medtasks_lab.submissions.record import Submission, read_record

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry

#: What published tables call the same: proprietary weights.
_ACCESS = {"closed": "proprietary"}


@dataclass(frozen=True, eq=False)
class BoardLine:
    """A line of the leaderboard: a model, asked in one way."""

    entry: Entry
    record: Submission | None  # of a submitted one

    @property
    def published(self) -> bool:
        """Whether a paper prints it."""
        return self.record is None

    @cached_property
    def model(self) -> str:
        """What lines of one model have in common: its id on the hub, else its name."""
        return (self.entry.details.get("hub_id") or self.entry.model).casefold()

    @property
    def page(self) -> str:
        """The name of the model's page: letters, digits and dashes, and nothing that leads elsewhere."""
        name = re.sub(r"[^a-z0-9]+", "-", self.model).strip("-")[:60]
        return f"{name or 'model'}-{sha256(self.model.encode()).hexdigest()[:6]}.html"

    @cached_property
    def facts(self) -> dict[str, str | float]:
        """What can be filtered by, as far as it is known."""
        said = self.entry.details
        access = said.get("access", "")
        found = {
            "organisation": said.get("organisation") or said.get("creator") or self._owner,
            "size": size_of(self.entry),
            "access": _ACCESS.get(access, access),
            "domain": said.get("domain", "").partition(" ")[0].lower(),
            "reasoning": said.get("reasoning", ""),
            "date": said.get("release_date", ""),
            "license": said.get("license") or said.get("license_paper", ""),
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
    told_apart([line.entry for line in own])
    papers = published_entries(tasks) if published else []
    known = {
        str(entry.details["hub_id"]).casefold(): entry.details
        for entry in papers
        if entry.details.get("hub_id")
    }
    site.lines = [*(BoardLine(entry, None) for entry in papers), *(_with_facts(line, known) for line in own)]
    if not site.lines:
        raise MedtasksError(
            "there is nothing to show",
            where=submissions,
            remedy="name a folder of submissions, or show published models: leave --no-published out",
        )
    return site


def _submitted(root: Path, tasks: Registry, faults: list[Fault]) -> Sequence[BoardLine]:
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
            found.append(BoardLine(entry, record))
    return found


def _with_facts(line: BoardLine, known: Mapping[str, Mapping[str, str]]) -> BoardLine:
    """What a paper says of the same model, where its submission does not say it."""
    said = line.entry.details
    hub_id = said.get("hub_id") or line.entry.model
    about = known.get(hub_id.casefold(), {})
    line.entry.details = {**about, **said}
    return line
