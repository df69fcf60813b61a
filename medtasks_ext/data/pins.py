"""`data.lock` of a dataset, written from the files that come: the commit of a branch, digests, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.datalock import LOCK_FILE, DataLock, LockedDatabase, LockedFile, locked_names
from medtasks_ext.registry.folders import PACKAGE
from medtasks_ext.rows.digests import members_digest, sha256_of
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import COMMIT, RemoteFile, remote_file, remote_files
from medtasks_ext.rows.sources import is_allowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from medtasks_ext.registry import Dataset


def pin(dataset: Dataset) -> list[str]:
    """Write the lock of a dataset: what its public files hold now, fetched where they are not here.

    A file that is pinned has to be what it was; its digest stays, of whichever kind it is. What the task file
    pins itself is left to it.

    Returns:
        What is new in the lock, a line each.

    Raises:
        MedtasksError: a file cannot be had, or is not the one that is pinned; terms have not been accepted;
            the folder is that of an installed package.
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
    names = [*download.test, *download.fewshot, *([download.test_ids] if download.test_ids else [])]
    content = {
        key: _locked(remote_file(source, name))
        for key, name in locked_names(names).items()
        if name not in stated.get("digests", {})
    }
    known = None if "revision" in stated and not follows else download.revision
    after = DataLock(revision=_commit(files) if follows else known, files=content)
    if database and "revision" not in dataset.config["rows"]["database"]:
        held = _locked(files[database.url.format(revision=database.revision)])
        locked = LockedDatabase(revision=database.revision, **held.model_dump())
        after = after.model_copy(update={"database": locked})
    if after != before:
        write_text(dataset.folder / LOCK_FILE, after.text)
    return _new(before, after)


def _commit(files: Mapping[str, RemoteFile]) -> str | None:
    """The commit that files of the hub are of; that of a branch names their folder in the hub's cache."""
    file = next(iter(files.values()))
    if COMMIT.fullmatch(file.revision):
        return file.revision
    parts = file.get().parts
    found = parts[parts.index("snapshots") + 1] if "snapshots" in parts else ""
    return found if COMMIT.fullmatch(found) else None


def _locked(file: RemoteFile) -> LockedFile:
    path = file.get()
    new = f"members:{members_digest(path, file.members)}" if file.members else f"sha256:{sha256_of(path)}"
    return LockedFile(digest=file.digest or new, size=path.stat().st_size)


def _new(before: DataLock, after: DataLock) -> list[str]:
    lines = [f"revision: {after.revision}"] if after.revision != before.revision else []
    lines += [
        f"{name}: {file.digest}" for name, file in after.files.items() if before.files.get(name) != file
    ]
    if after.database and after.database != before.database:
        lines.append(f"database: {after.database.digest}")
    return lines
