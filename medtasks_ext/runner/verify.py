"""Whether a run's folder holds what the run wrote: its records, and what follows from them."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from medtasks_ext.atomic import cannot_write
from medtasks_ext.collector import collector_paused
from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import read_json
from medtasks_ext.prompts.documents import document_key, without_places
from medtasks_ext.results.document_scores import (
    aggregations,
    document_scores,
    load_document_scores,
    score_statistic,
)
from medtasks_ext.results.drawn import drawn_results
from medtasks_ext.results.reading import at_odds
from medtasks_ext.results.run_files import RunResults
from medtasks_ext.runner.requests import readable, request_key
from medtasks_ext.runner.run import asked_with, loaded_with
from medtasks_ext.runs.chain import sealed_head
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import CHAINED, Manifest, TaskState
from medtasks_ext.runs.outcomes import Binding, Stored, judged_files, read_file
from medtasks_ext.runs.samples import options_of
from medtasks_ext.runs.seal import Change, Sealed, look

if TYPE_CHECKING:
    from medtasks_ext.prompts.documents import LoadedRecord
    from medtasks_ext.registry import Dataset, Registry
    from medtasks_ext.runner.run import Run
    from medtasks_ext.runs.choice import Drawn
    from medtasks_ext.runs.manifest import Identity
    from medtasks_ext.runs.outcomes import Binding
    from medtasks_ext.stats.statistic import Statistic


#: what a model said: a text, or of each option its log-likelihood and whether greedy decoding writes it
Said: TypeAlias = "str | list[list[float | bool]]"
#: sums of other versions of NumPy differ in their last digits
_TOLERANCE = 1e-9
_SHOWN = 3  # files that a note names


@dataclass
class Verified:
    """What was looked at."""

    tasks: int = 0  # number of finished ones
    answers: int = 0  # number of answers in the records
    judgements: int = 0  # number of lines that judges left
    sealed: Sealed = field(default_factory=Sealed)  # how the folder stands against its seal
    changes: list[Change] = field(default_factory=list)  # what does not hold
    notes: list[str] = field(default_factory=list)  # in words, what could not be held against anything


def verify(folder: Path, registry: Registry, heads: Mapping[str, str] | None = None) -> Verified:
    """Check the records against chains and seals, and what follows from the records against them.

    Args:
        heads: published ones (`Manifest.heads`), which the manifest's are held against.

    Raises:
        MedtasksError: it is no run, or one whose lines carry no chain.
    """
    manifest, files = Manifest.read(folder), RunFolder(folder)
    if manifest.schema_version < CHAINED:
        raise MedtasksError(
            f"was written by an older version (schema {manifest.schema_version}), whose lines carry no chain",
            where=files.manifest,
            remedy="it can be reported and rescored, and not be verified",
        )
    verified = Verified(sealed=look(folder, whole=True))
    verified.changes += verified.sealed.changes
    with _noting(verified, files):
        verified.changes += _unsealed(folder, manifest, heads)
    loose: list[str] = []
    for task, entry in sorted(manifest.tasks.items()):
        answers: dict[str, Said] = {}
        bound = BoundFiles(manifest.identity)
        with _noting(verified, files), collector_paused():
            for stored in bound.read(files.responses, task):
                if isinstance(stored.entry, Answer):
                    chosen = [list(pair) for pair in stored.entry.likelihoods]
                    answers[stored.key] = chosen or readable(stored.entry.text)
        verified.answers += len(answers)
        verified.changes += bound.changes
        loose += bound.loose
        if entry.state is TaskState.DONE and (asked := registry.asked(task)):
            verified.tasks += 1
            with _noting(verified, files), collector_paused():
                verified.changes += _task(
                    files, task, asked, answers, manifest.identity, entry.n, entry.choice.drawn
                )
                _compare_loaded(verified, task, entry.bound, bound, files.read_task(task)["loaded"])
    for task in judged_files(files.judgements):
        bound = BoundFiles(manifest.identity)
        with _noting(verified, files):
            verified.judgements += sum(1 for _ in bound.read(files.judgements, task))
        verified.changes += bound.changes
        loose += bound.loose
    if loose:
        verified.notes.append(
            f"of an older version, which does not say whose outcomes they are: {some(loose, _SHOWN)}"
        )
    if files.results_file.is_file():
        with _noting(verified, files):
            verified.changes += _results(files, manifest)
    return verified


def refuse_changed(folder: Path, registry: Registry) -> None:
    """Refuse to publish what the run did not write.

    Raises:
        MedtasksError: something was changed, or as for `verify`.
    """
    verified = verify(folder, registry)
    if verified.sealed.is_open:
        raise MedtasksError(
            "is open: a call is under way, or was cut off",
            where=folder,
            remedy="call the same command again; it ends with a root",
        )
    if changes := verified.changes:
        raise MedtasksError(
            f"{changes[0].file}: {changes[0].what}",
            where=folder,
            remedy="`medtasks verify RUN` names all that was changed; `medtasks rescore RUN` writes what "
            "follows from the answers anew",
        )


@contextmanager
def _noting(verified: Verified, files: RunFolder) -> Iterator[None]:
    """A file that cannot be read is a change like others."""
    try:
        yield
    except MedtasksError as error:
        file = Path(str(error.where or files.manifest))
        inside = file.is_relative_to(files.path)
        verified.changes.append(Change(str(file.relative_to(files.path) if inside else file), error.what))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        verified.changes.append(
            Change(str(files.manifest.name), f"cannot be read with its files ({error!r})")
        )


def _unsealed(folder: Path, manifest: Manifest, heads: Mapping[str, str] | None) -> Iterator[Change]:
    for file, seal in manifest.seals.items():
        if not (folder / file).is_file():
            yield Change(file, "is missing")
        elif not sealed_head(folder / file, seal):
            yield Change(file, f"does not hold the {seal.lines:,} lines that were sealed")
    own = manifest.heads
    for file in sorted(own.keys() | (heads or own).keys()):
        if heads is not None and own.get(file) != heads.get(file):
            yield Change(file, "is not the one that was published")


def _compare_loaded(
    verified: Verified, task: str, last: Binding | None, asked: BoundFiles, loaded: LoadedRecord
) -> None:
    """Name a score over other rows or words than were asked; it is no change where a later call came to them.

    Args:
        last: what the last call would have asked, had it asked something.
    """
    file, others = f"tasks/{task}.json", asked.others(loaded)
    rescored = any(root.state == "rescored" for root in verified.sealed.roots)
    if others and (rescored or (last is not None and asked_with(last) == loaded_with(loaded))):
        verified.notes.append(f"{file}: scored later with {', '.join(others)}")
    elif others:
        verified.changes.append(Change(file, f"says {', '.join(others)}"))


def _task(
    files: RunFolder,
    task: str,
    asked: tuple[Dataset, str],
    answers: Mapping[str, Said],
    identity: Identity,
    noted: int | None,
    drawn: Drawn | None,
) -> Iterator[Change]:
    """What a task's samples, scores and result say, against each other and the answers."""
    dataset, strategy = asked
    samples: Sequence[Mapping[str, Any]] = RunResults(files.path, "", {}).samples(task)
    file = files.samples_file(task).name
    for number, sample in enumerate(samples, start=1):
        key = sample.get("request")
        if key is not None and _said(sample) != answers.get(key):
            yield Change(file, f"line {number}: the response is not the one in responses/{task}.jsonl")
            break
    yield from (Change(file, what) for what in moved(task, identity, samples))
    record = files.read_task(task)
    yield from (Change(f"tasks/{task}.json", what) for what in at_odds(record, noted))
    if record["n"] != len(samples):
        yield Change(file, f"{len(samples):,} documents, and tasks/{task}.json says {record['n']:,}")
    judged = files.judged_file(task).is_file()
    known = {"score": score_statistic(dataset)} if judged else aggregations(dataset, strategy)
    figures = _values(record["metrics"], samples, known)
    if drawn is not None:
        figures, _, estimate = drawn_results(samples, record["metrics"], known, drawn)
        if not _alike(estimate or {}, record.get("estimate") or {}):
            yield Change(f"tasks/{task}.json", f"its error is not the one that follows from {file}")
    for name, value in figures.items():
        if not _same(stated := record["metrics"][name], value):
            yield Change(f"tasks/{task}.json", f"{name} is {stated}, and {value} by {file}")
    yield from _scores(files, task, score_statistic(dataset, strategy), samples)


