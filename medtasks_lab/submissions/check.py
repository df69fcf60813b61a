"""Whether a submission holds: every score computed again from what it carries, by the code of a run."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.registry.yamlfile import read_mapping
from medtasks_ext.results.document_scores import score_statistic
from medtasks_ext.results.experiments import unlike_runs, unlike_tasks
from medtasks_ext.stats.statistic import mean
from medtasks_ext.strict import Strict, validated
from medtasks_lab.submissions.confirmations import (
    Confirmation,
    faults_in,
    is_confirmation,
    read_confirmations,
)
from medtasks_lab.submissions.documents import (
    PublicScores,
    documents_of,
    earlier_spread,
    public_scores,
    read_documents,
    spread_of,
)
from medtasks_lab.submissions.examples import MOST_TASKS, Example, examples_of
from medtasks_lab.submissions.flags import Evidence, Flag, flags_of, waiting
from medtasks_lab.submissions.make import TOLERANCE, suite_results
from medtasks_lab.submissions.read import submission_folders, submitted_entry
from medtasks_lab.submissions.record import (
    DOCUMENTS,
    FILES,
    MOST_OF_A_PULL_REQUEST,
    NAME,
    RECORD,
    FlagKind,
    Place,
    Submission,
    read_record,
    record_digest,
)
from medtasks_lab.submissions.rescored import check_answers
from medtasks_lab.submissions.trust import Trust, Verdict

if TYPE_CHECKING:
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.stats.intervals import Interval
    from medtasks_lab.submissions.record import Spread, TaskResult
    from medtasks_lab.submissions.rescored import Rebuilt


_MADE = "the files are written by `medtasks submit`, never by hand"
_TWICE = "tasks"
_CLAIM = "see that the file of answers can be had and is the one of this submission, or submit anew"
_RESCORE = "`medtasks rescore RUN`, then submit anew"


@dataclass(frozen=True)
class Finding:
    """What does not fit."""

    file: str  # of the submission, or its folder
    key: str  # inside it; empty for the file as a whole
    what: str  # is wrong
    remedy: str  # how to mend it
    shown: bool = False  # the leaderboard shows the submission all the same, without a rank

    def __str__(self) -> str:
        return f"{self.file}: {f'{self.key}: ' if self.key else ''}{self.what}\n  → {self.remedy}"


@dataclass(frozen=True)
class Answered:
    """What the answers of a submission prove, and what it is compared by."""

    verdicts: dict[str, Verdict]  # task -> how far its score is trusted
    evidence: Evidence
    examples: tuple[Example, ...] = ()  # of answers that were checked


@dataclass
class Checked:
    """What was looked at."""

    model: str = ""  # ORG/MODEL
    tasks: int = 0  # whose scores were computed again
    documents: int = 0  # they follow from
    findings: list[Finding] = field(default_factory=list)  # what does not fit
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # task -> how far its score is trusted
    flags: list[Flag] = field(default_factory=list)  # what a person should look at, and has not
    confirmations: list[Confirmation] = field(default_factory=list)  # of second sites that count
    examples: tuple[Example, ...] = ()  # of answers that were checked
    record: str = ""  # digest of the record, which a maintainer clears flags of

    @property
    def waits(self) -> str:
        """Why nothing of it has a rank yet; empty where a person need not look."""
        return waiting(self.flags)


def check_submission(
    folder: Path,
    tasks: Registry,
    answers: Path | None = None,
    known: Answered | None = None,
    others: Sequence[Evidence] | None = None,
) -> Checked:
    """Compute everything in a submission that can be computed, and compare.

    Args:
        folder: `ORG/MODEL/DATE`; its neighbours are looked at for the same model and conditions.
        answers: the file of answers; None: it is downloaded from where the record says.
        known: what the answers prove, where they were checked just now.
        others: what other submissions are compared by; None: it is read from the neighbours, without
            their answers.
    """
    found = Checked()
    try:
        place = Place.of(folder)
        found.model = place.model
        if findings := list(_files(place)):
            found.findings += findings
            return found
        record = read_record(folder)
        found.record = record_digest(record)
        found.findings += _names(record, place)
        found.findings += [
            finding for name, item in record.tasks.items() for finding in _known(name, item, tasks)
        ]
        if found.findings:
            return found
        documents = read_scores(folder, record, tasks)
        found.findings += _scores(record, documents, tasks, found)
        found.findings += _groups(folder, record, tasks)
        if found.findings:
            return found
        looked = known or look_at(place, record, documents, tasks, answers)
        found.verdicts, found.examples = dict(looked.verdicts), looked.examples
        found.findings += _claims(record, found.verdicts)
        found.findings += _confirmed(place, record, documents, found)
        found.findings += _twice(place, record, tasks)
        beside = _neighbours(place, tasks) if others is None else others
        found.flags += _flags(place, record, looked.evidence, beside, tasks, found)
    except MedtasksError as error:
        where = Path(str(error.where or folder))
        name = where.name if where.parent == folder else str(where)
        found.findings.append(Finding(name, "", error.what, error.remedy or _MADE))
    return found


def too_large(folders: Sequence[Path]) -> Finding | None:
    """What is wrong with folders that are more than a pull request may hold; None where they are not."""
    sizes = {folder: sum(item.stat().st_size for item in _entries(folder)) for folder in folders}
    if (size := sum(sizes.values())) <= MOST_OF_A_PULL_REQUEST:
        return None
    largest = max(sizes, key=lambda folder: sizes[folder])
    what = f"{size:,} bytes in all, and a pull request may have {MOST_OF_A_PULL_REQUEST:,}"
    remedy = "open a pull request for each submission; submit each strategy from a run of its own"
    return Finding(str(largest), "", what, remedy)


def _entries(folder: Path) -> list[Path]:
    return [item for item in folder.rglob("*") if item.is_file() and not item.is_symlink()]


def look_at(
    place: Place,
    record: Submission,
    documents: Mapping[str, PublicScores],
    tasks: Registry,
    answers: Path | None,
) -> Answered:
    """Check the answers of a submission, and gather what it is compared by."""
    evidence = Evidence.of(place.name, record, documents, tasks)
    examples: list[Example] = []

    def watch(task: str, found: Rebuilt) -> None:
        evidence.look(task, found)
        if len({item.task for item in examples}) < MOST_TASKS:
            examples.extend(examples_of(task, record.tasks[task], found))

    verdicts = check_answers(record, documents, tasks, answers, watch)
    return Answered(verdicts, evidence, tuple(examples))


def _neighbours(place: Place, tasks: Registry) -> Iterator[Evidence]:
    """What other submissions are compared by, as far as their folders say it."""
    for folder in submission_folders(place.root):
        if folder.absolute() == place.folder.absolute():
            continue
        try:
            record = read_record(folder)
            yield Evidence.of(Place.of(folder).name, record, read_scores(folder, record, tasks), tasks)
        except MedtasksError:
            continue  # its own check says what is wrong with it


def _flags(
    place: Place,
    record: Submission,
    mine: Evidence,
    others: Iterable[Evidence],
    tasks: Registry,
    found: Checked,
) -> Iterator[Flag]:
    register = read_register(place.root)
    others = [other for other in others if other.name != mine.name]
    flags = list(flags_of(record, mine, others, tasks))
    if odd := [name for name, verdict in found.verdicts.items() if verdict.at_odds]:
        words = f"{some(odd, 3)}: {found.verdicts[odd[0]].why}"
        flags.append(Flag("answers that do not give the scores", words))
    if twice := [item for item in found.findings if item.key == _TWICE]:
        later = any(other.model == mine.model and other.date <= mine.date for other in others)
        flags.append(Flag("the same model and conditions twice", twice[0].what, waits=later))
    yield from (flag for flag in flags if not register.clears(place.name, found.record, flag.kind))


def _confirmed(
    place: Place, record: Submission, documents: Mapping[str, PublicScores], found: Checked
) -> Iterator[Finding]:
    """What second sites say; the levels of tasks about which they agree rise."""
    register = read_register(place.root)
    for file, said in read_confirmations(place.folder):
        if isinstance(said, MedtasksError):
            yield Finding(file, "", said.what, said.remedy or _MADE, shown=True)
            continue
        faults = list(faults_in(said, record, documents))
        if not register.knows(said.by):
            faults.append(f"no site of {REGISTER} is called {said.by}")
        if faults:
            yield Finding(file, "", faults[0], "let a second site write it", shown=True)
            continue
        found.confirmations.append(said)
        for name in said.tasks:
            before = found.verdicts[name]
            if not said.agrees(name, record.tasks[name].n):
                words = f"{before.why}; " * bool(before.why) + f"not confirmed: {said.words(name)}"
                found.verdicts[name] = replace(before, why=words)
            elif said.trust.place > before.trust.place:
                found.verdicts[name] = Verdict(said.trust, said.words(name), before.judged)


def _files(place: Place) -> Iterator[Finding]:
    """Only the two files, no links: what else lies there could be text."""
    above = [place.folder, place.folder.parent, place.folder.parent.parent]
    for folder in above:
        if folder.is_symlink():
            yield Finding(str(folder), "", "is a symbolic link", "put the folder itself there")
            return
    if not place.folder.is_dir():
        yield Finding(str(place.folder), "", "no such folder", "name a folder ORG/MODEL/DATE")
        return
    for item in sorted(os.scandir(place.folder), key=lambda item: item.name):
        if item.is_symlink():
            yield Finding(item.name, "", "is a symbolic link", "put the file itself there")
        elif item.name not in FILES and not is_confirmation(item.name):
            yield Finding(item.name[:80], "", f"is no file of a submission ({', '.join(FILES)})", "delete it")
        elif not stat.S_ISREG(item.stat(follow_symlinks=False).st_mode):
            yield Finding(item.name, "", "is no file", "put the file itself there")


def _names(record: Submission, place: Place) -> Iterator[Finding]:
    for key, said, named in (("model", record.model, place.model), ("date", record.date, place.date)):
        if said != named:
            yield Finding(
                RECORD, key, f"is {said}, and the folder says {named}", "move the folder, or submit anew"
            )
    chained = any(file.startswith("responses/") for file in record.heads)
    # plain `lm_eval` has no chains: its answers speak for themselves
    if not chained and (record.root or record.answers is None):
        yield Finding(RECORD, "heads", "has no chain of answers", "submit a run of `medtasks run`")
    if record.invented is not None:
        yield Finding(RECORD, "invented", "the scores are invented", "submit a run")


def _known(name: str, item: TaskResult, tasks: Registry) -> Iterator[Finding]:
    """What a task's record says beside its scores."""
    key = f"tasks.{name}"
    asked = tasks.asked(name)
    if asked is None:
        yield Finding(
            RECORD, key, "no task is called so", "submit with the version of medtasks of this repository"
        )
        return
    dataset, strategy = asked
    conditions, said = item.conditions, item.conditions.asked
    key_asked = f"{key}.conditions.asked"
    if item.version.partition("-")[0] != dataset.version.partition("-")[0]:
        what = f"is {item.version}, and the task is {dataset.version} here"
        yield Finding(RECORD, f"{key_asked}.version", what, _RESCORE, shown=True)
    if said.strategy != strategy:
        what = f"is {said.strategy}, and the task is {strategy}"
        yield Finding(RECORD, f"{key_asked}.strategy", what, _MADE)
    if conditions.synthetic or said.rows.origin == "sample":
        what = "the rows are synthetic sample rows"
        yield Finding(RECORD, f"{key_asked}.rows.source", what, "run on the task's own data")
    if item.score is None:
        yield Finding(RECORD, f"{key}.score", "is missing", "submit tasks that have a score")
    statistic = score_statistic(dataset, strategy)
    if item.statistic != statistic.name:
        what = f"is {item.statistic[:40]}, and the task's is {statistic.name}"
        yield Finding(RECORD, f"{key}.statistic", what, _RESCORE, shown=True)
    withheld = dataset.metadata.access != "open" and statistic is not mean
    if withheld != (item.sums is not None):
        what = (
            "the counts of documents are not public: sums must stand here"
            if withheld
            else "belongs to no such task"
        )
        yield Finding(RECORD, f"{key}.sums", what, _MADE)
    of_suite = dataset.n_documents
    stated, here = said.rows.n_of_suite or 0, conditions.observed.n_here or 0
    if stated != of_suite:
        what = f"is {stated}, and the suite states {of_suite}"
        yield Finding(RECORD, f"{key_asked}.rows.n_of_suite", what, _MADE)
    if conditions.observed.n != item.n:
        what = f"is {conditions.observed.n}, and there are {item.n} documents"
        yield Finding(RECORD, f"{key}.conditions.observed.n", what, _MADE)
    if (said.rows.documents or "all") == "all" and item.n < here:
        what = f"{item.n:,} documents, and all {here:,} were asked"
        yield Finding(RECORD, f"{key}.n", what, _MADE)
    if item.n > here:
        yield Finding(RECORD, f"{key}.n", f"{item.n:,} documents of {here:,} rows", _MADE)


