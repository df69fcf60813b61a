"""`medtasks submit`: what of a run may be public, checked before it takes its place."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from medtasks_ext.atomic import cannot_write
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.privacy import text_hash
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.submissions.answers import FinalAnswer, final_answer, write_answers
from medtasks_ext.report.submissions.check import (
    Checked,
    OtherDocumentsError,
    check_submission,
    prompt_hash,
    rebuilt,
    why_unchecked,
)
from medtasks_ext.report.submissions.record import LONGEST, About, AnswersFile, Place, Submission, TaskResult
from medtasks_ext.results.reading import read_runs
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.runs.conditions import Conditions, RunConditions, read_conditions
from medtasks_ext.runs.samples import request_of, turns_of
from medtasks_ext.runs.secrets import is_secret
from medtasks_ext.strict import validated

if TYPE_CHECKING:
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment, Fault
    from medtasks_ext.runs.conditions import Layout

#: Places on somebody's machine or network, among other words; a name of a model has no slash before it.
_PLACES = re.compile(r"\w+://[^\s,;)]+|(?<![\w.~/-])(?:~|\.\.?)?/[^\s,;)]*|\b[A-Za-z]:\\[^\s,;)]*")
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class Submitted:
    record: Submission
    answers: Path | None  # the file of final answers, which is no part of the folder
    left_out: dict[str, str]  # task -> why it is no part of it
    checked: Checked  # what the check found
    faults: tuple[Fault, ...]  # of the run


def submit(
    run: Path,
    out: Path,
    tasks: Registry,
    about: Mapping[str, str],
    answers: Path | None = None,
    address: str | None = None,
) -> Submitted:
    """Write to `…/ORG/MODEL/DATE` what may be public; the file of answers will be had at `address`."""
    place = Place.of(out)
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise MedtasksError("is taken", where=out, remedy="name another date, or delete what lies there")
    faults: list[Fault] = []
    entry, left_out = _kept(read_runs(run, tasks, faults), run, tasks, place)
    record = Submission(
        model=place.model,
        date=place.date,
        about=validated(
            lambda: About.model_validate(dict(about)),
            where="--about",
            remedy=f"NAME=VALUE, names: {', '.join(About.model_fields)}",
            first=True,
        ),
        run=_public_run(entry.conditions),
        versions={
            name: _public_words(str(said)) for name, said in (entry.manifest.get("versions") or {}).items()
        },
        tasks={name: _task(item) for name, item in entry.experiments.items()},
    )
    _refuse_secrets(record)
    file = answers or run.with_name(f"{run.stem if run.is_file() else run.name}.answers.parquet")
    given = write_answers(file, _answers(entry, tasks))
    if given:
        said = AnswersFile(sha256=sha256_of(file), size=file.stat().st_size, address=address)
        record = record.model_copy(update={"answers": said})
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out.parent, prefix=".submission-") as beside:
            folder = Path(beside, *out.absolute().parts[-3:])
            folder.mkdir(parents=True)
            record.write(folder)
            checked = check_submission(folder, tasks, file)
            if checked.faults:
                first = checked.faults[0]
                raise MedtasksError(first.what, where=first.where, remedy=first.remedy)
            shutil.move(folder, out)
    except OSError as error:
        raise cannot_write(out, error) from None
    return Submitted(record, file if given else None, left_out, checked, tuple(faults))


def _kept(entries: Sequence[Entry], run: Path, tasks: Registry, place: Place) -> tuple[Entry, dict[str, str]]:
    if len(entries) != 1:
        what = f"holds {len(entries)} results files" if entries else "holds no results of known tasks"
        remedy = "name one `results_….json`, with its samples beside it (`lm_eval --log_samples`)"
        raise MedtasksError(what, where=run, remedy=remedy)
    [entry] = entries
    if samples := [name for name, item in entry.experiments.items() if item.sample]:
        what = f"{some(samples, 3)}: run on synthetic sample rows, whose scores mean nothing"
        raise MedtasksError(what, where=run, remedy="run the tasks on their own data")
    is_path = _public_words(entry.model) != entry.model
    if not is_path and _plain(entry.model) != _plain(place.model):
        what = f"is a run of {entry.model}, and the folder names {place.model}"
        remedy = "name the folder ORG/MODEL/DATE after the model of the run"
        raise MedtasksError(what, where=run, remedy=remedy)
    reasons = {name: _why_not(item, tasks) for name, item in sorted(entry.experiments.items())}
    left_out = {name: why for name, why in reasons.items() if why}
    if len(left_out) == len(reasons):
        said = some([f"{name}: {why}" for name, why in left_out.items()], 3, "; ")
        raise MedtasksError("no task can be submitted", where=run, remedy=said or "finish the run")
    kept = {name: entry.experiments[name] for name, why in reasons.items() if not why}
    return replace(entry, experiments=kept), left_out


def _plain(model: str) -> str:
    """A model's name without its organisation, as names are compared."""
    return re.sub(r"[^a-z0-9]", "", model.rpartition("/")[2].casefold())


