"""What a second site says of a submission: `confirmed-SITE.json` in its folder (`submit --confirm`).

It carries no signature: a person who merges it knows from whom it comes, and `register.yaml` says which sites
may confirm.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, ValidationError

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import parse_json, write_json
from medtasks_ext.results.conditions import comparable, facts
from medtasks_ext.runs.manifest import Manifest
from medtasks_ext.strict import Strict, faults_of
from medtasks_lab.submissions.make import refuse_another_model
from medtasks_lab.submissions.read import submitted_entry
from medtasks_lab.submissions.record import NAME, Share, record_digest
from medtasks_lab.submissions.trust import Trust

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment
    from medtasks_lab.submissions.documents import PublicScores
    from medtasks_lab.submissions.record import Place, Submission, TaskResult

#: The largest difference of scores that may count as agreement, and what counts by default.
MOST_TOLERANCE, TOLERANCE = 0.05, 0.02
#: Documents of a task on which a second site must have looked, where it has so many.
FEWEST = 100
_FILE = re.compile(rf"confirmed-({NAME})\.json")
_MOST_BYTES = 1_000_000
_MADE = "`medtasks submit RUN --confirm SUBMISSION` writes the file, nobody edits it"


class Agreement(Strict):
    """How far two sites agree about one task.

    Attributes:
        n: documents that the second site looked at.
        score: of the second site, on these.
        submitted: of the submission: on the same documents where they can be told apart, else on all.
        margin: half of the 95 % interval of `score`, where `submitted` is of other documents, too; else 0.
        same: documents with the same score, where they can be told apart.
    """

    n: Annotated[int, Field(gt=0)]
    score: Share
    submitted: Share
    margin: Annotated[float, Field(ge=0, le=0.25)] = 0.0
    same: Annotated[int, Field(ge=0)] | None = None


class Confirmation(Strict):
    """The record of a second site.

    Attributes:
        schema_version: of the format.
        by: the site, as `register.yaml` names it.
        day: of the look.
        record: digest of the submission that was looked at (`record_digest`).
        basis: the site asked the model itself, or scored the answers of the submission.
        command: by which it asked; then the result counts as run again.
        root: of its run's folder.
        tolerance: the largest difference that counts as agreement.
        tasks: task -> how far both agree.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    by: Annotated[str, Field(pattern=rf"^{NAME}$")]
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    record: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    basis: Literal["own run", "same answers"]
    command: Annotated[str, Field(max_length=240, pattern=r"^[^\x00-\x1f]*$")] | None = None
    root: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    tolerance: Annotated[float, Field(gt=0, le=MOST_TOLERANCE)]
    tasks: Annotated[dict[str, Agreement], Field(min_length=1)]

    @property
    def trust(self) -> Trust:
        """The level that tasks have of which both sites say the same."""
        return Trust.AGAIN if self.command and self.basis == "own run" else Trust.SITE

    def agrees(self, task: str, n: int) -> bool:
        """Whether it confirms a task.

        Args:
            n: documents of the submission.
        """
        found = self.tasks.get(task)
        if found is None or found.n < min(FEWEST, n):
            return False
        return abs(found.score - found.submitted) <= self.tolerance + found.margin

    def words(self, task: str) -> str:
        """What it says of a task."""
        found = self.tasks[task]
        how = f"{self.trust.value} ({self.by}{f': {self.command}' if self.command else ''})"
        same = "" if found.same is None else f", the same score for {found.same:,}"
        return (
            f"{how}: {found.score:.3f} for {found.submitted:.3f} on {found.n:,} documents{same}, "
            f"tolerance {self.tolerance:g}"
        )


def is_confirmation(name: str) -> bool:
    """Whether a file of a submission is called so."""
    return _FILE.fullmatch(name) is not None


def read_confirmations(folder: Path) -> Iterator[tuple[str, Confirmation | MedtasksError]]:
    """Name of each file of second sites -> what it says, or what is wrong with it."""
    for file in sorted(folder.glob("confirmed-*.json")):
        try:
            yield file.name, _read(file)
        except MedtasksError as error:
            yield file.name, error


def _read(file: Path) -> Confirmation:
    check_regular(file)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise MedtasksError(f"is larger than {_MOST_BYTES:,} bytes", where=file, remedy=_MADE)
        found = Confirmation.model_validate(parse_json(file.read_bytes(), strict=True))
    except (OSError, ValueError) as error:
        what = faults_of(error)[0] if isinstance(error, ValidationError) else "is no JSON"
        raise MedtasksError(what[:160], where=file, remedy=_MADE) from None
    if file.name != f"confirmed-{found.by}.json":
        raise MedtasksError(f"says that it is by {found.by}", where=file, remedy=_MADE)
    return found


