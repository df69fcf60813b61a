"""Public files: on the Hugging Face hub or at a URL, each at a pinned revision, downloaded once.

A file is pinned if a SHA-256 of ours says what it holds: what a server says of its own answer (a hub's ETag,
the git hash in an address) is none. One that is not pinned is on trial until its rows were read: then its
hash is recorded, and other content is refused from then on. Some have terms that a user accepts once.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from medtasks_ext.atomic import check_regular
from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import Json, read_json, write_json
from medtasks_ext.registry.datalock import is_sha256
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows import transfer
from medtasks_ext.rows.places import FETCHED, data_dir
from medtasks_ext.rows.transfer import OTHERWISE

if TYPE_CHECKING:
    from medtasks_ext.rows.spec import Database, Source, Terms


def sha256_of(path: Path) -> str:
    return _hashed(path, hashlib.sha256())


def git_blob(path: Path) -> str:
    return _hashed(path, hashlib.sha1(b"blob %d\0" % path.stat().st_size))


def _hashed(path: Path, digest: hashlib._Hash) -> str:
    check_regular(path)
    with path.open("rb") as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def members_digest(path: Path, patterns: Sequence[str]) -> str:
    """The SHA-256 of what `sha256sum` prints of a zip archive's members, sorted by name.

    Archives that servers pack on demand change their bytes, not their members. `patterns` are compared with
    the last parts of their paths.
    """
    check_regular(path)
    listing = hashlib.sha256()
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if any(PurePosixPath(name).match(pattern) for pattern in patterns):
                listing.update(f"{hashlib.sha256(archive.read(name)).hexdigest()}  {name}\n".encode())
    return listing.hexdigest()


def has_digest(path: Path, digest: str, patterns: Sequence[str]) -> bool:
    """`digest`: `sha256:…` of the bytes, `git:…` (the blob's id), or `members:…` of an archive."""
    kind, _, wanted = digest.partition(":")
    if kind != "members":
        return (git_blob if kind == "git" else sha256_of)(path) == wanted
    try:
        return members_digest(path, patterns) == wanted
    except zipfile.BadZipFile:
        return False


_HUB_URL = "https://huggingface.co/datasets/"
COMMIT = re.compile(r"[0-9a-f]{40}")


def is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "0").upper() not in ("", "0", "OFF", "NO", "FALSE")


@dataclass(frozen=True)
class RemoteFile:
    name: str  # path in the repository, or URL
    revision: str  # commit or release that is pinned
    repo: str | None = None  # dataset on the hub; None for a URL
    digest: str | None = None  # of its content (`rows.remote`); None where it is not known
    members: tuple[str, ...] = ()  # patterns of an archive's members that are read
    mirrors: tuple[str, ...] = ()  # URLs of the same content, asked in this order after its own place

    @property
    def source(self) -> str:
        return f"hf.co/datasets/{self.repo}@{self.revision}/{self.name}" if self.repo else self.name

    @property
    def carried(self) -> str:
        if self.repo:
            return f"hub/{self.repo}/{self.revision}/{self.name}"
        return f"urls/{hashlib.sha256(self.name.encode()).hexdigest()[:16]}/{Path(self.name).name}"

    @property
    def is_pinned(self) -> bool:
        """Whether a SHA-256 of ours says what it holds."""
        return is_sha256(self.digest)

    @property
    def record(self) -> Path:
        return cache_dir() / "first_use" / f"{hashlib.sha256(self.source.encode()).hexdigest()[:16]}.json"

    @property
    def is_on_trial(self) -> bool:
        """Whether nobody knows yet what it holds: it is not pinned, was never used, and not carried here."""
        root, path = data_dir(), self._kept()
        is_carried = root and path and root in path.parents  # a user has brought it here
        return not (self.is_pinned or self.record.is_file() or is_carried)

    @property
    def urls(self) -> list[str]:
        """The URLs at which it is asked for, in order: its own, mirrors."""
        return [*dict.fromkeys([*([] if self.repo else [self.name]), *self.mirrors])]

    @property
    def hosts(self) -> list[str]:
        hub = f"{_HUB_URL}{self.repo}/resolve/{self.revision}/{self.name}"
        return [*([hub] if self.repo else []), *self.urls]

    def is_as_before(self, path: Path) -> bool:
        """Whether a file has its content, as far as that is known: by a pin, or since its first use."""
        if self.is_pinned or not self.record.is_file():
            return self.digest is None or has_digest(path, self.digest, self.members)
        return bool(read_json(self.record)["sha256"] == sha256_of(path))

    def here(self) -> Path | None:
        """Where it lies on this machine, if it does: carried into the data folder, or in a cache."""
        if (place := self._kept()) or not self.repo:
            return place
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(self.repo, self.name, revision=self.revision, repo_type="dataset")
        return Path(cached) if isinstance(cached, str) else None

    def _kept(self) -> Path | None:
        root = data_dir()
        places = [*([root / FETCHED / self.carried] if root else []), self._cached]
        return next((place for place in places if place.is_file()), None)

    @property
    def _cached(self) -> Path:
        return cache_dir() / self.carried.removeprefix("urls/")

    def get(self) -> Path:
        """Where it lies, after a download if need be; MedtasksError where no place has the right content."""
        if kept := self._kept():
            return kept
        if not self.repo and is_offline():
            what = "is not in the local cache and HF_HUB_OFFLINE is set"
            raise MedtasksError(what, where=self.source, remedy=f"run once with internet, or {OTHERWISE}")
        failed: list[MedtasksError] = []
        for url in [*([None] if self.repo else []), *([] if is_offline() else self.urls)]:
            try:
                if url is None:
                    return self._checked(self._from_hub())
                # the part of an earlier call is taken up where the content is known
                expected = transfer.Expected(known=bool(self.digest))
                return transfer.fetch(url, self._cached, partial(self._checked, url=url), expected)
            except MedtasksError as error:
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        why = "; ".join(f"{urlsplit(str(error.where)).hostname or 'hub'}: {error.what}" for error in failed)
        raise MedtasksError(f"{len(failed)} places: {why}", where=self.source, remedy=failed[0].remedy)

    def _checked(self, path: Path, url: str | None = None) -> Path:
        """The file, if its content is right; else it is removed."""
        if self.is_as_before(path):
            return path
        drop(path)
        what, remedy = "sends other content than is pinned", f"try again later, or {OTHERWISE}"
        if not self.is_pinned and self.record.is_file():
            what = "is not pinned, and has other content than was recorded for it"
            remedy = f"if the new content is right, remove {self.record}: scores on it are others than before"
        raise MedtasksError(what, where=url or self.source, remedy=remedy)

    def _from_hub(self) -> Path:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

        assert self.repo
        alone = is_offline() or not transfer.has_known_host(constants.ENDPOINT)  # else it asks for a minute
        try:
            asked: Json = {"repo_type": "dataset", "revision": self.revision, "local_files_only": alone}
            return Path(hf_hub_download(self.repo, self.name, **asked))
        except Exception as error:  # the client has had several HTTP libraries, each with its own errors
            cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
            remedy = f"try again later, or {OTHERWISE}"
            if isinstance(cause, EntryNotFoundError):
                what, remedy = "is no longer on the hub", OTHERWISE
            elif isinstance(cause, HfHubHTTPError):
                code = getattr(getattr(cause, "response", None), "status_code", "no answer")
                what = f"the hub refused the download ({code})"
                if code in (401, 403):
                    remedy = "accept the terms on the dataset's page and run `hf auth login`"
            elif isinstance(error, LocalEntryNotFoundError):
                what = "is not in the local cache and the hub cannot be reached"
                remedy = f"run once with internet, HF_HUB_OFFLINE unset, or {OTHERWISE}"
            else:
                raise transfer.failed(error, self.source) from None
            raise MedtasksError(what, where=self.source, remedy=remedy) from None


