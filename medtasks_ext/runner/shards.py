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
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from medtasks_ext.errors import MedtasksError
from medtasks_ext.runner.evaluate import build_task, chosen_documents, generate_task
from medtasks_ext.runner.files import read_json, write_json
from medtasks_ext.runner.run import RUN_SCHEMA, Run, cut_counts, differences, loaded_record, new_manifest
from medtasks_ext.runner.store import Response, document_key, stored_responses, write_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lm_eval.api.task import Task

    from medtasks_ext.data.documents import Document
    from medtasks_ext.registry import Registry
    from medtasks_ext.runner.evaluate import Settings
    from medtasks_ext.runner.store import StoringLM

_SHOWN = 5  # tasks that a message names
#: Model arguments that say where and how fast a model answers, not which one it is.
_ANY_PLACE = ("base_url", "num_concurrent", "max_retries", "timeout")


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
        found = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
        shard = cls(int(found[1]), int(found[2])) if found else None
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
        """The places that are this shard's, out of those that `deal` deals."""
        return [place for place, index in deal(task, documents, chosen, self.of) if index == self.index]


def deal(
    task: str, documents: Sequence[Document], chosen: Iterable[int], shards: int
) -> Iterator[tuple[int, int]]:
    """Which shard asks which document: questions are dealt in turn, which balances lengths.

    Trials of one question stay together. The first turn depends on the task's name, so that small
    tasks do not all fall to the first shards.

    Args:
        task: its name.
        documents: all of its test documents.
        chosen: places among them that the whole run asks.
        shards: how many there are.

    Yields:
        Each place with the number of its shard, from 1.
    """
    first = crc32(task.encode())
    numbers: dict[str, int] = {}
    for place in chosen:
        question = str(documents[place].get("item", documents[place]["id"]))
        yield place, (first + numbers.setdefault(question, len(numbers))) % shards + 1


class ShardRun(Run):
    """The folder of one shard: a run that stores responses and scores nothing."""

    def __init__(self, folder: Path, registry: Registry, shard: Shard) -> None:
        super().__init__(folder, registry)
        self.shard = shard

    def _identity(self, model: dict[str, Any], settings: Settings) -> dict[str, Any]:
        return {**super()._identity(model, settings), "shard": str(self.shard)}

    def places(self, task: Task, settings: Settings) -> Sequence[int]:
        """Places of this shard's documents in the task's test file."""
        return self.shard.places(task.task_name, task.eval_docs, super().places(task, settings))

    def is_done(self, task: str) -> bool:
        """Whether the shard's responses to the task are complete."""
        return self.state(task)["state"] == "generated" and self._task_file(task).is_file()

    def is_current(self, name: str, task: Task) -> bool:
        """Whether the stored responses are complete, and to this version, prompt and data."""
        if not self.is_done(name):
            return False
        stored = read_json(self._task_file(name))
        kept = {response.key for response in stored_responses(self.folder / "responses", name)}
        return (
            stored["version"] == str(task.VERSION)
            and stored["loaded"] == loaded_record(task)
            and stored["pool_hash"] == _pool_hash(task)
            and kept.issuperset(stored["requests"].values())
        )

    def _ask(self, lm: StoringLM, task: Task, settings: Settings) -> bool:
        places, requests, cut, tokens = self.places(task, settings), {}, {}, None
        if places:
            asked = generate_task(lm, task, settings, places)
            if asked is None:
                return False
            requests, cut, tokens = asked, cut_counts(lm, task), lm.tokens
        write_json(
            self._task_file(task.task_name),
            {
                "task": task.task_name,
                "shard": str(self.shard),
                "version": str(task.VERSION),
                "n": len(requests),
                "n_all": len(super().places(task, settings)),
                "loaded": loaded_record(task),
                "pool_hash": _pool_hash(task),
                "cut": cut,
                "tokens": tokens,
                "requests": requests,
            },
        )
        self.manifest["tasks"][task.task_name] = {"state": "generated", "n": len(requests)}
        self.save()
        return True

    def write_results(self) -> None:
        """`results.json`: what the shard covers, and no metric."""
        results = self.results()
        write_json(
            self.folder / "results.json",
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
                    "manifest": {key: value for key, value in self.manifest.items() if key != "tasks"},
                    "loaded": {name: item["loaded"] for name, item in results.items()},
                    "cut": {name: item["cut"] for name, item in results.items()},
                },
            },
        )


