"""What the leaderboard shows: published models, and submitted ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.report.standing import size_of
from medtasks_ext.results.conditions import Difference
from medtasks_ext.results.experiments import Entry, Experiment, Fault, label_entries
from medtasks_ext.results.models import WEIGHTS, facts_of, identity_of, maker_of
from medtasks_ext.results.prices import prices
from medtasks_ext.results.published import published_entries
from medtasks_lab.submissions.check import Answered, Checked, check_submission, read_scores
from medtasks_lab.submissions.kept import answered
from medtasks_lab.submissions.read import submission_folders, submitted_entry
from medtasks_lab.submissions.record import Place, Submission, read_record
from medtasks_lab.submissions.trust import Trust, Verdict, levels_words, self_reported

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_lab.submissions.flags import Evidence

#: fact of the registry of models -> what it is called here
_FACTS = {
    "maker": "organisation",
    "access": "access",
    "domain": "domain",
    "reasoning": "reasoning",
    "released": "date",
    "licence": "license",
    "price_in": "price_in",
    "price_out": "price",
}
_NUMBERS = ("price_in", "price")
_LOOK = "a maintainer looks at it, and clears it in register.yaml, or takes it out"


_UNCHECKED = self_reported("the check did not come to its answers")


@dataclass(frozen=True, eq=False)
class BoardLine:
    """A line of the leaderboard: a model, asked in one way."""

    entry: Entry
    record: Submission | None  # of a submitted one
    #: what is known of the model (`results.models.facts_of`)
    known: Mapping[str, str] = field(default_factory=dict)
    #: what the check found of a submitted one
    checked: Checked = field(default_factory=Checked)

    @property
    def published(self) -> bool:
        """Whether a paper prints it."""
        return self.record is None

    @property
    def title(self) -> str:
        """What readers see: the name in the paper's table, or the model, and what tells it from others."""
        return self.entry.model if self.published else self.entry.label

    @cached_property
    def scored(self) -> dict[str, list[Experiment]]:
        """Strategy -> what has a score that is proven."""
        found: dict[str, list[Experiment]] = {}
        for item in self.entry.experiments.values():
            if item.score is not None and self.is_proven(item):
                found.setdefault(item.strategy, []).append(item)
        return found

    @cached_property
    def model(self) -> str:
        """What lines of one model have in common: its id in the registry or on the hub, else its name."""
        return self._registered.casefold()

    @property
    def _registered(self) -> str:
        known = identity_of(self.entry)
        return known.id if known else self.entry.details.get("hub_id") or self.entry.model

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
            "access": WEIGHTS.get(self.known.get("access", ""), self.known.get("access", "")),
            "domain": self.known.get("domain", "").partition(" ")[0].lower(),
            **{name: float(found[name] or 0) for name in _NUMBERS},
        }
        if not found["price"] and (price := prices().get(self._registered)):
            found |= {"price_in": price.input, "price": price.output}
        return {name: value for name, value in found.items() if value}

    def verdict(self, item: Experiment) -> Verdict:
        """How far a submitted result is trusted."""
        return self.checked.verdicts.get(item.task, _UNCHECKED)

    def is_proven(self, item: Experiment) -> bool:
        """Whether somebody else than the submitter has seen that a score follows, and no flag waits."""
        return self.published or (self.verdict(item).is_proven and not self.checked.waits)

    @cached_property
    def trust(self) -> str:
        """How far its results are trusted, in words; empty of a published one."""
        if self.published:
            return ""
        return levels_words(self.verdict(item) for item in self.entry.experiments.values())

    @cached_property
    def lowest(self) -> Trust | None:
        """The lowest level of its results; None of a published one."""
        if self.published:
            return None
        levels = [self.verdict(item).trust for item in self.entry.experiments.values()]
        return min(levels, key=lambda trust: trust.place)

    def unlike(self, item: Experiment) -> tuple[Difference, ...]:
        """What differs from how the paper asked, and can move the score; of a published one nothing."""
        return () if self.published else item.unlike_the_paper

    @property
    def _owner(self) -> str:
        return maker_of(self.entry.model.partition("/")[0]) if self.record else ""


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
    label_entries([entry for entry, *_ in own])
    papers = published_entries(tasks) if published else []
    site.lines += [BoardLine(entry, None, facts_of(entry, papers)) for entry in papers]
    site.lines += [
        BoardLine(entry, record, facts_of(entry, papers), checked) for entry, record, checked in own
    ]
    if not site.lines:
        raise MedtasksError(
            "there is nothing to show",
            where=submissions,
            remedy="name a folder of submissions, or show published models: leave --no-published out",
        )
    return site


def _submitted(
    root: Path, tasks: Registry, faults: list[Fault]
) -> Iterator[tuple[Entry, Submission, Checked]]:
    """The submissions of a folder, each checked; what cannot be read or does not follow is left out."""
    records: dict[Path, Submission] = {}
    for folder in submission_folders(root):
        try:
            records[folder] = read_record(folder)
        except MedtasksError as error:
            where = "/".join([*folder.parts[-3:], Path(str(error.where)).name])
            faults.append(Fault(where, error.what, error.remedy))
    looked = {folder: _looked_at(folder, record, tasks) for folder, record in records.items()}
    every = [item.evidence for item in looked.values() if item]
    for folder, record in records.items():
        checked = _checked(folder, record, tasks, looked[folder], every)
        name = "/".join(folder.parts[-3:])
        faults += [
            Fault(
                f"{name}/{item.file}",
                f"{item.key}: {item.what}".removeprefix(": "),
                item.remedy,
                skipped=not item.shown,
            )
            for item in checked.findings
        ]
        faults += [Fault(name, str(flag), _LOOK, skipped=False) for flag in checked.flags]
        if any(not item.shown for item in checked.findings):
            continue
        entry = submitted_entry(record, folder, tasks)
        if unknown := record.tasks.keys() - entry.experiments.keys():
            what = f"{len(unknown)} tasks are not known (first: {min(unknown)})"
            faults.append(Fault(str(folder), what, "submit anew"))
        if entry.experiments:
            yield entry, record, checked


def _looked_at(folder: Path, record: Submission, tasks: Registry) -> Answered | None:
    """What its answers prove, and what it is compared by; None where the check does not come so far."""
    if record.invented is not None:
        return None
    try:
        return answered(Place.of(folder), record, read_scores(folder, record, tasks), tasks)
    except MedtasksError:
        return None  # the check says why


def _checked(
    folder: Path, record: Submission, tasks: Registry, known: Answered | None, every: Sequence[Evidence]
) -> Checked:
    """What the check finds. Scores that are said to be invented are shown as such, and nothing is checked."""
    if record.invented is not None:
        return Checked(verdicts=dict.fromkeys(record.tasks, self_reported("its scores are invented")))
    return check_submission(folder, tasks, known=known, others=every)
