"""`medtasks card --layout medtasks`: what of a run may be public, checked before it takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.privacy import text_hash
from medtasks_ext.prompts.documents import document_key
from medtasks_ext.report.submissions import (
    LONGEST,
    Checked,
    FinalAnswer,
    OtherDocumentsError,
    Submission,
    check_record,
    final_answer,
    place_of,
    prompt_hash,
    rebuilt,
    why_unchecked,
)
from medtasks_ext.results.reading import read_runs
from medtasks_ext.runs.folder import refuse_changed
from medtasks_ext.runs.records import request_of, turns_of
from medtasks_ext.strict import validated

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Registry
    from medtasks_ext.results.experiments import Entry, Experiment, Fault
    from medtasks_ext.runs.records import Sample

#: Places on somebody's machine or network, among other words; a name of a model has no slash before it.
_PLACES = re.compile(r"\w+://[^\s,;)]+|(?<![\w.~/-])(?:~|\.\.?)?/[^\s,;)]*|\b[A-Za-z]:\\[^\s,;)]*")


def submit(run: Path, out: Path, tasks: Registry) -> tuple[Checked, list[str]]:
    """Write what may be public; returns what the check found, and what is left out, in words."""
    model, date = place_of(out)
    if out.is_symlink() or out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise MedtasksError("is taken", where=out, remedy="name another date, or delete what lies there")
    faults: list[Fault] = []
    entry, left_out = _kept(read_runs(run, tasks, faults), run, tasks, model)
    content = {
        "model": model,
        "date": date,
        "run": _public(asdict(entry.conditions)),
        "versions": {name: _public(str(said)) for name, said in entry.manifest.get("versions", {}).items()},
        "tasks": {name: _task(item) for name, item in entry.experiments.items()},
    }
    record = validated(lambda: Submission.model_validate(content), where=run)
    answers = dict(_answers(entry, tasks))
    checked = check_record(record, tasks, lambda task: answers.get(task, ()))
    for fault in checked.faults:
        raise MedtasksError(fault.what, where=fault.where, remedy=fault.remedy)
    record.write(out, answers)
    return checked, [*map(str, faults), *(f"left out: {what}" for what in left_out)]


def _kept(entries: Sequence[Entry], run: Path, tasks: Registry, model: str) -> tuple[Entry, list[str]]:
    """The run with what can be submitted, and what is left out."""
    if len(entries) != 1:
        what = f"holds {len(entries)} results files" if entries else "holds no results of known tasks"
        remedy = "name one `results_….json`, with its samples beside it (`lm_eval --log_samples`)"
        raise MedtasksError(what, where=run, remedy=remedy)
    [entry] = entries
    for folder in entry.folders:
        refuse_changed(folder)
    if samples := [name for name, item in entry.experiments.items() if item.sample]:
        what = f"{some(samples, 3)}: run on synthetic sample rows, whose scores mean nothing"
        raise MedtasksError(what, where=run, remedy="run the tasks on their own data")
    plain = [re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].casefold()) for name in (entry.model, model)]
    if _public(entry.model) == entry.model and plain[0] != plain[1]:  # else it is a folder of weights
        what = f"is a run of {entry.model}, and the folder names {model}"
        remedy = "name the folder ORG/MODEL/DATE after the model of the run"
        raise MedtasksError(what, where=run, remedy=remedy)
    kept: dict[str, Experiment] = {}
    left_out: list[str] = []
    for name, item in sorted(entry.experiments.items()):
        said, here = item.version, item.dataset.version
        if tasks.is_own(item.dataset):
            left_out.append(f"{name}: a dataset of your own, which others do not have")
        elif said.partition("-")[0] != here.partition("-")[0]:
            left_out.append(f"{name}: scored by version {said}, and is {here} now (`medtasks rescore RUN`)")
        elif item.conditions.repeats > 1:
            left_out.append(f"{name}: asked several times, and a submission has one answer to each document")
        elif item.score is None:
            left_out.append(f"{name}: has no score (`medtasks judge RUN`)")
        else:
            kept[name] = item
    if not kept:
        remedy = some(left_out, 3, "; ") or "finish the run"
        raise MedtasksError("no task can be submitted", where=run, remedy=remedy)
    return replace(entry, experiments=kept), left_out


def _task(item: Experiment) -> Json:
    interval, known = item.intervals.get("score"), item.conditions
    if item.read_documents is not None and (found := item.read_documents()).scored.any():
        interval = found.interval(item.dataset.id)
    if known.n_here is None:  # plain `lm_eval` does not count the rows of the test file
        known = replace(known, n_here=item.n)
    return {
        "n": item.n,
        "score": item.score,
        "interval": interval and (interval.low, interval.high),
        "valid": item.metrics.get("valid"),
        "conditions": _public(asdict(known)),
    }


def _answers(entry: Entry, tasks: Registry) -> Iterator[tuple[str, Sequence[FinalAnswer]]]:
    """Task -> its final answers; none where the rows and prompts here are not those of the run."""
    for name, item in entry.experiments.items():
        if item.read_samples is None or why_unchecked(name, tasks):
            continue
        samples = {document_key(sample["doc"]): sample for sample in item.read_samples()}
        given = {key: final_answer(str(sample["resps"][0][0])) for key, sample in samples.items()}
        try:
            made = rebuilt(name, item.conditions, given, tasks)
        except (MedtasksError, OtherDocumentsError):
            continue
        here = {document_key(one["doc"]): one for one in made}
        sent = {key: "".join(text for _, text in _turns(one)) for key, one in samples.items()}
        otherwise = sum(any(text.strip() not in sent[key] for _, text in _turns(here[key])) for key in here)
        if otherwise <= sum(item.conditions.cut.get(key, 0) for key in ("inputs_cut", "shots_dropped")):
            yield name, [FinalAnswer(key, prompt_hash(one), given[key]) for key, one in here.items()]


def _turns(sample: Sample) -> list[tuple[str, str]]:
    return turns_of(request_of(sample)[0])


def _public(content: Any) -> Any:
    """The same content; places and what its user wrote freely become digests."""
    if isinstance(content, str):
        line = _PLACES.sub(lambda found: text_hash(found[0]), " ".join(content.split()))
        return line if bool(line) == bool(content) and len(line) <= LONGEST else text_hash(content)
    if isinstance(content, dict):
        free = {
            key: text_hash(value) for key, value in content.items() if key == "system_instruction" and value
        }
        return {key: _public(value) for key, value in (content | free).items()}
    return [_public(value) for value in content] if isinstance(content, (list, tuple)) else content