def _why_not(item: Experiment, tasks: Registry) -> str:
    if tasks.is_own(item.dataset):
        return "a dataset of your own, which others do not have"
    if item.version.partition("-")[0] != item.dataset.version.partition("-")[0]:
        return f"scored by version {item.version}, and is {item.dataset.version} now (`medtasks rescore RUN`)"
    return "has no score (`medtasks judge run RUN`)" if item.score is None else ""


def _task(item: Experiment) -> TaskResult:
    assert item.score is not None  # `_why_not` looked
    interval, known = item.intervals.get("score"), item.conditions
    if item.read_documents is not None and (found := item.read_documents()).scored.any():
        interval = found.interval(item.dataset.id)
    if known.observed.n_here is None:  # plain `lm_eval` does not count the rows of the test file
        known = replace(known, observed=replace(known.observed, n_here=item.n))
    return TaskResult(
        n=item.n,
        score=item.score,
        interval=None if interval is None else (interval.low, interval.high),
        valid=item.metrics.get("valid"),
        conditions=_public_conditions(known),
    )


def _answers(entry: Entry, tasks: Registry) -> Iterator[tuple[str, Sequence[FinalAnswer]]]:
    """Task -> its final answers; none where the rows and prompts here are not those of the run."""
    for name, item in entry.experiments.items():
        if item.read_samples is None or why_unchecked(name, tasks):
            continue
        samples = {document_key(sample["doc"]): sample for sample in item.read_samples()}
        given = {key: final_answer(str(sample["resps"][0][0])) for key, sample in samples.items()}
        try:
            here = {document_key(one["doc"]): one for one in rebuilt(name, item.conditions, given, tasks)}
        except (MedtasksError, OtherDocumentsError):
            continue
        otherwise = sum(not _stands_in(request_of(here[key])[0], request_of(samples[key])[0]) for key in here)
        cut = item.conditions.cut
        if otherwise <= cut.get("inputs_cut", 0) + cut.get("shots_dropped", 0):
            yield name, [FinalAnswer(key, prompt_hash(one), given[key]) for key, one in here.items()]


def _stands_in(turns: str, sent: Any) -> bool:
    text = "\n".join(said for _, said in turns_of(sent))
    return all(said.strip() in text for _, said in turns_of(turns))


def _refuse_secrets(record: Submission) -> None:
    text = record.model_dump_json()
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= _SHORTEST_SECRET and value in text:
            raise MedtasksError(
                f"the value of ${name} stands in the run's settings",
                where="medtasks submit",
                remedy="take it out of the run's settings; keys belong into the environment alone",
            )


def _public_run(run: RunConditions) -> RunConditions:
    content = _public_content(replace(run, layout=_public_layout(run.layout)).record())
    return TypeAdapter(RunConditions).validate_python(content)


def _public_conditions(record: Conditions) -> Conditions:
    asked = replace(record.asked, layout=_public_layout(record.asked.layout))
    return read_conditions(_public_content(replace(record, asked=asked).record()))


def _public_layout(layout: Layout) -> Layout:
    text = layout.system_instruction
    return replace(layout, system_instruction=text and text_hash(text))


def _public_content(content: Any) -> Any:
    """The same content without what its user wrote freely, and without places."""
    if isinstance(content, str):
        return _public_words(content) or (content and f"text-{_digest(content)}")
    if isinstance(content, Mapping):
        return {key: _public_content(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_public_content(value) for value in content]
    return content


def _public_words(text: str) -> str:
    """Places on a machine or network become a digest."""
    bare = _PLACES.sub(lambda found: f"place-{_digest(found[0])}", " ".join(text.split()))
    return bare if len(bare) <= LONGEST else f"text-{_digest(bare)}"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:12]
