"""What the leaderboard shows: published models, and submitted ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.errors import MedtasksError
from medtasks_ext.report.submissions.check import CHECKED, Checked, check_submission
from medtasks_ext.report.submissions.record import RECORD
from medtasks_ext.results.condition_words import difference_words
from medtasks_ext.results.experiments import Entry, Experiment, Fault, label_entries
from medtasks_ext.results.models import WEIGHTS, facts_of, identity_of, maker_of, size_of
from medtasks_ext.results.prices import prices
from medtasks_ext.results.published import published_entries

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.report.submissions.record import Submission

#: what the page calls a fact -> what the registry of models calls it
_FACTS = {"organisation": "maker", "license": "licence", "date": "released", "price": "price_out"}
_FACTS |= {name: name for name in ("reasoning", "price_in")}


@dataclass(frozen=True, eq=False)
class BoardLine:
    """A line of the leaderboard: a model, asked in one way."""

    entry: Entry
    known: Mapping[str, str]  # of the model (`results.models.facts_of`)
    checked: Checked = field(default_factory=Checked)  # what the check found of a submission

    @property
    def record(self) -> Submission | None:
        return self.checked.record

    @property
    def published(self) -> bool:
        return self.record is None

    @property
    def title(self) -> str:
        return self.entry.model if self.published else self.entry.label

    @cached_property
    def model(self) -> str:
        """What lines of one model have in common: its id in the registry or on the hub, else its name."""
        known = identity_of(self.entry)
        return known.id if known else self.entry.details.get("hub_id") or self.entry.model

    @property
    def page(self) -> str:
        """The name of the model's page: letters, digits and dashes, and nothing that leads elsewhere."""
        model = self.model.casefold()
        name = re.sub(r"[^a-z0-9]+", "-", model).strip("-")[:60]
        return f"{name or 'model'}-{sha256(model.encode()).hexdigest()[:6]}.html"

    @cached_property
    def facts(self) -> dict[str, str | float]:
        known = self.known
        found: dict[str, str | float | None] = {ours: known.get(name, "") for ours, name in _FACTS.items()}
        if self.record and not found["organisation"]:
            found["organisation"] = maker_of(self.entry.model.partition("/")[0])
        found |= {name: float(found[name] or 0) for name in ("price_in", "price")}
        if not found["price"] and (price := prices().get(self.model)):
            found |= {"price_in": price.input, "price": price.output}
        access, domain = known.get("access", ""), known.get("domain", "").partition(" ")[0].lower()
        found |= {"size": size_of(self.entry, known), "access": WEIGHTS.get(access, access), "domain": domain}
        return {name: value for name, value in found.items() if value}

    def is_proven(self, item: Experiment) -> bool:
        """Whether somebody else than the submitter has seen that a score follows."""
        return self.published or self.checked.verdicts.get(item.task) == CHECKED

    def apart(self, item: Experiment) -> str:
        """What keeps a result from a rank beside the paper's, beyond trust, in words; empty where nothing."""
        if self.published:
            return ""
        reasons = [difference_words(one) for one in item.unlike_the_paper]
        if item.version.partition("-")[0] != item.dataset.version.partition("-")[0]:
            reasons.append("an older version of the task")
        if item.confirmed.state == "claimed":
            reasons.append("rows or words that nobody has confirmed")
        return "; ".join(reasons)


@dataclass
class Site:
    tasks: Registry
    lines: list[BoardLine] = field(default_factory=list)  # published ones first
    faults: list[Fault] = field(default_factory=list)  # submissions that are left out

    @cached_property
    def models(self) -> dict[str, list[BoardLine]]:
        found: dict[str, list[BoardLine]] = {}
        for line in self.lines:
            found.setdefault(line.page, []).append(line)
        return found


def gather_site(tasks: Registry, submissions: Path | None, *, published: bool = True) -> Site:
    """Read the registry and submissions in `ORG/MODEL/DATE`, with the models that papers print.

    A submission that cannot be read or does not follow is left out, and named.
    """
    site, own = Site(tasks), list[tuple[Entry, Checked]]()
    for file in sorted(submissions.glob(f"*/*/*/{RECORD}") if submissions else ()):
        checked, name = check_submission(file.parent, tasks), "/".join(file.parts[-4:-1])
        site.faults += [Fault(f"{name}: {item.where}", item.what, item.remedy) for item in checked.faults]
        if checked.record is not None and not checked.faults:
            own.append((checked.record.entry(file.parent, tasks), checked))
    label_entries([entry for entry, _ in own])
    papers = published_entries(tasks) if published else []
    shown = [*((entry, Checked()) for entry in papers), *own]
    site.lines += [BoardLine(entry, facts_of(entry, papers), checked) for entry, checked in shown]
    if not site.lines:
        remedy = "name a folder of submissions, or show published models: leave --no-published out"
        raise MedtasksError("there is nothing to show", where=submissions, remedy=remedy)
    return site