def _pool_hash(task: Task) -> str:
    """Identifies the few-shot pool as rendered."""
    digest = sha256()
    for shot in task.eval_docs[0].loaded.shots or ():
        for text in (shot["system"], shot["prompt"], shot["target"]):
            digest.update(text.encode(errors="surrogatepass") + b"\x1e")
    return digest.hexdigest()[:12]


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
        registry: of tasks.
        partial: mark tasks without all responses as failed instead of refusing; they have no score.
        report: called with (task, what happened).

    Returns:
        The run, its results written.

    Raises:
        MedtasksError: a folder is no shard; shards of different splits, models, settings, rows or
            prompts; responses that disagree; documents without a response; another run is in `out`.
    """
    shards = [_Folder(folder) for folder in {folder.resolve(): folder for folder in folders}.values()]
    _check_alike(shards)
    out = out if out.name else out.resolve()
    run = Run(out.with_name(f"{out.name}.part"), registry)
    run.manifest = _joined_manifest(shards)
    shutil.rmtree(run.folder, ignore_errors=True)  # of a merge that was killed
    try:
        gaps = _Gaps(shards)
        tasks = _join_all(run, shards, gaps)
        if gaps.by_task and not partial:
            raise gaps.error()
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            return _existing(out, run)
        for name, task in tasks.items():
            if name in gaps.by_task:
                run.manifest["tasks"][name] = {"state": "failed", "error": gaps.of_task(name)}
            else:
                run.score(task, *_counts(shards, name), report)
        run.save()
        run.write_results()
        run.folder.replace(out)
    finally:
        shutil.rmtree(run.folder, ignore_errors=True)
    run.folder = out
    return run


class _Folder:
    """One shard folder as it is read for joining."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise MedtasksError("no such folder", where=folder, remedy=_WANTED)
        self.manifest = read_json(folder / "run.json")
        try:
            schema, self.identity = self.manifest["schema"], self.manifest["identity"]
            shard = self.identity.get("shard")
        except (TypeError, KeyError, AttributeError):
            raise MedtasksError("is no shard of a run", where=folder, remedy=_WANTED) from None
        if schema != RUN_SCHEMA:
            raise MedtasksError(
                f"was written by another version of medtasks (schema {schema}, here {RUN_SCHEMA})",
                where=folder,
                remedy="merge with the version that made the shards",
            )
        if shard is None:
            raise MedtasksError("is a run of its own, not a shard", where=folder, remedy=_WANTED)
        self.shard = Shard.parse(str(shard))

    def state(self, task: str) -> dict[str, Any]:
        """The manifest's entry of a task."""
        return self.manifest["tasks"].get(task, {"state": "not asked for"})

    def record(self, task: str) -> dict[str, Any] | None:
        """What the shard covers of a task; None where it did not finish it."""
        path = self.folder / "tasks" / f"{task}.json"
        done = self.state(task)["state"] == "generated" and path.is_file()
        return read_json(path) if done else None

    @cached_property
    def alike(self) -> dict[str, Any]:
        """What shards of one run have in common."""
        model = self.identity["model"]
        arguments = {key: value for key, value in model["model_args"].items() if key not in _ANY_PLACE}
        return {**self.identity, "model": {**model, "model_args": arguments}, "shard": None}


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
        if different := differences(first.alike, other.alike):
            raise MedtasksError(
                f"has another model or other settings than {first.folder}: {'; '.join(different)}",
                where=other.folder,
                remedy="give the shards of one run",
            )


def _joined_manifest(shards: Sequence[_Folder]) -> dict[str, Any]:
    """The manifest that the run would have had in one piece."""
    first = min(shards, key=lambda item: item.shard.index)
    manifests = [item.manifest for item in shards]
    notes = list(dict.fromkeys(note for manifest in manifests for note in manifest.get("notes", [])))
    if different := differences(*_extremes(manifest["versions"] for manifest in manifests)):
        notes.append(f"shards were made with different versions: {'; '.join(different)}")
    manifest = new_manifest({key: value for key, value in first.identity.items() if key != "shard"})
    return {
        **manifest,
        "started": min(manifest["started"] for manifest in manifests),
        "requested": list(dict.fromkeys(name for manifest in manifests for name in manifest["requested"])),
        "merged": {"shards": first.shard.of},
        **({"notes": notes} if notes else {}),
        **({"system_role": False} if any("system_role" in manifest for manifest in manifests) else {}),
    }


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
        errors = [item.state(task).get("error") for item in self.shards if item.shard.index == index]
        return next((f" ({error.splitlines()[0]})" for error in errors if error), "")

    def error(self) -> MedtasksError:
        lines = []
        for index in sorted({index for missing in self.by_task.values() for index in missing}):
            counts = {task: missing[index] for task, missing in self.by_task.items() if missing[index]}
            given = [str(item.folder) for item in self.shards if item.shard.index == index]
            shown = ", ".join(
                f"{task} {count:,}{self._why(task, index)}" for task, count in list(counts.items())[:_SHOWN]
            )
            more = f" and {len(counts) - _SHOWN} more tasks" if len(counts) > _SHOWN else ""
            lines.append(
                f"shard {self._name(index)} ({', '.join(given) or 'not given'}): "
                f"{sum(counts.values()):,}: {shown}{more}"
            )
        return MedtasksError(
            "responses are missing, the shards do not cover every document\n  " + "\n  ".join(lines),
            remedy="give or finish these shards (the same `medtasks run --shard` command continues them); "
            "--partial leaves these tasks without a score",
        )