# ---------------------------------------------------------------------- scores


def read_scores(folder: Path, record: Submission, tasks: Registry) -> dict[str, PublicScores]:
    """Task -> what its documents contributed.

    Raises:
        MedtasksError: the file is damaged, or of other documents.
    """
    asked = {name: known for name in record.tasks if (known := tasks.asked(name))}
    return documents_of(
        read_documents(folder / DOCUMENTS),
        {name: item.n for name, item in record.tasks.items()},
        {name: score_statistic(dataset, strategy) for name, (dataset, strategy) in asked.items()},
        {name: item.sums for name, item in record.tasks.items() if item.sums is not None},
    )


def _scores(
    record: Submission, documents: Mapping[str, PublicScores], tasks: Registry, found: Checked
) -> Iterator[Finding]:
    for name, item in record.tasks.items():
        known = tasks.asked(name)
        assert known is not None  # `_known` looked
        found.tasks += 1
        found.documents += item.n
        yield from _task(name, item, documents[name], known[0])


def _claims(record: Submission, verdicts: Mapping[str, Verdict]) -> Iterator[Finding]:
    """Levels of trust that do not follow."""
    for name, item in record.tasks.items():
        found = verdicts[name]
        if item.trust.place > Trust.ANSWERS.place:
            what = f"is {item.trust.value}, which only a second site can say"
            yield Finding(RECORD, f"tasks.{name}.trust", what, _MADE)
        elif item.trust.place > found.trust.place:
            what = f"is {item.trust.value}, and the check finds {found.words}: {found.why}"
            yield Finding(RECORD, f"tasks.{name}.trust", what, _CLAIM, shown=True)


