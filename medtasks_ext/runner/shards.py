"""Shards: a run split by document over machines that know nothing of each other, and joined again.

A shard has all documents of every task loaded, so that prompts, few-shot pool and label space are
those of the whole, asks the model for its share, and scores nothing: metrics of a part are not the
task's. `tasks/TASK.json` in its folder says which documents it covers. Joined shards are a run like any
other.
"""

from __future__ import annotations

import filecmp
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from medtasks_ext.atomic import atomic_file, beside
from medtasks_ext.engines.records import Answer
from medtasks_ext.errors import MedtasksError, some
from medtasks_ext.jsonfile import write_json
from medtasks_ext.prompts.documents import Document, document_key, without_places
from medtasks_ext.runner.evaluate import Settings, build_task, same_documents
from medtasks_ext.runner.requests import AskedPrompt, read_prompts
from medtasks_ext.runner.run import MOVING, Run, loaded_record, pool_hash, versions
from medtasks_ext.runs.folder import RunFolder
from medtasks_ext.runs.manifest import (
    CHAINED,
    RUN_SCHEMA,
    Identity,
    Manifest,
    TaskEntry,
    TaskState,
    differences,
    identity_of,
)
from medtasks_ext.runs.outcomes import Stored, read_outcomes
from medtasks_ext.runs.seal import RunLease, journal_of
from medtasks_ext.runs.sent import SentLog, read_sent

if TYPE_CHECKING:
    from lm_eval.api.task import Task

    from medtasks_ext.registry import Registry
    from medtasks_ext.runs.choice import Choice
    from medtasks_ext.runs.records import ShardRecord


