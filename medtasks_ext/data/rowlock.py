"""`data.lock` of a dataset: what it keeps of files and rows, whether rows are these, how it is written.

Of open rows one hash is kept, over all of them; of other data none: the hash of a public question with its
answer gives the answer away. What a lock says of content depends on the content alone, so that it is the same
on every machine; when and by whom something was seen stays as long as the content does.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from medtasks_ext.atomic import write_text
from medtasks_ext.errors import MedtasksError
from medtasks_ext.prompts.load import check_rows
from medtasks_ext.registry import Dataset
from medtasks_ext.registry.datalock import (
    LOCK_FILE,
    DataLock,
    LockedDatabase,
    LockedFile,
    LockedPart,
    LockedRows,
    Seen,
    is_sha256,
    locked_names,
)
from medtasks_ext.rows.remote import (
    COMMIT,
    RemoteFile,
    database_file,
    members_digest,
    remote_file,
    remote_files,
    sha256_of,
)
from medtasks_ext.rows.sources import is_allowed, source_of
from medtasks_ext.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from medtasks_ext.prompts.documents import Document
    from medtasks_ext.prompts.load import RowCheck


def folded(documents: Iterable[Document]) -> str:
    """The SHA-256 of all documents in their order: input, options and gold, to the letter.

    Documents are as own words ask them, whatever words a run uses.
    """
    hasher = hashlib.sha256()
    for item in documents:
        gold = item["gold"] if item["gold"] is not None else item["target"]
        gold = json.dumps([gold, item.get("points")], ensure_ascii=False, default=str, sort_keys=True)
        parts = [item.question, item.input, json.dumps(item.get("options"), ensure_ascii=False), gold]
        hasher.update(hashlib.sha256("\x1f".join(parts).encode(errors="surrogatepass")).digest())
    return hasher.hexdigest()


def once(documents: Iterable[Document]) -> list[Document]:
    """The documents, those of several trials once: as they are asked first."""
    return [item for item in documents if not item.get("trial")]


def lock_of_rows(dataset: Dataset, row_check: RowCheck, seen: Seen) -> LockedRows:
    test, pool = once(row_check.test), once(row_check.fewshot)
    part = LockedPart(n=len(test), folded=kept_hash(dataset, test))
    fewshot = LockedPart(n=len(pool)) if pool else None
    return LockedRows(sample=sample_hash(dataset), seen=seen, test=part, fewshot=fewshot)


def sample_hash(dataset: Dataset) -> str:
    """Identifies how a task reads rows: a hash of the documents that it makes of its sample rows."""
    row_check = check_rows(dataset, "sample")
    return folded([*once(row_check.test), *once(row_check.fewshot)])[:12]


def kept_hash(dataset: Dataset, documents: Sequence[Document]) -> str | None:
    """The hash of test rows as a lock keeps it; None of data that is not open."""
    return folded(once(documents)) if dataset.metadata.access == "open" else None


def are_locked(dataset: Dataset, documents: Sequence[Document]) -> bool | None:
    """Whether every test document is the locked one, in its order; None where the lock says nothing of that.

    So it is where the task reads rows in another way than when the lock was written.
    """
    rows = dataset.lock.rows if dataset.lock else None
    if rows is None or rows.test.folded is None or rows.sample != sample_hash(dataset):
        return None
    return rows.test.folded == folded(once(documents))


_known: dict[tuple[object, ...], tuple[str | None, bool]] = {}


def local_rows(dataset: Dataset, asked: Sequence[Document] | None) -> tuple[str | None, bool]:
    """Of local rows: their hash as a lock keeps it, and whether the lock knows the suite's rows as others.

    Looked at once per process. `asked`: the test documents, where they are those that a check makes but for
    their words; None where the rows have to be read for it.
    """
    environment = (os.environ.get(name, "") for name in ("MEDTASKS_DATA_DIR", "MEDTASKS_DATA"))
    key = dataset, str(dataset.file), *environment
    if key not in _known:
        test = check_rows(dataset, "local").test if asked is None else asked
        # the lock of a source says nothing of the suite's own file, which is made of it
        rows = dataset.lock.rows if dataset.lock else None
        suites = rows is not None and rows.test.n == dataset.n_documents
        unlike = suites and not test[0].loaded.record["rebuilt"] and are_locked(dataset, test) is False
        _known[key] = kept_hash(dataset, test), unlike
    return _known[key]


def pin(dataset: Dataset) -> bool:
    """Write the lock of a dataset, what its public files hold now; whether something is new in it.

    A file that is pinned has to be what it was. Git's hash of a file is replaced by the SHA-256 of the file
    that has it. What the task file pins itself is left to it. After a MedtasksError the lock is as it was.
    """
    source, before = source_of(dataset), dataset.lock or DataLock()
    download, database = source.download, source.database
    if download is None:
        return False
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
    rows = lock_of_rows(dataset, row_check, seen)
    if before.rows and rows.model_copy(update={"seen": before.rows.seen}) == before.rows:
        rows = before.rows
    after = after.model_copy(update={"rows": rows})
    if after != before:
        write_text(dataset.folder / LOCK_FILE, after.text)
    return after != before


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
    if not file.is_as_before(path):
        raise MedtasksError(
            "holds other content than is pinned", where=path, remedy="remove it, to fetch it again"
        )
    if is_sha256(file.digest):
        digest = str(file.digest)
    elif file.members:
        digest = f"members:{members_digest(path, file.members)}"
    else:
        digest = f"sha256:{sha256_of(path)}"
    # what GitHub packs for each request differs in its size
    size = None if "/archive/" in file.name else path.stat().st_size
    known = replace(file, digest=digest, revision=revision or file.revision)
    locked = LockedFile(digest=digest, size=size, hosts=known.hosts, seen=seen)
    if before and before.seen and locked.model_copy(update={"seen": before.seen}) == before:
        return before
    return locked