def _values(
    metrics: Iterable[str],
    samples: Sequence[Mapping[str, Any]],
    known: Mapping[str, Callable[..., Any]],
) -> dict[str, float]:
    by_metric = {name: [sample[name] for sample in samples if name in sample] for name in metrics}
    return {
        name: float(known[name](values)) for name, values in by_metric.items() if name in known and values
    }


def _said(sample: Mapping[str, Any]) -> Said:
    """The answer in a sample; of options, their likelihoods."""
    answer: Said = sample["resps"][0][0]
    return answer if isinstance(answer, str) else [response[0] for response in sample["resps"]]


def _scores(
    files: RunFolder, task: str, statistic: Statistic, samples: Sequence[Mapping[str, Any]]
) -> Iterator[Change]:
    kept, again = (
        load_document_scores(files.scores_file(task), statistic),
        document_scores(samples, statistic),
    )
    alike = list(kept.documents) == list(again.documents) and np.allclose(
        kept.scores, again.scores, equal_nan=True, atol=_TOLERANCE
    )
    if not alike:
        yield Change(
            f"tasks/{files.scores_file(task).name}", "other scores of documents than the samples have"
        )


def _results(files: RunFolder, manifest: Manifest) -> Iterator[Change]:
    stated = read_json(files.results_file)["results"]
    for task, entry in manifest.tasks.items():
        if entry.state is TaskState.DONE:
            metrics = {f"{name},answer": value for name, value in files.read_task(task)["metrics"].items()}
            said = {name: value for name, value in stated.get(task, {}).items() if name != "alias"}
            if not _alike(metrics, said):
                yield Change(files.results_file.name, f"{task}: other metrics than tasks/{task}.json")