def _join_all(run: Run, shards: Sequence[_Folder], gaps: _Gaps) -> dict[str, Task]:
    """Write the responses of all tasks into a run; returns the tasks that have some."""
    tasks: dict[str, Task] = {}
    for name in dict.fromkeys(name for item in shards for name in item.manifest["tasks"]):
        states = [item.state(name) for item in shards]
        if all(state["state"] == "missing" for state in states):
            run.manifest["tasks"][name] = states[0]
            continue
        if name not in run.registry.tasks:
            raise MedtasksError(
                f"{name} is no task here", where=shards[0].folder, remedy="merge where the shards were run"
            )
        task = build_task(run.registry, name, run.settings)
        _check_rows(name, shards, task)
        found, missing = _join(name, shards, task, run.settings)
        write_responses(run.folder / "responses", name, found)
        gaps.add(name, missing)
        tasks[name] = task
        run.manifest["tasks"][name] = {"state": "waiting"}
    return tasks


def _check_rows(name: str, shards: Sequence[_Folder], task: Task) -> None:
    """Refuse shards that read other rows or prompts than this machine does."""
    here = {
        "version": str(task.VERSION),
        "pool_hash": _pool_hash(task),
        **_same_anywhere(loaded_record(task)),
    }
    for item in shards:
        record = item.record(name)
        if record is None:
            continue
        there = {key: record[key] for key in ("version", "pool_hash")} | _same_anywhere(record["loaded"])
        if different := differences(there, here):
            raise MedtasksError(
                f"{name}: other rows or prompts than are loaded here: {'; '.join(different)}",
                where=item.folder,
                remedy="merge with the data and the version that the shards were run with",
            )


def _same_anywhere(loaded: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in loaded.items() if key != "where"}


def _join(
    name: str, shards: Sequence[_Folder], task: Task, settings: Settings
) -> tuple[list[Response], Counter[int]]:
    """The responses of one task in document order, and how many each shard lacks."""
    found: dict[str, tuple[Response, Path]] = {}
    for item in shards:
        for response in _responses(item, name):
            known, folder = found.setdefault(response.document, (response, item.folder))
            if known != response:
                what = "responses" if known.key == response.key else "prompts"
                raise MedtasksError(
                    f"{name}: document {response.document} has different {what} in {folder} "
                    f"and {item.folder}",
                    remedy="leave one of the two folders out",
                )
    documents, chosen = task.eval_docs, chosen_documents(task, settings)
    dealt = {
        document_key(documents[place]): index
        for place, index in deal(name, documents, chosen, shards[0].shard.of)
    }
    missing = Counter(index for document, index in dealt.items() if document not in found)
    return [found[document][0] for document in dealt if document in found], missing


def _responses(item: _Folder, task: str) -> Iterable[Response]:
    """A shard's responses to a task: those that its record names, else the last for each document."""
    stored = list(stored_responses(item.folder / "responses", task))
    record = item.record(task)
    if record is None:
        return {response.document: response for response in stored}.values()
    by_key = {response.key: response for response in stored}
    return [by_key[key] for key in record["requests"].values() if key in by_key]


def _counts(shards: Sequence[_Folder], task: str) -> tuple[dict[str, int], dict[str, int] | None]:
    """What did not fit, and the tokens, of the whole: sums over the shards."""
    records = {
        item.shard.index: record for item in shards if (record := item.record(task)) and record["n"]
    }.values()
    cut = sum((Counter(record["cut"]) for record in records), Counter())
    keys = dict.fromkeys(key for record in records for key in record["cut"])
    tokens = [record["tokens"] for record in records]
    whole = {name: sum(part[name] for part in tokens) for name in tokens[0]} if all(tokens) else None
    return {key: cut[key] for key in keys}, whole


def _existing(out: Path, run: Run) -> Run:
    """The run that is there already, if it was joined from the same responses."""
    there = Run(out, run.registry)
    if there.manifest_file.is_file():
        there.load()
        responses = [f"responses/{name}.jsonl" for name in run.manifest["tasks"]]
        names = [name for name in responses if (run.folder / name).is_file()]
        same = filecmp.cmpfiles(run.folder, out, names, shallow=False)[0]
        alike = all(there.manifest.get(key) == run.manifest[key] for key in ("identity", "requested"))
        if alike and same == names:
            return there
    raise MedtasksError(
        "is there already and holds something else",
        where=out,
        remedy="give another folder with -o, or move this one away",
    )
