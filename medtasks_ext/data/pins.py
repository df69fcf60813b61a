"""`data.lock` of a dataset, written from the files that come: commit, digests, sizes, hosts, rows.

What a lock says of content depends on the content alone, so that it is the same on every machine; when and by
whom something was seen stays as long as the content does.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from medtasks_ext.atomic import write_text
from medtasks_ext.data.rowlock import documents_text, lock_of_rows
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Dataset, forget
from medtasks_ext.registry.datalock import (
    DOCUMENTS_FILE,
    LOCK_FILE,
    DataLock,
    LockedDatabase,
    LockedFile,
    Seen,
    is_sha256,
    locked_names,
)
from medtasks_ext.registry.folders import PACKAGE
from medtasks_ext.rows.digests import members_digest, sha256_of
from medtasks_ext.rows.files import read_rows
from medtasks_ext.rows.folders import data_folder
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import COMMIT, RemoteFile, database_file, drop, remote_file, remote_files
from medtasks_ext.rows.sources import is_allowed
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from medtasks_ext.prompts.load import RowCheck


def pin(dataset: Dataset, by: str = f"medtasks {__version__}") -> list[str]:
    """Write the lock of a dataset: what its public files hold now, fetched where they are not here.

    A file that is pinned has to be what it was. Git's hash of a file is replaced by the SHA-256 of the file
    that has it. What the task file pins itself is left to it.

    Args:
        dataset: whose lock is written.
        by: who has seen the content, for the lock.

    Returns:
        What is new in the lock, a line each.

    Raises:
        MedtasksError: a file cannot be had, or is not the one that is pinned; its rows cannot be read; terms
            have not been accepted; the folder is that of an installed package. The lock is as it was.
    """
    source, before = source_of(dataset), dataset.lock or DataLock()
    download, database = source.download, source.database
    if download is None:
        return []
    if PACKAGE in dataset.folder.parents:
        raise MedtasksError(
            "the installed tasks are replaced by updates",
            where=dataset.folder,
            remedy="pin in a clone of the repository, or in a folder of your own",
        )
    if not is_allowed(source):
        raise MedtasksError(
            "its terms are not accepted here",
            where=dataset.id,
            remedy=f"medtasks data fetch --accept {dataset.id}",
        )
    files = {file.name: file for file in remote_files(source)}
    stated = dataset.config["rows"]["download"]
    follows = download.repo and not COMMIT.fullmatch(str(stated.get("revision", "")))
    seen = Seen(day=time.strftime("%Y-%m-%d"), by=by)
    revision = _commit(files) if follows else None
    content = {
        key: _locked(remote_file(source, name), before.files.get(key), seen, revision)
        for key, name in locked_names(download.names).items()
        if name not in stated.get("digests", {})
    }
    known = None if "revision" in stated and not follows else download.revision
    after = DataLock(revision=revision if follows else known, files=content, words=before.words)
    if database and "revision" not in dataset.config["rows"]["database"]:
        held = _locked(database_file(database), before.database, seen, None)
        locked = LockedDatabase(revision=database.revision, **held.model_dump())
        after = after.model_copy(update={"database": locked})
    row_check = check_rows(dataset, "hub")
    if row_check.faults:
        raise row_check.faults[0]
    rows, lines = lock_of_rows(dataset, row_check, seen)
    if before.rows and rows.model_copy(update={"seen": before.rows.seen}) == before.rows:
        rows = before.rows
    after = after.model_copy(update={"rows": rows})
    documents = dataset.folder / DOCUMENTS_FILE
    if lines:
        write_text(documents, documents_text(lines))
    else:
        documents.unlink(missing_ok=True)
    if after != before:
        write_text(dataset.folder / LOCK_FILE, after.text)
    return _new(before, after)


def renew(dataset: Dataset, revision: str | None = None, by: str = f"medtasks {__version__}") -> list[str]:
    """Write the lock of a dataset anew, for what its source holds now, and raise `N` of its version.

    Scores before and after are of other rows and another version, so nothing ranks them together.

    Args:
        dataset: whose lock is replaced.
        revision: commit or release to go to; by default what lies at the places that are named now.
        by: who has seen the content, for the lock.

    Returns:
        What is new, a line each; nothing where the source holds what it held.

    Raises:
        MedtasksError: as for `pin`; or there is no lock, or no place for the revision or the version. All
            files are as they were.
    """
    lock, documents = dataset.folder / LOCK_FILE, dataset.folder / DOCUMENTS_FILE
    before = dataset.lock
    if before is None or dataset.file.parent != dataset.folder:
        raise MedtasksError("has no lock to replace", where=dataset.id, remedy="medtasks data pin TASK")
    kept = {
        file: file.read_text(encoding="utf-8") for file in (lock, documents, dataset.file) if file.is_file()
    }
    task = _with_next_version(dataset, kept[dataset.file])
    task, emptied = _at_revision(dataset, task, before.revision, revision)
    done = False
    try:
        for file in remote_files(source_of(dataset)):
            if not revision and (here := file.here()):
                drop(here)  # the bytes of now are wanted
                file.record.unlink(missing_ok=True)
        documents.unlink(missing_ok=True)
        lock.unlink()
        if emptied.revision:
            write_text(lock, emptied.text)
        write_text(dataset.file, task)
        forget()
        pin(Dataset(dataset.folder), by)
        after = Dataset(dataset.folder).lock or DataLock()
        done = _held(after) != _held(before)
    finally:
        if not done:
            for written in (lock, documents):
                written.unlink(missing_ok=True)
            for path, text in kept.items():
                write_text(path, text)
        forget()
    return [*_new(before, after), f"version: {Dataset(dataset.folder).version}"] if done else []


def _held(lock: DataLock) -> tuple[object, ...]:
    """What a lock says of content, whenever that was seen and wherever it lies."""
    return (
        {name: file.digest for name, file in lock.files.items()},
        lock.database and lock.database.digest,
        lock.rows and lock.rows.model_copy(update={"seen": None}),
    )


def _with_next_version(dataset: Dataset, task: str) -> str:
    """The text of a task file with `N` one higher and `X` at its beginning."""
    number, dash, _ = dataset.version.partition("-")
    found = re.findall(rf"version:\s*[\"']?{re.escape(dataset.version)}\b", task)
    if not dash or len(found) != 1:
        raise MedtasksError(
            "the version is not in it as N-X, once", where=dataset.file, remedy="raise N by hand"
        )
    return task.replace(found[0], found[0].replace(dataset.version, f"{int(number) + 1}-A"))


def _at_revision(
    dataset: Dataset, task: str, locked: str | None, revision: str | None
) -> tuple[str, DataLock]:
    """The text of a task file, and the lock to begin with, at a revision."""
    if locked and not COMMIT.fullmatch(str(dataset.config["rows"]["download"].get("revision", ""))):
        return task, DataLock(revision=revision or locked)
    if revision is None:
        return task, DataLock()
    stated = str(dataset.config["rows"]["download"].get("revision", ""))
    if not stated or task.count(stated) != 1:
        raise MedtasksError(
            "its revision is not in the file, once",
            where=dataset.file,
            remedy="write the new one there, and leave --revision out",
        )
    return task.replace(stated, revision), DataLock()


def pin_copies(dataset: Dataset, copies: Sequence[Path], by: str) -> list[str]:
    """Write what a dataset's test rows are, by public copies of them, where its files cannot be had.

    The rows are not the files: these stay unpinned until `pin` sees them.

    Args:
        dataset: open, whose lock knows no rows of its files.
        copies: row files of independent origin, each with all test rows in a form that the task reads.
        by: who has seen which copies, for the lock.

    Returns:
        What is new in the lock, a line each.

    Raises:
        MedtasksError: there is one copy alone, or two disagree; a copy cannot be read; the data is not open,
            or its rows are known by their files.
    """
    before = dataset.lock or DataLock()
    if dataset.metadata.access != "open" or (before.rows and before.rows.basis == "bytes"):
        raise MedtasksError(
            "its rows are known by its files" if before.rows else "is not open: copies of it prove nothing",
            where=dataset.id,
            remedy="leave --copy out",
        )
    if len(copies) < 2:
        raise MedtasksError(
            "one copy proves nothing", where="--copy", remedy="name two of independent origin"
        )
    seen = Seen(day=time.strftime("%Y-%m-%d"), by=by)
    locks = [lock_of_rows(dataset, _rows_of_copy(dataset, copy), seen) for copy in copies]
    rows, lines = locks[0]
    for copy, (_, others) in zip(copies[1:], locks[1:], strict=True):
        if others != lines:
            n = sum(one != other for one, other in zip(lines, others, strict=False))
            raise MedtasksError(
                f"has {len(others):,} rows, of which {n:,} are others than in {copies[0].name}"
                f" with its {len(lines):,}",
                where=copy,
                remedy="find out which one is right, and say both in the card (verify)",
            )
    rows = rows.model_copy(update={"basis": "copies", "fewshot": None})
    after = before.model_copy(update={"rows": rows})
    write_text(dataset.folder / DOCUMENTS_FILE, documents_text(lines))
    write_text(dataset.folder / LOCK_FILE, after.text)
    return _new(before, after)


def _rows_of_copy(dataset: Dataset, copy: Path) -> RowCheck:
    """The rows of a copy, read as local ones; the bundled examples keep test rows from serving as shots.

    Raises:
        MedtasksError: a row cannot be read.
    """
    if not copy.is_file():
        raise MedtasksError("no such file", where=copy, remedy="name a row file: .jsonl, .csv, .parquet, …")
    shots = [row for row in read_rows(dataset.sample_file) if row.get("_split") == "fewshot"]
    with TemporaryDirectory() as root:
        folder = Path(root, dataset.metadata.suite, dataset.folder.name)
        folder.mkdir(parents=True)
        (folder / f"test{copy.suffix}").write_bytes(copy.read_bytes())
        write_text(folder / "fewshot.jsonl", "".join(json.dumps(row) + "\n" for row in shots))
        with data_folder(Path(root)):
            row_check = check_rows(dataset, "local")
    if row_check.faults:
        fault = row_check.faults[0]
        raise MedtasksError(fault.what, where=copy, remedy=fault.remedy or "name a whole copy")
    return row_check


def _commit(files: Mapping[str, RemoteFile]) -> str | None:
    """The commit that files of the hub are of; that of a branch names their folder in the hub's cache."""
    file = next(iter(files.values()))
    if COMMIT.fullmatch(file.revision):
        return file.revision
    parts = file.get().parts
    commit = parts[parts.index("snapshots") + 1] if "snapshots" in parts else ""
    return commit if COMMIT.fullmatch(commit) else None