def _task(name: str, item: TaskResult, documents: PublicScores, dataset: Dataset) -> Iterator[Finding]:
    if finding := _sound(name, documents, dataset):
        yield finding
        return
    again = {"score": documents.value, "valid": documents.valid, "unclosed": documents.unclosed}
    interval = documents.interval(dataset.id)
    stated = {"score": item.score, "valid": item.valid, "unclosed": item.unclosed}
    for key, value in again.items():
        if not _same(stated[key], value):
            what = f"is {stated[key]}, and follows as {value} from the documents"
            yield Finding(RECORD, f"tasks.{name}.{key}", what, _MADE)
    spread = item.spread
    if interval is None:
        # the run's own, which nobody can compute from sums; there must be no other
        if spread is not None and (documents.sums is None or not spread.low <= spread.high):
            yield Finding(RECORD, f"tasks.{name}.spread", "does not follow from the documents", _MADE)
        return
    if spread is None or not _follows(spread, documents, dataset, interval):
        what = "is not the interval that follows from the documents"
        yield Finding(RECORD, f"tasks.{name}.spread", what, _MADE)


def _follows(spread: Spread, documents: PublicScores, dataset: Dataset, interval: Interval) -> bool:
    """Whether a spread is that of the documents, as this version or an earlier one states it."""
    stated = (spread.low, spread.high, spread.sd)
    if all(map(_same, stated, spread_of(interval))):
        return True
    draws = documents.draws(dataset.id)
    return draws is not None and all(map(_same, stated, earlier_spread(draws)))