def remote_files(source: Source) -> list[RemoteFile]:
    """The public files that a dataset is read from; none where it has no download."""
    download, database = source.download, source.database
    if download is None:
        return []
    files = list(dict.fromkeys(remote_file(source, name) for name in download.names))
    if database:
        files.append(database_file(database))
    return files


def database_file(database: Database) -> RemoteFile:
    url = database.url.format(revision=database.revision)
    return RemoteFile(url, database.revision, digest=database.digest, mirrors=tuple(database.hosts))


def remote_file(source: Source, name: str) -> RemoteFile:
    """The public file that a name of `rows.download` stands for, with or without a member."""
    download = source.download
    assert download is not None
    file = name.partition("!")[0]
    listed = (*download.test, *download.fewshot)
    members = [member for item in listed for whole, _, member in [item.partition("!")] if whole == file]
    patterns = [pattern for layout in source.original for pattern in layout.read]
    pin = download.digests.get(file)
    return RemoteFile(
        file if download.repo else file.format(revision=download.revision),
        download.revision,
        download.repo,
        digest=pin.digest if pin else None,
        members=tuple(dict.fromkeys(filter(None, [*members, *patterns]))),
        # the hub is asked itself
        mirrors=tuple(url for url in pin.hosts if not url.startswith(_HUB_URL)) if pin else (),
    )


def drop(path: Path) -> None:
    """Remove a file, and the content in the hub's cache to which it links."""
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _accepted() -> tuple[Path, Json]:
    file = cache_dir() / "accepted.json"
    return file, read_json(file) if file.is_file() else {}


def are_accepted(terms: Terms) -> bool:
    """Whether the user accepted these terms, in these words."""
    return _key(terms) in _accepted()[1]


def accept(terms: Terms) -> None:
    """They hold for all datasets that have the same."""
    file, kept = _accepted()
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    write_json(file, {**kept, _key(terms): {**terms.model_dump(), "accepted": now}})


def shown(terms: Terms) -> str:
    lines = [f"Owner: {terms.owner}", f"Terms: {terms.asks}", f"       {terms.url}"]
    if terms.copy_by:
        lines.append(
            f"The files are a public copy by {terms.copy_by}, not the owner's. The owner's terms apply to you"
            " whatever the copy says."
        )
    if terms.token:
        lines.append("The hub asks for your own account: accept there, too, and run `hf auth login`.")
    return "\n".join(lines)


def _key(terms: Terms) -> str:
    words = (terms.owner, terms.url, terms.asks, str(bool(terms.copy_by)))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


_Read = TypeVar("_Read")


class NoUseError(MedtasksError):
    """Files that nobody has pinned, and that cannot be used: they are here no longer."""


def first_use(
    files: Sequence[RemoteFile],
    read: Callable[[], _Read],
    fault_of: Callable[[_Read], MedtasksError | None],
) -> _Read:
    """What is read of public files; of files on trial NoUseError where they cannot be used.

    Files on trial are recorded once their rows were read without a fault; otherwise they are removed.
    """
    on_trial = [file for file in files if file.is_on_trial]
    if not on_trial:
        return read()
    try:
        content = read()
        fault = fault_of(content)
    except MedtasksError as error:
        fault = error
    for file in on_trial:
        if path := file.here():
            if fault:
                drop(path)
            else:
                write_json(file.record, {"source": file.source, "sha256": sha256_of(path)})
    if fault is None:
        return content
    raise NoUseError(
        f"sends what cannot be used, and nothing of it was kept: {fault.what}",
        where=", ".join(file.source for file in on_trial),
        remedy=f"the same command asks again, later perhaps with success; or {OTHERWISE}",
    )
