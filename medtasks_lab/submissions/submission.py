"""`medtasks submit`: a run's submission, verified before it is made and checked before it takes its place."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from medtasks_ext.atomic import cannot_write
from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError
from medtasks_ext.results.condition_words import difference_words
from medtasks_ext.results.reading import read_runs, run_folder
from medtasks_ext.runner.verify import refuse_changed
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.outcomes import read_outcomes
from medtasks_ext.strict import validated
from medtasks_lab.submissions.answers import FinalAnswer, described, write_answers
from medtasks_lab.submissions.check import Checked, check_submission, look_at, read_scores
from medtasks_lab.submissions.confirmations import (
    Confirmation,
    confirm,
    faults_in,
    write_confirmation,
)
from medtasks_lab.submissions.documents import write_documents
from medtasks_lab.submissions.make import make_submission
from medtasks_lab.submissions.read import submitted_entry
from medtasks_lab.submissions.record import DOCUMENTS, FILES, About, Place, Submission, read_record
from medtasks_lab.submissions.rescored import (
    OtherDocumentsError,
    answers_of,
    why_no_answers,
    with_trust,
)

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment, Fault
    from medtasks_lab.submissions.trust import Verdict


#: What the file of answers is called beside a run's folder.
ANSWERS = ".answers.parquet"


@dataclass(frozen=True)
class Submitted:
    """A written submission."""

    record: Submission
    files: tuple[Path, ...]
    answers: Path | None  # the file of final answers, which is no part of the folder
    left_out: dict[str, str]  # task -> why it is no part of it
    no_rank: dict[str, list[str]]  # why results have no rank among published ones -> their tasks
    checked: Checked  # what the check found: how far its scores are trusted, what a person should look at
    faults: tuple[Fault, ...]  # of the run


@dataclass(frozen=True)
class AnswerFile:
    """What becomes of the final answers.

    Attributes:
        file: where they go; by default beside the run's folder.
        addresses: where the file will be had.
        given: whether they are given at all.
    """

    file: Path | None = None
    addresses: tuple[str, ...] = ()
    given: bool = True


def submit(
    run: Path, out: Path, tasks: Registry, about: Mapping[str, str], wish: AnswerFile = AnswerFile()
) -> Submitted:
    """Write what may be public of a run.

    Args:
        run: folder of `medtasks run`, or of `lm_eval --output_path` with samples.
        out: `…/ORG/MODEL/DATE`.
        about: facts of the model (`About`).
        wish: what becomes of its answers.

    Raises:
        MedtasksError: the place is none or is taken, the run does not verify, or holds nothing to submit.
    """
    place = Place.of(out)
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise MedtasksError("is taken", where=out, remedy="name another date, or delete what lies there")
    faults: list[Fault] = []
    entry = _entry(run, tasks, faults)
    made = make_submission(entry, tasks, place, _about(about))
    record, file = _with_answers(made.record, run, entry, tasks, wish)
    documents = dict(zip(record.tasks, made.documents, strict=True))
    looked = look_at(place, record, documents, tasks, file)
    record = with_trust(record, looked.verdicts)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out.parent, prefix=".submission-") as beside:
            folder = Path(beside, *out.absolute().parts[-3:])
            record.write(folder)
            write_documents(folder / DOCUMENTS, made.documents)
            _refuse(check_submission(folder, tasks, known=looked, others=()))
            shutil.move(folder, out)
    except OSError as error:
        raise cannot_write(out, error) from None
    try:
        checked = check_submission(out, tasks, known=looked)  # beside its neighbours
        _refuse(checked)
    except MedtasksError:
        shutil.rmtree(out)
        raise
    written = submitted_entry(record, out, tasks)
    return Submitted(
        record,
        tuple(out / name for name in FILES),
        file,
        made.left_out,
        no_ranks(written.experiments.values(), looked.verdicts),
        checked,
        tuple(faults),
    )


def _entry(run: Path, tasks: Registry, faults: list[Fault]) -> Entry:
    """The results of one run.

    Raises:
        MedtasksError: it does not verify; or a folder of plain `lm_eval` holds several.
    """
    if (folder := run_folder(run)) is not None:
        refuse_changed(folder, tasks)
    entries = read_runs(run, tasks, faults)
    if len(entries) != 1:
        raise MedtasksError(
            f"holds {len(entries)} results files" if entries else "holds no results of known tasks",
            where=run,
            remedy="name one `results_….json`, with its samples beside it (`lm_eval --log_samples`)",
        )
    return entries[0]


def _with_answers(
    record: Submission, run: Path, entry: Entry, tasks: Registry, wish: AnswerFile
) -> tuple[Submission, Path | None]:
    """The record with what it says of its file of answers, and that file."""
    path = wish.file or run.with_name(f"{run.stem if run.is_file() else run.name}{ANSWERS}")
    if not wish.given:
        return record, None
    digests = write_answers(path, _answers(record, entry, tasks))
    if not digests:
        return record, None
    items = {
        name: item.model_copy(update={"answers": digests.get(name)}) for name, item in record.tasks.items()
    }
    said = described(path, wish.addresses)
    return record.model_copy(update={"tasks": items, "answers": said}), path


def _answers(
    record: Submission, entry: Entry, tasks: Registry
) -> Iterator[tuple[str, Sequence[FinalAnswer]]]:
    for name in record.tasks:
        item = entry.experiments[name]
        if why_no_answers(item):
            continue
        try:
            found = answers_of(name, item, tasks, _reasoning(entry, item))
        except (MedtasksError, OtherDocumentsError):
            continue  # the check says that it has no answers, and what follows from that
        yield name, found


def _reasoning(entry: Entry, item: Experiment) -> dict[str, str]:
    """Key of a request -> the reasoning that its server returned apart from the text."""
    folder = RunFolder(entry.folders[0])
    names = [name for name in entry.manifest.get("tasks", ()) if item.dataset.id == name or name == item.task]
    return {
        stored.key: stored.entry.reasoning
        for name in names
        for stored in read_outcomes(folder.responses, name)
        if isinstance(stored.entry, Answer) and stored.entry.reasoning
    }


def _about(given: Mapping[str, str]) -> About:
    remedy = f"NAME=VALUE, names: {', '.join(About.model_fields)}"
    return validated(lambda: About.model_validate(dict(given)), where="--about", remedy=remedy, first=True)


def _refuse(checked: Checked) -> None:
    if checked.findings:
        first = checked.findings[0]
        raise MedtasksError(f"{first.key or first.file}: {first.what}", where=first.file, remedy=first.remedy)


def write_confirmation_of(
    run: Path, folder: Path, tasks: Registry, *, by: str, command: str | None, tolerance: float
) -> tuple[Path, Confirmation, dict[str, str]]:
    """Write beside a submission how far a run of a second site agrees with it.

    Args:
        run: of this site.
        folder: of the submission.
        by: this site, as `register.yaml` names it.
        command: by which the run was made, where that is stated.
        tolerance: the largest difference of scores that counts as agreement.

    Returns:
        The file, what it says, and task -> why nothing is said of it.

    Raises:
        MedtasksError: the run or the submission does not hold, or they share nothing.
    """
    place = Place.of(folder)
    record = read_record(folder)
    documents = read_scores(folder, record, tasks)
    entry = _entry(run, tasks, [])
    said, left_out = confirm(
        entry, record, documents, place, tasks, by=by, command=command, tolerance=tolerance
    )
    if faults := list(faults_in(said, record, documents)):
        raise MedtasksError(faults[0], where=folder, remedy="let a second site confirm it (--by SITE)")
    return write_confirmation(folder, said), said, left_out


# ---------------------------------------------------------------------- which results have a rank


def why_no_rank(item: Experiment, verdict: Verdict) -> str:
    """Why a result has no rank among published ones, the first reason; empty where it has one.

    Args:
        item: the result.
        verdict: how far its score is trusted.
    """
    if not item.whole:
        missing = item.coverage.words
        return f"on a part of its rows or judgements{f' ({missing})' if missing else ''}"
    if not verdict.is_proven:
        return verdict.words + (f": {verdict.why}" if verdict.why else "")
    if item.version.partition("-")[0] != item.dataset.version.partition("-")[0]:
        return "of an older version of its task"
    if unlike := item.unlike_the_paper:
        return f"other conditions than in the suite's paper: {'; '.join(map(difference_words, unlike))}"
    if item.confirmed.state == "claimed":
        return "nobody has confirmed that its rows and words are the suite's"
    return ""


def no_ranks(items: Iterable[Experiment], verdicts: Mapping[str, Verdict]) -> dict[str, list[str]]:
    """Reason -> tasks that have no rank among published results for it, the commonest reason first.

    Figures that differ from task to task are left out of the reason.
    """
    found: dict[str, list[str]] = {}
    for item in items:
        if why := why_no_rank(item, verdicts[item.task]):
            found.setdefault(why.partition(" (")[0], []).append(item.task)
    return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))