def _sound(name: str, documents: PublicScores, dataset: Dataset) -> Finding | None:
    """Whether the values of documents are possible, and stand in the order in which they must."""
    scores = documents.scores
    counts = np.array(documents.sums) if documents.sums is not None else scores.counts
    shares = [values[~np.isnan(values)] for values in (scores.valid, scores.unclosed)]
    key, remedy = f"rows of {name}", _MADE
    if not np.isfinite(counts).all() or not all(((part >= 0) & (part <= 1)).all() for part in shares):
        return Finding(DOCUMENTS, key, "a value is no number, or no share", remedy)
    if scores.counts[~scores.scored].any():
        return Finding(DOCUMENTS, key, "a document that takes no part in the score has counts", remedy)
    if documents.sums is None and scores.statistic is not mean:
        alone, counted = np.full(len(scores.scores), np.nan), scores.counts.any(axis=1)
        alone[counted] = scores.statistic.value(scores.counts[counted])
        if not np.allclose(alone, scores.scores, atol=TOLERANCE, equal_nan=True):
            return Finding(DOCUMENTS, key, "the score of a document does not follow from its counts", remedy)
    if dataset.metadata.access != "open":
        mixed = public_scores(scores, is_open=False).scores
        if not (
            np.array_equal(mixed.scores, scores.scores, equal_nan=True)
            and np.array_equal(mixed.units, scores.units)
        ):
            return Finding(
                DOCUMENTS, key, "documents of data that is not open keep an order of their own", remedy
            )
    return None


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _groups(folder: Path, record: Submission, tasks: Registry) -> Iterator[Finding]:
    again = suite_results(submitted_entry(record, folder, tasks), tasks)
    for name in sorted(again.keys() | record.groups.keys()):
        one, other = record.groups.get(name), again.get(name)
        if one is None or other is None:
            yield Finding(
                RECORD,
                f"groups.{name[:80]}",
                "follows from no task" if other is None else "is missing",
                _MADE,
            )
        elif not _same(one.score, other.score) or (one.tasks, one.of) != (other.tasks, other.of):
            what = f"is {one.score} on {one.tasks} tasks, and follows as {other.score} on {other.tasks}"
            yield Finding(RECORD, f"groups.{name}", what, _MADE)


