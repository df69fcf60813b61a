"""`data.lock` of a dataset, written from the files that come: commit, digests, sizes, hosts, rows.

What a lock says of content depends on the content alone, so that it is the same on every machine; when and by
whom something was seen stays as long as the content does.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from medtasks_ext.atomic import write_text
from medtasks_ext.data.rowlock import documents_text, lock_of_rows
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Dataset
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
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import COMMIT, RemoteFile, database_file, remote_file, remote_files
from medtasks_ext.rows.sources import is_allowed
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping


def pin(dataset: Dataset) -> list[str]:
    """Write the lock of a dataset: what its public files hold now; returns what is new in it, a line each.

    A file that is pinned has to be what it was. Git's hash of a file is replaced by the SHA-256 of the file
    that has it. What the task file pins itself is left to it. After a MedtasksError the lock is as it was.
    """
    source, before = source_of(dataset), dataset.lock or DataLock()
    download, database = source.download, source.database
    if download is None:
        return []
    if PACKAGE in dataset.folder.parents:
        what = "the installed tasks are replaced by updates"
        remedy = "pin in a clone of the repository, or in a folder of your own"
        raise MedtasksError(what, where=dataset.folder, remedy=remedy)
    if not is_allowed(source):
        what = "its terms are not accepted here"
        raise MedtasksError(what, where=dataset.id, remedy=f"medtasks data fetch --accept {dataset.id}")
    files = {file.name: file for file in remote_files(source)}
    stated = dataset.config["rows"]["download"]
    follows = download.repo and not COMMIT.fullmatch(str(stated.get("revision", "")))
    seen = Seen(day=time.strftime("%Y-%m-%d"), by=f"medtasks {__version__}")
    revision = _commit(files) if follows else None
    content = {
        key: _locked(remote_file(source, name), before.files.get(key), seen, revision)
        for key, name in locked_names(download.names).items()
        if name not in stated.get("digests", {})
    }
    known = None if "revision" in stated and not follows else download.revision
    after = DataLock(revision=revision if follows else known, files=content)
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


def _commit(files: Mapping[str, RemoteFile]) -> str | None:
    """The commit that files of the hub are of; that of a branch names their folder in the hub's cache."""
    file = next(iter(files.values()))
    if COMMIT.fullmatch(file.revision):
        return file.revision
    parts = file.get().parts
    commit = parts[parts.index("snapshots") + 1] if "snapshots" in parts else ""
    return commit if COMMIT.fullmatch(commit) else None


def _locked(file: RemoteFile, before: LockedFile | None, seen: Seen, revision: str | None) -> LockedFile:
    """`before`: as the lock says now. `revision`: the hub's commit of what was asked for at a branch."""
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