def verify_scores(run: Run, finish: Callable[[Run], None]) -> Iterator[Change]:
    """Compute all scores anew from the records, as `medtasks rescore` does, and compare; nothing is changed.

    Args:
        finish: puts the judges' scores beside those that were computed.

    Raises:
        MedtasksError: there is no room in the run's folder.
    """
    try:
        place = TemporaryDirectory(dir=run.folder, prefix=".verify-")  # texts stay in the folder
    except OSError as error:
        raise cannot_write(run.folder, error) from None
    with place as folder:
        for item in run.folder.resolve().iterdir():
            if item.name.startswith("."):
                continue
            beside = Path(folder) / item.name  # files are replaced, never changed: a link is enough
            if item.is_dir():
                shutil.copytree(item, beside, copy_function=os.symlink)
            else:
                beside.symlink_to(item)
        copy = type(run)(Path(folder), run.registry)
        copy.load()
        copy.rescore(lambda *_: None)
        finish(copy)
        for task in run.results():
            yield from _against(run.files, copy, task)


def _against(files: RunFolder, copy: Run, task: str) -> Iterator[Change]:
    file = f"tasks/{task}.json"
    if not copy.is_done(task):
        yield Change(file, f"cannot be scored again: {copy.state(task).error}")
        return
    stated, again = files.read_task(task), copy.files.read_task(task)
    loaded = [without_places(record["loaded"]) for record in (stated, again)]
    if stated["version"] != again["version"] or loaded[0] != loaded[1]:
        yield Change(
            file, "the task, its rows or its prompts are others here; the score cannot be computed again"
        )
        return
    for name in sorted(stated["metrics"].keys() | again["metrics"].keys()):
        one, other = stated["metrics"].get(name), again["metrics"].get(name)
        if one is None or other is None or not _same(one, other):
            yield Change(file, f"{name} is {one}, and follows as {other} from the records")


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) or (
            one != one and other != other
        )
    return bool(json.dumps(one) == json.dumps(other))


# ---------------------------------------------------------------------- what answers are bound to


#: In place of halves of surrogate pairs in recorded prompts.
_REPLACED = "\ufffd"


@dataclass
class BoundFiles:
    """The files of outcomes of one task, while they are read.

    Attributes:
        loose: files of an older version, whose first line does not say whose they are.
        last: whose the last lines of each file are.
        changes: what does not hold.
    """

    identity: Identity
    loose: list[str] = field(default_factory=list)
    last: list[Binding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def read(self, folder: Path, task: str) -> Iterator[Stored]:
        """The outcomes of all files.

        Raises:
            MedtasksError: a line is damaged.
        """
        path = folder / f"{task}.jsonl"
        if path.is_file():
            bound: Binding | None = None
            name = f"{folder.name}/{path.name}"
            for number, stored in enumerate(read_file(path), start=1):
                yield stored
                if stored.of is not None:
                    bound = stored.of
                    if bound.identity != self.identity.whole:
                        self.changes.append(Change(name, f"line {number}: {self._other(bound)}"))
                elif number == 1:
                    self.loose.append(name)
            if bound is not None:
                self.last.append(bound)

    def _other(self, bound: Binding) -> str:
        named = self.identity.model_name
        if bound.model != named:
            return f"is of the model {bound.model}, and run.json names {named}"
        return "is of a model with other arguments, or of other settings, than run.json names"

    def others(self, loaded: LoadedRecord) -> list[str]:
        """In words, what a result was scored with that no file of its outcomes was asked with.

        Args:
            loaded: what was loaded for the score.
        """
        now, asked = loaded_with(loaded), [asked_with(item) for item in self.last]
        if not asked or now in asked:
            return []
        return [f"{name} {now[name]} (asked: {was})" for name, was in asked[-1].items() if now[name] != was]


def moved(task: str, identity: Identity, samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """In words, the first document whose key does not follow from model, prompt and generation settings."""
    for number, sample in enumerate(samples, start=1):
        if (key := sample.get("request")) is None:
            continue
        argument, settings = sample["arguments"][0]
        prompt = json.loads(argument[0]) if isinstance(argument, list) else argument
        document, options = document_key(sample["doc"]), options_of(sample)
        known = request_key(identity.digest, task, document, prompt, settings, options)
        if key != known and _REPLACED not in str(prompt):
            yield f"line {number}: its request does not follow from run.json's model and the prompt"
            return