# ---------------------------------------------------------------------- the same twice


def _twice(place: Place, record: Submission, tasks: Registry) -> Iterator[Finding]:
    """The same model under the same conditions must not stand there twice."""
    own = submitted_entry(record, place.folder, tasks)
    for folder in _beside(place):
        try:
            other = read_record(folder)
        except MedtasksError:
            continue  # its own check says what is wrong with it
        entry = submitted_entry(other, folder, tasks)
        shared = own.experiments.keys() & entry.experiments.keys()
        same = sorted(shared - unlike_tasks(own, entry).keys())
        if same and not unlike_runs(own, entry):
            named = f"{folder.parent.parent.name}/{folder.parent.name}/{folder.name}"
            what = f"{len(same)} tasks are those of {named}: same model, same conditions (first: {same[0]})"
            remedy = f"delete {named}, which this one replaces, or leave this one out"
            yield Finding(RECORD, _TWICE, what, remedy, shown=True)


def _beside(place: Place) -> list[Path]:
    """Other submissions of the model, however its name is spelled."""
    wanted = place.model.casefold()
    return [
        folder
        for folder in submission_folders(place.root)
        if folder != place.folder.absolute() and "/".join(folder.parts[-3:-1]).casefold() == wanted
    ]


# ---------------------------------------------------------------------- what maintainers say of submissions


REGISTER = "register.yaml"


class KnownSite(Strict):
    """Who may confirm results of others."""

    name: Annotated[str, Field(pattern=rf"^{NAME}$")]
    title: str  # as people know it


class Cleared(Strict):
    """Flags that a person has looked at, and found no fault."""

    submission: str  # ORG/MODEL/DATE
    record: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # its digest, as the check prints it
    flags: Annotated[list[FlagKind], Field(min_length=1)]
    by: str  # which maintainer
    why: str


class Register(Strict):
    """The content of the file, which looks so:

        sites:                      # who may confirm results of others (submit --confirm)
          - {name: charite, title: Charité, Berlin}
        cleared:                    # flags that you have looked at
          - submission: ORG/MODEL/DATE
            record: 5f…             # as the check prints it; another record is flagged again
            flags: [far above the best published]
            by: your name
            why: the answers of 40 documents were read; the model is new

    Before `confirmed-SITE.json` is merged, see that the pull request comes from that site: the file carries
    no signature. Before a flag is cleared, read answers, compare them with the submission that is named, and
    ask for the run (`medtasks verify RUN --against submission.json`).
    """

    sites: list[KnownSite] = Field(default=[])
    cleared: list[Cleared] = Field(default=[])

    def knows(self, site: str) -> bool:
        """Whether a site may confirm."""
        return any(item.name.casefold() == site.casefold() for item in self.sites)

    def clears(self, submission: str, record: str, flag: FlagKind) -> bool:
        """Whether a person has cleared a flag of a submission, as its record is now."""
        return any(
            (item.submission, item.record) == (submission, record) and flag in item.flags
            for item in self.cleared
        )


def read_register(root: Path) -> Register:
    """The register of a folder of submissions; an empty one where there is none.

    Raises:
        MedtasksError: it is not as it should be.
    """
    file = root / REGISTER
    if not file.is_file():
        return Register()
    remedy = "medtasks_lab/submissions/check.py shows one"
    return validated(
        lambda: Register.model_validate(read_mapping(file)), where=file, remedy=remedy, first=True
    )
