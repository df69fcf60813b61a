"""`data.lock` of a dataset folder: which bytes its public files have, and which rows are made of them.

`medtasks dev lock --data` writes it. A task file says where rows come from; the lock says what lies there:
a commit or release, of each file its hosts, its size and what identifies its content, and of the rows what
tells them from others: of data that is open a hash, of other data their number alone. Without a lock a
download is unpinned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import JsonError, parse_json
from medtasks_ext.strict import Config, Strict, validated

LOCK_FILE = "data.lock"
#: What identifies content, `KIND:HEX` (`rows.remote`).
Digest = Annotated[str, StringConstraints(pattern=r"^(sha256|git|members):[0-9a-f]{40,64}$")]
_REMEDY = "`medtasks dev lock --data TASK` writes the file; nobody edits it"


class Seen(Strict):
    """When content was seen, and by whom."""

    day: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")]  #: of the look (`2026-11-24`).
    by: str  #: what looked, and where: `medtasks 0.9 at raw.githubusercontent.com`.


class LockedFile(Strict):
    """One public file."""

    #: what identifies its content: `sha256:` of its bytes, `git:` the id of its blob, `members:` the SHA-256
    #: of the members of an archive that are read. Without one the file is not pinned.
    digest: Digest | None = Field(default=None)
    #: bytes, where they were counted; those of an archive that is packed on demand differ.
    size: int | None = Field(default=None, ge=0)
    hosts: list[str] = Field(default=[])  #: URLs at which it is had.
    seen: Seen | None = None  #: when its bytes were last counted.


class LockedDatabase(LockedFile):
    """The database on which answers are run, as a file, and the commit of its URL."""

    revision: str  #: commit of its URL.


class LockedPart(Strict):
    """One part of a dataset's rows."""

    n: int = Field(ge=0)  #: documents; one that is asked in several trials counts once.
    #: SHA-256 of the hashes of all (input, options, gold) in their order, of open data.
    folded: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


class LockedRows(Strict):
    """What the rows of a dataset are, as its task file reads them."""

    #: hash of the documents that the task makes of its bundled sample rows. Where it makes others now, the
    #: task reads rows in another way, and the lock says nothing of them.
    sample: str
    #: `bytes`: the rows are those of the files above. `copies`: the files were not seen; independent public
    #: copies have the same rows.
    basis: Literal["bytes", "copies"] = "bytes"
    seen: Seen  #: when the rows were read.
    test: LockedPart  #: those that are asked.
    fewshot: LockedPart | None = None  #: those of which shots are taken.


class DataLock(Strict):
    """`data.lock`: the content of a dataset's public files, written by `medtasks dev lock --data`."""

    #: commit, release or date of the download; it stands for `{revision}` in URLs.
    revision: str | None = None
    #: file -> its content. A file of the hub has its path there; one at a URL what stands behind the last
    #: slash, or the URL where two end alike.
    files: dict[str, LockedFile] = Field(default={})
    database: LockedDatabase | None = None  #: that of `rows.database`.
    rows: LockedRows | None = None  #: what the rows are.

    @property
    def text(self) -> str:
        content = self.model_dump(exclude_defaults=True)
        if self.files:
            content["files"] = dict(sorted(content["files"].items()))
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def is_sha256(digest: str | None) -> bool:
    """Whether a digest pins content: it is a SHA-256 of ours. Git's hash of a file is SHA-1, and is none."""
    return digest is not None and not digest.startswith("git:")


def read_lock(folder: Path) -> DataLock | None:
    file = folder / LOCK_FILE
    check_regular(file)
    if not file.exists():
        return None
    content = file.read_bytes()
    try:
        said = parse_json(content, strict=True)
    except JsonError as error:
        raise MedtasksError(f"no JSON ({error})", where=file, remedy=_REMEDY) from None
    return validated(lambda: DataLock.model_validate(said), where=file, remedy=_REMEDY)


def locked_names(names: Iterable[str]) -> dict[str, str]:
    """Names of files as the lock has them -> as `rows.download` has them, members of archives left out."""
    files = dict.fromkeys(name.partition("!")[0] for name in names)
    short = {name: name.rpartition("/")[2] if "://" in name else name for name in files}
    alike = [*short.values()]
    return {key if alike.count(key) == 1 else name: name for name, key in short.items()}


def with_lock(rows: Mapping[str, Any], lock: DataLock, folder: Path) -> Config:
    """What a task file says of its rows, with the revisions and digests of its lock."""
    merged = dict(rows)
    if isinstance(download := rows.get("download"), dict) and (lock.revision or lock.files):
        follows = download.get("repo") and len(str(download.get("revision", ""))) != len("0" * 40)
        if lock.revision and "revision" in download and not follows:
            raise _twice("rows.download.revision", folder)
        listed = [*download.get("test", ()), *download.get("fewshot", ()), download.get("test_ids")]
        names = locked_names(filter(None, listed))
        digests = {names.get(key, key): _pin(file) for key, file in lock.files.items()}
        stated = download.get("digests") or {}
        if stated.keys() & digests.keys():
            raise _twice("rows.download.digests", folder)
        pins = {"revision": lock.revision} if lock.revision else {}
        merged["download"] = {**download, **pins, "digests": {**stated, **digests}}
    if isinstance(database := rows.get("database"), dict) and lock.database:
        pins = {"revision": lock.database.revision, **_pin(lock.database)}
        if pins.keys() & database.keys():
            raise _twice("rows.database." + next(key for key in pins if key in database), folder)
        merged["database"] = {**database, **pins}
    return merged


def are_pinned(rows: Mapping[str, Any]) -> bool | None:
    """Whether a SHA-256 of ours says what each public file holds; None where there is none.

    `rows`: what a task file says of its rows, with its lock.
    """
    download, database = rows.get("download"), rows.get("database")
    if not isinstance(download, dict):
        return None
    listed = [*download.get("test", ()), *download.get("fewshot", ()), download.get("test_ids")]
    stated = download.get("digests") or {}
    pins = [stated.get(name.partition("!")[0]) for name in listed if name]
    pins += [database.get("digest")] if isinstance(database, dict) else []
    return all(is_sha256(pin.get("digest") if isinstance(pin, dict) else pin) for pin in pins)


def _pin(file: LockedFile) -> Config:
    return file.model_dump(include={"digest", "size", "hosts"}, exclude_defaults=True)


def _twice(key: str, folder: Path) -> MedtasksError:
    what = f"{key} stands in the task file and in {LOCK_FILE}"
    return MedtasksError(what, where=folder, remedy="leave it out of the task file: only the lock says it")