@dataclass(frozen=True)
class Shard:
    """Shard `index` of `of`, counted from 1."""

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/4`.

        Raises:
            MedtasksError: it is written otherwise, or there is no such shard.
        """
        match = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.index <= shard.of:
            raise MedtasksError(
                f"{text!r} is no shard",
                where="--shard",
                remedy="write I/N with I from 1 to N: --shard 1/4 to --shard 4/4",
            )
        return shard

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    def folder(self, run: Path) -> Path:
        """The shard's own folder beside that of the run, so that all shards take the same command."""
        run = run if run.name else run.resolve()
        return run.with_name(f"{run.name}-shard-{self.index}-of-{self.of}")

    def places(self, task: str, documents: Sequence[Document], chosen: Iterable[int]) -> list[int]:
        """The places that are this shard's, out of those that `assign_shards` deals."""
        return [
            place for place, index in assign_shards(task, documents, chosen, self.of) if index == self.index
        ]


def assign_shards(
    task: str, documents: Sequence[Document], chosen: Iterable[int], shards: int
) -> Iterator[tuple[int, int]]:
    """Which shard asks which document: questions are dealt in turn, which balances lengths.

    Trials of one question stay together. The first turn depends on the task's name, so that small
    tasks do not all fall to the first shards.

    Args:
        documents: all of its test documents.
        chosen: places among them that the whole run asks.

    Yields:
        Each place with the number of its shard, from 1.
    """
    first = crc32(task.encode())
    numbers: dict[str, int] = {}
    for place in chosen:
        question = str(documents[place].get("item", documents[place]["id"]))
        yield place, (first + numbers.setdefault(question, len(numbers))) % shards + 1


class ShardRun(Run):
    """The folder of one shard: a run that stores outcomes and scores nothing."""

    scores = False

    def __init__(self, folder: Path, registry: Registry, shard: Shard, *, rank: int = 0) -> None:
        super().__init__(folder, registry, rank=rank)
        self.shard = shard

    def _identity(self, model: str, arguments: Mapping[str, Any], settings: Settings) -> Identity:
        return identity_of(model, arguments, asdict(settings), str(self.shard))

    def places(self, task: Task, choice: Choice | None = None) -> Sequence[int]:
        """Places of this shard's documents in the task's test file."""
        return self.shard.places(task.task_name, task.eval_docs, super().places(task, choice))

    def is_done(self, task: str) -> bool:
        """Whether the shard's answers to the task are complete."""
        return self.state(task).state is TaskState.GENERATED and self.files.task_file(task).is_file()

    def is_current(self, name: str, task: Task, choice: Choice) -> bool:
        """Whether the stored answers are complete, and to this version, prompt, data, shots and choice."""
        is_current = super().is_current(name, task, choice)
        return is_current and self.files.read_shard_task(name)["pool_hash"] == pool_hash(task)

    def finish_task(self, task: Task) -> TaskEntry:
        """Write down what the shard covers of a task."""
        name = task.task_name
        records = self.asked_records(task)
        self.files.write_task(
            name,
            {
                "task": name,
                "shard": str(self.shard),
                "version": str(task.VERSION),
                "n": len(records.keys),
                "n_all": len(super().places(task)),
                "loaded": loaded_record(task),
                "pool_hash": pool_hash(task),
                "cut": dict(records.cut),
                "tokens": dict(records.tokens) if records.tokens else None,
            },
        )
        return TaskEntry(state=TaskState.GENERATED, n=len(records.keys))

    def covered(self) -> dict[str, ShardRecord]:
        """Task -> what the shard covers of it, for tasks whose answers are complete."""
        return {name: self.files.read_shard_task(name) for name in self.manifest.tasks if self.is_done(name)}

    def write_results(self) -> None:
        """`results.json`: what the shard covers, and no metric."""
        results = self.covered()
        manifest = {key: value for key, value in self.manifest.record().items() if key not in MOVING}
        write_json(
            self.files.results_file,
            {
                "results": {},
                "groups": {},
                "versions": {name: item["version"] for name, item in results.items()},
                "n-samples": {
                    name: {"original": item["n_all"], "effective": item["n"]}
                    for name, item in results.items()
                },
                "medtasks": {
                    "shard": str(self.shard),
                    "partial": "responses of a part of the documents; `medtasks merge` joins and scores them",
                    "manifest": manifest,
                    "chosen": self.chosen(results),
                    "loaded": {name: item["loaded"] for name, item in results.items()},
                    "cut": {name: item["cut"] for name, item in results.items()},
                },
            },
        )


# ---------------------------------------------------------------------- joining


def merge_shards(
    folders: Sequence[Path],
    out: Path,
    registry: Registry,
    *,
    partial: bool,
    report: Callable[[str, str], None],
) -> Run:
    """Join shards into a run and score it, as `rescore` would.

    The run appears complete or not at all: it is made beside its place and renamed. Where it is
    there already, with the same responses, it is left as it is.

    Args:
        folders: of the shards; one that was run twice may be given twice.
        out: folder of the run to make.
        partial: mark tasks without all responses as failed instead of refusing; they have no score.

    Returns:
        The run, its results written.

    Raises:
        MedtasksError: a folder is no shard; shards of different splits, models, settings, rows or
            prompts; responses that disagree; documents without a response; another run is in `out`.
    """
    shards = [_Folder(folder) for folder in {folder.resolve(): folder for folder in folders}.values()]
    _check_alike(shards)
    out = out if out.name else out.resolve()
    run = Run(beside(out), registry)
    run.folder.mkdir(parents=True)
    try:
        with journal_of(run.folder, lambda: None, "merged"):  # nobody else knows its name
            existing = _filled(run, shards, out, partial=partial, report=report)
        if existing is not None:
            return existing
        run.folder.replace(out)
    finally:
        shutil.rmtree(run.folder, ignore_errors=True)
    return opened(out, registry)


def _filled(
    run: Run, shards: Sequence[_Folder], out: Path, *, partial: bool, report: Callable[[str, str], None]
) -> Run | None:
    """Fill a new folder; or the run that is in `out` already, where it has the same answers."""
    run.manifest = _joined_manifest(shards)
    SentLog(run.folder).join(item for shard in shards for item in read_sent(shard.folder))
    gaps = _Gaps(shards)
    tasks = _join_all(run, shards, gaps)
    if gaps.by_task and not partial:
        raise gaps.error()
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        existing = _existing(out, run)
        whole = tasks.keys() - gaps.by_task.keys()
        if failed := [name for name in whole if existing.state(name).state is TaskState.FAILED]:
            with RunLease(out, "medtasks merge", "rescored"):
                for name in failed:
                    existing.note_result(name, existing.rescored(name), report)
                existing.write_results()
        return existing
    for name, task in tasks.items():
        if name in gaps.by_task:
            run.note(name, TaskEntry(state=TaskState.FAILED, error=gaps.of_task(name)))
        else:
            run.note_result(name, run.finish_task(task), report)
    run.save()
    run.write_results()
    return None


def opened(folder: Path, registry: Registry) -> Run:
    """An existing run."""
    run = Run(folder, registry)
    run.load()
    return run


class _Folder:
    """One shard folder as it is read for joining."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, RunFolder(folder)
        if not folder.is_dir():
            raise MedtasksError("no such folder", where=folder, remedy=_WANTED)
        self.manifest = Manifest.read(folder)
        if self.manifest.schema_version < CHAINED:
            raise MedtasksError(
                f"was written by another version of medtasks (schema {self.manifest.schema_version}, here "
                f"{RUN_SCHEMA})",
                where=folder,
                remedy="merge with the version that made the shards",
            )
        if self.manifest.identity.shard is None:
            raise MedtasksError("is a run of its own, not a shard", where=folder, remedy=_WANTED)
        self.shard = Shard.parse(self.manifest.identity.shard)

    def state(self, task: str) -> TaskEntry | None:
        """The manifest's entry of a task; None where it was not asked for."""
        return self.manifest.tasks.get(task)

    def record(self, task: str) -> ShardRecord | None:
        """What the shard covers of a task; None where it did not finish it."""
        entry = self.state(task)
        done = entry is not None and entry.state is TaskState.GENERATED
        return self.files.read_shard_task(task) if done and self.files.task_file(task).is_file() else None

    def asked(self, task: str) -> list[AskedPrompt]:
        """The requests of a task; none where the shard did not finish it."""
        return list(read_prompts(self.files, task)) if self.record(task) else []

    def answers(self, task: str) -> Iterable[Stored]:
        """The answers to the requests of a task; where it was not finished, the last for each document."""
        stored = [
            item for item in read_outcomes(self.files.responses, task) if isinstance(item.entry, Answer)
        ]
        if self.record(task) is None:
            return {item.document: item for item in stored}.values()
        by_key = {item.key: item for item in stored}
        return [by_key[asked.key] for asked in self.asked(task) if asked.key in by_key]

    @cached_property
    def alike(self) -> Identity:
        """What shards of one run have in common."""
        return self.manifest.identity.model_copy(update={"shard": None})


_WANTED = "give the folders that `medtasks run --shard I/N` wrote"


def _check_alike(shards: Sequence[_Folder]) -> None:
    first = shards[0]
    for other in shards[1:]:
        if other.shard.of != first.shard.of:
            raise MedtasksError(
                f"is shard {other.shard}, but {first.folder} is shard {first.shard}",
                where=other.folder,
                remedy="give the shards of one split",
            )
        if different := first.alike.differs_from(other.alike):
            raise MedtasksError(
                f"has another model or other settings than {first.folder}: {'; '.join(different)}",
                where=other.folder,
                remedy="give the shards of one run",
            )


def _joined_manifest(shards: Sequence[_Folder]) -> Manifest:
    """The manifest that the run would have had in one piece."""
    first = min(shards, key=lambda item: item.shard.index).manifest
    manifests = [item.manifest for item in shards]
    notes = list(dict.fromkeys(note for manifest in manifests for note in manifest.notes))
    if different := differences(*_extremes(manifest.versions for manifest in manifests)):
        notes.append(f"shards were made with different versions: {'; '.join(different)}")
    return Manifest(
        salt=first.salt,
        identity=first.identity.model_copy(update={"shard": None}),
        versions=versions(),
        started=min(manifest.started for manifest in manifests),
        requested=list(dict.fromkeys(name for manifest in manifests for name in manifest.requested)),
        notes=notes,
        context=first.context,
        system_role=False if any(manifest.system_role is False for manifest in manifests) else None,
        wording={task: words for manifest in manifests for task, words in manifest.wording.items()},
        merged={"shards": shards[0].shard.of},
        sessions=[session for manifest in manifests for session in manifest.sessions],
        allowed_hosts=list(dict.fromkeys(host for manifest in manifests for host in manifest.allowed_hosts)),
    )


def _extremes(versions: Iterable[dict[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    ordered = sorted(versions, key=lambda item: sorted(item.items()))
    return ordered[0], ordered[-1]


class _Gaps:
    """Documents without a response: task -> shard -> how many."""

    def __init__(self, shards: Sequence[_Folder]) -> None:
        self.shards = shards
        self.by_task: dict[str, Counter[int]] = {}

    def add(self, task: str, missing: Counter[int]) -> None:
        if missing:
            self.by_task[task] = missing

    def of_task(self, task: str) -> str:
        missing = self.by_task[task]
        where = ", ".join(
            f"{count:,} of shard {self._name(index)}" for index, count in sorted(missing.items())
        )
        return f"responses are missing: {where}"

    def _name(self, index: int) -> Shard:
        return Shard(index, self.shards[0].shard.of)

    def _why(self, task: str, index: int) -> str:
        entries = [item.state(task) for item in self.shards if item.shard.index == index]
        errors = [entry.error or entry.reason for entry in entries if entry is not None]
        return next((f" ({error.splitlines()[0]})" for error in errors if error), "")

    def error(self) -> MedtasksError:
        lines = []
        for index in sorted({index for missing in self.by_task.values() for index in missing}):
            counts = {task: missing[index] for task, missing in self.by_task.items() if missing[index]}
            given = [str(item.folder) for item in self.shards if item.shard.index == index]
            tasks = [f"{task} {count:,}{self._why(task, index)}" for task, count in counts.items()]
            lines.append(
                f"shard {self._name(index)} ({', '.join(given) or 'not given'}): "
                f"{sum(counts.values()):,}: {some(tasks)}"
            )
        return MedtasksError(
            "responses are missing, the shards do not cover every document\n  " + "\n  ".join(lines),
            remedy="give or finish these shards (the same `medtasks run --shard` command continues them); "
            "--partial leaves these tasks without a score",
        )


def _join_all(run: Run, shards: Sequence[_Folder], gaps: _Gaps) -> dict[str, Task]:
    """Write the outcomes of all tasks into a run; returns the tasks that have some."""
    tasks: dict[str, Task] = {}
    for name in dict.fromkeys(name for item in shards for name in item.manifest.tasks):
        entries = [entry for item in shards if (entry := item.state(name)) is not None]
        if all(entry.state is TaskState.MISSING for entry in entries):
            run.manifest.tasks[name] = entries[0]
            continue
        if run.registry.asked(name) is None:
            raise MedtasksError(
                f"{name} is no task here", where=shards[0].folder, remedy="merge where the shards were run"
            )
        task = build_task(run.registry, name, run.settings_of(name))
        _check_rows(name, shards, task)
        choice = _shared_choice(name, shards, task)
        run.manifest.tasks[name] = TaskEntry(choice=choice, bound=run.bound(task))
        gaps.add(name, _join(run, name, shards, task))
        tasks[name] = task
    return tasks


def _check_rows(name: str, shards: Sequence[_Folder], task: Task) -> None:
    """Refuse shards that read other rows or prompts than this machine does."""
    here = {
        "version": str(task.VERSION),
        "pool_hash": pool_hash(task),
        **without_places(loaded_record(task)),
    }
    for item in shards:
        record = item.record(name)
        if record is None:
            continue
        there = {key: record[key] for key in ("version", "pool_hash")} | without_places(record["loaded"])
        if different := differences(there, here):
            raise MedtasksError(
                f"{name}: other rows or prompts than are loaded here: {'; '.join(different)}",
                where=item.folder,
                remedy="merge with the data and the version that the shards were run with",
            )


def _shared_choice(name: str, shards: Sequence[_Folder], task: Task) -> Choice:
    """The documents of a task that the shards are parts of."""
    (first, choice), *others = [
        (item, entry.choice) for item in shards if (entry := item.state(name)) is not None
    ]
    for other, chosen in others:
        if not same_documents(task, choice, chosen):
            raise MedtasksError(
                f"{name}: is a part of other documents ({chosen.words}) than {first.folder} ({choice.words})",
                where=other.folder,
                remedy="run all shards with the same --limit and --samples",
            )
    return choice


def _join(run: Run, name: str, shards: Sequence[_Folder], task: Task) -> Counter[int]:
    """Write the outcomes of one task in document order; returns how many each shard lacks."""
    by_document: dict[str, tuple[Stored, Path]] = {}
    asked: dict[str, AskedPrompt] = {}
    for item in shards:
        asked.update({request.document: request for request in item.asked(name)})
        for stored in item.answers(name):
            known, folder = by_document.setdefault(stored.document, (stored, item.folder))
            if (known.key, known.entry) != (stored.key, stored.entry):
                what = "responses" if known.key == stored.key else "prompts"
                raise MedtasksError(
                    f"{name}: document {stored.document} has different {what} in {folder} and {item.folder}",
                    remedy="leave one of the two folders out",
                )
    documents, chosen = task.eval_docs, run.places(task)
    dealt = {
        document_key(documents[place]): index
        for place, index in assign_shards(name, documents, chosen, shards[0].shard.of)
    }
    log = run.outcomes(name)
    for document in dealt:
        if document in by_document:
            log.append(by_document[document][0])
    log.close()
    run.note(name, TaskEntry(sealed={log.path.name: log.seal}))
    with atomic_file(run.files.asked_file(name)) as file:
        file.writelines(asked[document].line() for document in dealt if document in asked)
    return Counter(index for document, index in dealt.items() if document not in by_document)


def _existing(out: Path, run: Run) -> Run:
    """The run that is there already, if it was joined from the same responses."""
    there = Run(out, run.registry)
    if there.manifest_file.is_file():
        there.load()
        responses = [f"responses/{name}.jsonl" for name in run.manifest.tasks]
        names = [name for name in responses if (run.folder / name).is_file()]
        same = filecmp.cmpfiles(run.folder, out, names, shallow=False)[0]
        alike = all(getattr(there.manifest, key) == getattr(run.manifest, key) for key in _SAME_RUN)
        if alike and same == names:
            return there
    raise MedtasksError(
        "is there already and holds something else",
        where=out,
        remedy="give another folder with -o, or move this one away",
    )


#: What the manifests of two joined runs have in common if they are the same.
_SAME_RUN = ("identity", "requested")