def _locked(file: RemoteFile, before: LockedFile | None, seen: Seen, revision: str | None) -> LockedFile:
    """What a lock says of a file.

    Args:
        file: that is at hand, or comes.
        before: what the lock says now.
        seen: when and by whom, where its content is new.
        revision: the commit of the hub at which it was found, where it was asked for at a branch.
    """
    path = file.get()
    if not file.is_right(path):
        raise MedtasksError(
            "holds other content than is pinned", where=path, remedy="remove it, to fetch it again"
        )
    if is_sha256(file.digest):
        digest = str(file.digest)
    elif file.members:
        digest = f"members:{members_digest(path, file.members)}"
    else:
        digest = f"sha256:{sha256_of(path)}"
    size = path.stat().st_size if not file.is_packed_on_demand else None
    known = replace(file, digest=digest, revision=revision or file.revision)
    locked = LockedFile(digest=digest, size=size, hosts=known.hosts, seen=seen)
    if before and before.seen and locked.model_copy(update={"seen": before.seen}) == before:
        return before
    return locked


def _new(before: DataLock, after: DataLock) -> list[str]:
    lines = [f"revision: {after.revision}"] if after.revision != before.revision else []
    lines += [
        f"{name}: {file.digest}" for name, file in after.files.items() if before.files.get(name) != file
    ]
    if after.database and after.database != before.database:
        lines.append(f"database: {after.database.digest}")
    if after.rows and after.rows != before.rows:
        lines.append(f"rows: {after.rows.test.n:,} to ask")
    return lines
