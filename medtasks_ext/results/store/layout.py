"""Where things lie in a store, which is a cache of run folders: ingest makes it again at any time.

DIR/medtasks-store.json             the index: number of the layout, and which folder holds each run
DIR/run-ID-STATE/run.json           a run: its manifest, and what is stored of it
DIR/run-ID-STATE/results.parquet    a row per task and metric
DIR/run-ID-STATE/tasks.parquet      a row per task: the records behind its results
DIR/run-ID-STATE/documents.parquet  a row per task and document
DIR/run-ID-STATE/responses.parquet  texts, only where they were asked for

The folder of a run never changes: a run in another state gets another folder. A store changes in one step,
when a new index takes the place of the old one. Folders that the index does not name do not count.

Layout 1 had no index. A run was `runs/ID.json`, and its tables were divided by suite, model and strategy:
`results/suite=S/model=M/strategy=T/ID.parquet`, the same below `documents` and `responses`.
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

from medtasks_ext.atomic import check_all_regular, sync_folder
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.results.experiments import Entry, Kind
from medtasks_ext.version import __version__

#: layout that this version writes
SCHEMA = 3
#: one before: results and tasks in one table, and the run's id under the name `run`
_BEFORE = 2
#: one before that, of many small tables
_DIVIDED = 1
INDEX, LOCK, STAGING = "medtasks-store.json", ".lock", ".ingest-"
RUN, RESULTS, TASKS = "run.json", "results.parquet", "tasks.parquet"
DOCUMENTS, RESPONSES = "documents.parquet", "responses.parquet"
_FOLDER = re.compile(r"run-[0-9a-f]{12}-[0-9a-f]{32}")
_RUNS = TypeAdapter(dict[str, str])
#: What an ingest of layout 1 left that was killed halfway.
_JOURNAL = "_journal.json"
_AGAIN = "ingest again from the run folders, into a new store: medtasks ingest RUN... --store NEW"


class Rows(BaseModel):
    """Where the documents of a task lie in their file."""

    model_config = ConfigDict(frozen=True)

    first: int  # place of the first row
    n: int  # rows
    width: int  # numbers in `counts`; 0 where they follow from `score`
    statistic: str  # name of the one that makes the score of them
    plain: bool  # whether every document takes part in the score, each a unit of its own


class Part(BaseModel):
    """The tasks of a run of layout 1 that shared their files: those of one suite and strategy."""

    model_config = ConfigDict(frozen=True)

    path: str  # of its files, from the folder of a table on
    documents: dict[str, Rows]
    responses: bool  # whether texts are stored


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
    layout: int = _BEFORE  # of its tables
    parts: list[Part] = []  # of layout 1

    @property
    def name(self) -> str:
        """From the store's folder on: of its folder, or of its file in layout 1."""
        return _file_of_divided(self.run) if self.parts else folder_name(self.run, self.state)

    def tables(self, table: str) -> list[str]:
        """Files that a table may have, from the store's folder on."""
        return [_place_of(table, part) for part in self.parts] or [f"{self.name}/{table}"]

    def table_of(self, table: str, task: str) -> str:
        """The file with the documents, or the texts, of a task."""
        return next(
            (_place_of(table, part) for part in self.parts if task in part.documents), f"{self.name}/{table}"
        )


def _place_of(table: str, part: Part) -> str:
    return f"{table.removesuffix('.parquet')}/{part.path}"


def _file_of_divided(run: str) -> str:
    return f"runs/{run}.json"


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
    check_all_regular(folder)
    file = folder / INDEX
    try:
        content = read_json(file)
        schema = int(content["schema"])
        if _DIVIDED < schema <= SCHEMA:
            return _RUNS.validate_python(content["runs"])
        if schema < _DIVIDED:
            raise ValueError(schema)
    except (MedtasksError, ValidationError, KeyError, TypeError, ValueError):
        raise MedtasksError("damaged: not the index of a store", where=file, remedy=_AGAIN) from None
    if schema == _DIVIDED:
        return _index_of_divided(folder)
    raise MedtasksError(
        f"was written by a newer version (layout {schema}, this one reads {_DIVIDED} to {SCHEMA})",
        where=file,
        remedy="pip install --upgrade medtasks",
    )


def _index_of_divided(folder: Path) -> dict[str, str]:
    if (folder / _JOURNAL).is_file():
        what = "an ingest of an earlier version was killed halfway"
        raise MedtasksError(what, where=folder / _JOURNAL, remedy=_AGAIN)
    return {file.stem: _file_of_divided(file.stem) for file in (folder / "runs").glob("*.json")}


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
    return {run: stored_run(folder, name) for run, name in sorted(read_index(folder).items())}


def stored_run(folder: Path, name: str) -> StoredRun:
    """A run of a store.

    Args:
        name: of it in the index.

    Raises:
        MedtasksError: its file is gone or damaged.
    """
    divided = name.endswith(".json")
    file = folder / name if divided else folder / name / RUN
    if not file.is_file():
        raise missing_file(file)
    try:
        content = read_json(file)
        return StoredRun.model_validate(_of_divided(content) if divided else content)
    except (MedtasksError, ValidationError, KeyError, TypeError, AttributeError):
        raise damaged(file, "damaged: not a run as a store records it") from None


def _of_divided(content: Any) -> Any:
    """A run of layout 1 as this layout has it."""
    documents = {task: rows for part in content["parts"] for task, rows in part["documents"].items()}
    texts = [task for part in content["parts"] if part["responses"] for task in part["documents"]]
    state = content["fingerprint"]
    return {**content, "state": state, "documents": documents, "texts": texts, "layout": _DIVIDED}


def remove_divided(folder: Path, runs: Iterable[StoredRun]) -> None:
    """Remove the files of runs of layout 1 from a store that holds them anew."""
    for run in runs:
        named = [file for table in (RESULTS, DOCUMENTS, RESPONSES) for file in run.tables(table)]
        for file in (run.name, *named):
            place = folder / file
            place.unlink(missing_ok=True)
            for above in place.parents:
                if above == folder or not above.is_dir() or any(above.iterdir()):
                    break
                above.rmdir()
    for lock in ("_ingest.lock", "_commit.lock"):
        (folder / lock).unlink(missing_ok=True)


def missing_file(file: Path) -> MedtasksError:
    """The error for a file of a run that is not there: another ingest replaced the run, or it was deleted."""
    folder = next((place for place in file.parents if is_store(place)), file.parent)
    named = read_index(folder) if is_store(folder) else {}
    if file.parent.name in named.values() or file.stem in named:
        return damaged(file, "no such file")
    what = "the run was stored anew since the store was opened"
    return MedtasksError(what, where=file, remedy="run the command again")


def damaged(file: Path, what: str) -> MedtasksError:
    """The error for a file of a run that cannot be used."""
    if _FOLDER.fullmatch(file.parent.name) is None:  # of layout 1
        return MedtasksError(what, where=file, remedy=_AGAIN)
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
    hasher = blake2b(json.dumps([SCHEMA, sorted(tasks), text]).encode(), digest_size=16)
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        hasher.update(blake2b(content, digest_size=16).digest())
    return hasher.hexdigest()