def faults_in(
    found: Confirmation, record: Submission, documents: Mapping[str, PublicScores]
) -> Iterator[str]:
    """What is wrong with a confirmation, in words, whatever it says."""
    if found.by.casefold() in {part.casefold() for part in record.model.split("/")}:
        yield "is by the submitter, and a second site is another one"
    if found.record != record_digest(record):
        yield "is of another submission than the one beside it"
    if found.command and found.basis == "same answers":
        yield "says that it was run again, and scored the same answers"
    for name, item in found.tasks.items():
        known = record.tasks.get(name)
        if known is None:
            yield f"{name[:80]}: is no task of the submission"
        elif item.n > known.n:
            yield f"{name}: {item.n:,} documents, and the submission has {known.n:,}"
        elif item.same is not None and item.same > item.n:
            yield f"{name}: {item.same:,} of {item.n:,} documents"
        elif item.n == known.n and abs(item.submitted - (documents[name].value or 0.0)) > 1e-9:
            yield f"{name}: says that {item.submitted} was submitted"


# ---------------------------------------------------------------------- making one


def confirm(
    entry: Entry,
    record: Submission,
    documents: Mapping[str, PublicScores],
    place: Place,
    tasks: Registry,
    *,
    by: str,
    command: str | None,
    tolerance: float,
) -> tuple[Confirmation, dict[str, str]]:
    """What a second site's run says of a submission, and task -> why nothing is said of it.

    Args:
        entry: of the run of this site.
        documents: task -> what its documents contributed, as submitted.
        command: by which the run was made, where that is stated.

    Raises:
        MedtasksError: the run is of another model, or shares no task that was asked alike.
    """
    refuse_another_model(entry, place)
    theirs = submitted_entry(record, place.folder, tasks)
    manifest = Manifest.read(entry.folders[0]) if entry.kind == "medtasks" else None
    shared = {file for file, head in record.heads.items() if manifest and manifest.heads.get(file) == head}
    agreements, left_out = {}, {}
    for name, item in sorted(entry.experiments.items()):
        if name not in theirs.experiments or item.score is None:
            continue
        other = theirs.experiments[name].conditions
        # a part of the documents is held against the same part, or against what it stands for
        mine = item.conditions.on(other.asked.rows.documents or "all", other.observed.n or item.n)
        apart = comparable(facts(mine), facts(other))
        if apart.grade == "other":
            left_out[name] = "other conditions: " + some([one.condition for one in apart.moving])
        else:
            agreements[name] = _agreement(item, record.tasks[name], documents[name])
    if not agreements:
        raise MedtasksError(
            "shares no task with the submission that was asked alike",
            where=entry.folders[0],
            remedy=some([f"{name}: {why}" for name, why in left_out.items()], 3, "; ") or "run its tasks",
        )
    said = Confirmation(
        by=by,
        day=time.strftime("%Y-%m-%d"),
        record=record_digest(record),
        basis="same answers" if shared else "own run",
        command=command,
        root=entry.root,
        tolerance=tolerance,
        tasks=agreements,
    )
    return said, left_out


def _agreement(item: Experiment, submitted: TaskResult, documents: PublicScores) -> Agreement:
    assert item.score is not None and submitted.score is not None  # the callers looked
    ordered = item.dataset.metadata.access == "open" and documents.sums is None
    if item.read_documents is None or (item.n < submitted.n and not ordered):
        interval = item.intervals.get("score")
        margin = 0.0 if interval is None or item.n == submitted.n else (interval.high - interval.low) / 2
        return Agreement(n=item.n, score=item.score, submitted=submitted.score, margin=min(margin, 0.25))
    own = item.read_documents()
    if item.n == submitted.n:
        same = int(np.isclose(own.scores, documents.scores.scores, equal_nan=True).sum()) if ordered else None
        return Agreement(n=item.n, score=item.score, submitted=submitted.score, same=same)
    assert item.read_samples is not None  # documents come with samples
    places = sorted(sample["doc_id"] for sample in item.read_samples())
    theirs = documents.scores
    part = float(theirs.statistic.value(theirs.counts[places].sum(axis=0)))
    same = int(np.isclose(own.scores, theirs.scores[places], equal_nan=True).sum())
    return Agreement(n=item.n, score=item.score, submitted=part, same=same)


def write_confirmation(folder: Path, confirmation: Confirmation) -> Path:
    """Write it into the folder of the submission."""
    file = folder / f"confirmed-{confirmation.by}.json"
    write_json(file, confirmation.model_dump(mode="json", by_alias=True, exclude_none=True))
    return file
