"""Where things lie in a store, which is a cache of run folders: ingest makes it again at any time.

DIR/medtasks-store.json             the index: number of the layout, and which folder holds each run
DIR/run-ID-STATE/run.json           a run: its manifest, and what is stored of it
DIR/run-ID-STATE/results.parquet    a row per task and metric
DIR/run-ID-STATE/tasks.parquet      a row per task: the records behind its results
DIR/run-ID-STATE/documents.parquet  a row per task and document
DIR/run-ID-STATE/responses.parquet  texts, only where they were asked for

The folder of a run never changes: a run in another state gets another folder. A store changes in one step,
when a new index takes the place of the old one. Folders that the index does not name do not count.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from medtasks_ext.atomic import sync_folder
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.results.experiments import Entry, Kind
from medtasks_ext.version import __version__

#: layout that this version writes
SCHEMA = 3
#: the oldest that it reads: results and tasks in one table, and the run's id under the name `run`
OLDEST = 2
INDEX, LOCK, STAGING = "medtasks-store.json", ".lock", ".ingest-"
RUN, RESULTS, TASKS = "run.json", "results.parquet", "tasks.parquet"
DOCUMENTS, RESPONSES = "documents.parquet", "responses.parquet"
_FOLDER = re.compile(r"run-[0-9a-f]{12}-[0-9a-f]{32}")
_RUNS = TypeAdapter(dict[str, str])
_AGAIN = "ingest again from the run folders, into a new store: medtasks ingest RUN... --store NEW"


class Rows(BaseModel):
    """Where the documents of a task lie in their file."""

    model_config = ConfigDict(frozen=True)

    first: int  # place of the first row
    n: int  # rows
    width: int  # numbers in `counts`; 0 where they follow from `score`
    statistic: str  # name of the one that makes the score of them
    plain: bool  # whether every document takes part in the score, each a unit of its own


class StoredRun(BaseModel):
    """`run.json` of a store."""

    model_config = ConfigDict(frozen=True)

    run: str  # its id
    state: str  # fingerprint of the files that it was read from, and of whether texts were asked for
    kind: Kind  # where it comes from
    model: str  # as its user names it
    folder: str  # where it lay when it was stored
    notes: list[str]  # what is known to have gone wrong in it
    manifest: dict[str, Any]  # of the run; reasons of failures without text of rows
    documents: dict[str, Rows]  # task -> where its documents lie; tasks without documents are left out
    texts: list[str]  # tasks whose texts are stored
    layout: int = OLDEST  # of its tables

    @property
    def name(self) -> str:
        """Of its folder in the store."""
        return folder_name(self.run, self.state)


def folder_name(run: str, state: str) -> str:
    """Name of the folder of a run in one state."""
    return f"run-{run}-{state}"


def is_store(folder: Path) -> bool:
    """Whether a folder is a store."""
    return (folder / INDEX).is_file()


def check_folder(folder: Path) -> None:
    """Refuse a place that neither is a store nor can become one.

    Raises:
        MedtasksError: it is a file, holds something else, or a store that this version cannot read.
    """
    remedy = "name another folder; a new one is made"
    if is_store(folder):
        read_index(folder)
    elif folder.is_dir():
        others = {item.name for item in folder.iterdir() if item.name != LOCK and not _own(item.name)}
        if others:
            what = f"holds something else (such as {min(others)}) and no store"
            raise MedtasksError(what, where=folder, remedy=remedy)
    elif folder.exists():
        raise MedtasksError("is a file, not the folder of a store", where=folder, remedy=remedy)


def read_index(folder: Path) -> dict[str, str]:
    """Id of a run -> name of the folder that holds it.

    Raises:
        MedtasksError: there is no store, it is damaged, or of another layout.
    """
    if not is_store(folder):
        remedy = "medtasks ingest RUN... --store DIR makes one"
        raise MedtasksError("holds no store", where=folder, remedy=remedy)
    file = folder / INDEX
    try:
        content = read_json(file)
        schema = int(content["schema"])
        if OLDEST <= schema <= SCHEMA:
            return _RUNS.validate_python(content["runs"])
    except (MedtasksError, ValidationError, KeyError, TypeError, ValueError):
        raise MedtasksError("damaged: not the index of a store", where=file, remedy=_AGAIN) from None
    version, remedy = (
        ("an older", _AGAIN) if schema < SCHEMA else ("a newer", "pip install --upgrade medtasks")
    )
    what = f"was written by {version} version (layout {schema}, this one reads {OLDEST} to {SCHEMA})"
    raise MedtasksError(what, where=file, remedy=remedy)


def layout_of(folder: Path) -> int:
    """The number of the layout that the index of a store says."""
    return int(read_json(folder / INDEX)["schema"])


def write_index(staging: Path, folder: Path, runs: Mapping[str, str]) -> None:
    """Let these folders be what a store holds, in one step.

    Args:
        staging: a folder of the same file system, for the index before it takes its place.
        runs: id -> name of the folder.
    """
    write_json(staging / INDEX, {"schema": SCHEMA, "medtasks": __version__, "runs": runs})
    (staging / INDEX).replace(folder / INDEX)
    sync_folder(folder)


def sweep(folder: Path) -> None:
    """Remove what the index does not name: former states of runs, and what a killed ingest left."""
    named = set(read_index(folder).values()) if is_store(folder) else set()
    for item in folder.iterdir():
        if _own(item.name) and item.name not in named:
            shutil.rmtree(item)


def _own(name: str) -> bool:
    return name.startswith(STAGING) or _FOLDER.fullmatch(name) is not None


def stored_runs(folder: Path) -> dict[str, StoredRun]:
    """Id -> run, in the order of ids.

    Raises:
        MedtasksError: there is no store, it is damaged, or of another layout.
    """
    return {run: stored_run(folder / name / RUN) for run, name in sorted(read_index(folder).items())}


def stored_run(file: Path) -> StoredRun:
    """The run of a file of a store.

    Raises:
        MedtasksError: it is gone or damaged.
    """
    if not file.is_file():
        raise gone(file)
    try:
        return StoredRun.model_validate(read_json(file))
    except (MedtasksError, ValidationError):
        raise damaged(file, "damaged: not a run as a store records it") from None


def gone(file: Path) -> MedtasksError:
    """The error for a file of a run that is not there: another ingest replaced the run, or it was deleted."""
    if file.parent.name in read_index(file.parents[1]).values():
        return damaged(file, "no such file")
    what = "the run was stored anew since the store was opened"
    return MedtasksError(what, where=file, remedy="run the command again")


def damaged(file: Path, what: str) -> MedtasksError:
    """The error for a file of a run that cannot be used."""
    folder = file.parent
    remedy = (
        f"delete the folder {folder.name}, then ingest again from the run folders: medtasks ingest RUN... "
    )
    return MedtasksError(what, where=file, remedy=f"{remedy}--store {folder.parent}")


def run_id(entry: Entry) -> str:
    """What tells a run from all others, and stays when it goes on or is scored again.

    It follows from model, settings, the moment of its start and the first name that was asked for.
    """
    manifest = entry.manifest
    facts = [
        entry.kind,
        entry.model,
        manifest["identity"],
        manifest.get("started"),
        manifest.get("requested", [])[:1],
    ]
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def fingerprint(files: Iterable[Path], tasks: Iterable[str], *, text: bool) -> str:
    """Changes when anything changes that is stored of a run.

    Args:
        files: that it is read from; which of them exist counts, too.
        text: whether texts are.
    """
    found = blake2b(json.dumps([SCHEMA, sorted(tasks), text]).encode(), digest_size=16)
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        found.update(blake2b(content, digest_size=16).digest())
    return found.hexdigest()
