"""Public files: on the Hugging Face hub or at a URL, each at a pinned revision, downloaded once."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medtasks_ext.errors import MedtasksError
from medtasks_ext.jsonfile import read_json, write_json
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows import transfer
from medtasks_ext.rows.digests import git_blob, has_digest, sha256_of
from medtasks_ext.rows.folders import FETCHED, data_dir
from medtasks_ext.rows.transfer import OTHERWISE

if TYPE_CHECKING:
    from medtasks_ext.rows.spec import Source

_FIRST_USE = "first_use"  # folder of the cache: what files that are not pinned held at first
_TERMS = "accept the terms on the dataset's page and run `hf auth login`"
_SHA256, _GIT_SHA1 = 64, 40  # hexadecimal digits
COMMIT = re.compile(r"[0-9a-f]{40}")
_RAW = re.compile(r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/([0-9a-f]{40})/(.+)")
_ARCHIVE = re.compile(r"https://github\.com/([^/]+/[^/]+)/archive/([0-9a-f]{40})\.zip")


def is_offline() -> bool:
    """Whether the user forbids downloads (`HF_HUB_OFFLINE`)."""
    return os.environ.get("HF_HUB_OFFLINE", "0").upper() not in ("", "0", "OFF", "NO", "FALSE")


@dataclass(frozen=True)
class RemoteFile:
    """One public file."""

    name: str  # path in the repository, or URL
    revision: str  # commit or release that is pinned
    repo: str | None = None  # dataset on the hub; None for a URL
    digest: str | None = None  # of its content (`rows.digests`); None where it is not known
    members: tuple[str, ...] = ()  # patterns of an archive's members that are read
    mirrors: tuple[str, ...] = ()  # URLs of the same content, asked in this order after its own place

    @property
    def source(self) -> str:
        """Where it is, for people."""
        return f"hf.co/datasets/{self.repo}@{self.revision}/{self.name}" if self.repo else self.name

    @property
    def carried(self) -> str:
        """Its path below a folder of carried downloads."""
        if self.repo:
            return f"hub/{self.repo}/{self.revision}/{self.name}"
        return f"urls/{_url_place(self.name)}"

    @property
    def is_pinned(self) -> bool:
        """Whether its content is known before it is fetched; a commit of the hub names it, too."""
        return bool(self.digest or (self.repo and COMMIT.fullmatch(self.revision)))

    @property
    def urls(self) -> list[str]:
        """The URLs at which it is asked for, in order: its own, other servers of GitHub's files, mirrors.

        Software Heritage has files by their content, so by a digest that is known.
        """
        others: list[str] = []
        if found := _RAW.fullmatch(self.name):
            others.append("https://cdn.jsdelivr.net/gh/{}@{}/{}".format(*found.groups()))
            kind, _, value = (self.digest or "").partition(":")
            if key := {"git": "sha1_git", "sha256": "sha256"}.get(kind):
                others.append(f"https://archive.softwareheritage.org/api/1/content/{key}:{value}/raw/")
        elif found := _ARCHIVE.fullmatch(self.name):
            others.append("https://codeload.github.com/{}/zip/{}".format(*found.groups()))
        return [*([] if self.repo else [self.name]), *others, *self.mirrors]

    def is_right(self, path: Path) -> bool:
        """Whether a file has its content, as far as that is known."""
        return has_digest(path, self.digest, self.members) if self.digest else is_whole(path)

    def here(self) -> Path | None:
        """Where it lies on this machine, if it does: carried into the data folder, or in a cache."""
        if (place := self._kept()) or not self.repo:
            return place
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.repo, self.name, revision=self.revision, repo_type="dataset")
        return Path(found) if isinstance(found, str) else None

    def _kept(self) -> Path | None:
        root = data_dir()
        places = [*([root / FETCHED / self.carried] if root else []), self._cached]
        return next((place for place in places if place.is_file()), None)

    @property
    def _cached(self) -> Path:
        return cache_dir() / (self.carried if self.repo else _url_place(self.name))

    def get(self) -> Path:
        """Where it lies, after a download if need be.

        Raises:
            MedtasksError: no place has it, with the right content.
        """
        if kept := self._kept():
            return kept
        failed: list[MedtasksError] = []
        if self.repo:
            try:
                return self._as_at_first(self._checked(self._from_hub()))
            except MedtasksError as error:
                failed.append(error)
        elif is_offline():
            raise MedtasksError(
                "is not in the local cache and HF_HUB_OFFLINE is set",
                where=self.source,
                remedy=f"run once with internet, or {OTHERWISE}",
            )
        for url in [] if is_offline() else self.urls:
            try:
                return self._as_at_first(self._from(url))
            except MedtasksError as error:
                failed.append(error)
        raise self._nowhere(failed)

    def _from(self, url: str) -> Path:
        """The file from one URL; a part that an earlier call left is taken up where the content is known."""
        return transfer.fetch(
            url, self._cached, lambda part: self._checked(part, url), resumes=bool(self.digest)
        )

    def _checked(self, path: Path, url: str | None = None) -> Path:
        if self.is_right(path):
            return path
        drop(path)
        what = "sends other content than is pinned" if self.digest else "arrives damaged"
        raise MedtasksError(what, where=url or self.source, remedy=f"try again later, or {OTHERWISE}")

    def _as_at_first(self, path: Path) -> Path:
        """The file, if it is what it was at its first use. The first use of an unpinned file is recorded.

        Raises:
            MedtasksError: the source sends other content than before.
        """
        if self.is_pinned:
            return path
        record = cache_dir() / _FIRST_USE / f"{hashlib.sha256(self.source.encode()).hexdigest()[:16]}.json"
        found = sha256_of(path)
        if not record.is_file():
            write_json(record, {"source": self.source, "sha256": found})
        elif read_json(record)["sha256"] != found:
            drop(path)
            raise MedtasksError(
                "is not pinned, and has other content than was recorded for it",
                where=self.source,
                remedy=f"if the new content is right, remove {record}: scores on it are others than before",
            )
        return path

    def _nowhere(self, failed: list[MedtasksError]) -> MedtasksError:
        if len(failed) == 1:
            return failed[0]
        why = "; ".join(f"{urlsplit(str(error.where)).hostname or 'hub'}: {error.what}" for error in failed)
        return MedtasksError(f"{len(failed)} places: {why}", where=self.source, remedy=failed[0].remedy)

    def _from_hub(self) -> Path:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

        assert self.repo
        try:
            return Path(hf_hub_download(self.repo, self.name, repo_type="dataset", revision=self.revision))
        except LocalEntryNotFoundError as error:
            if isinstance(error.__cause__, HfHubHTTPError):
                raise self._refused(error.__cause__) from None
            raise MedtasksError(
                "is not in the local cache and the hub cannot be reached",
                where=self.source,
                remedy=f"run once with internet, HF_HUB_OFFLINE unset, or {OTHERWISE}",
            ) from None
        except EntryNotFoundError:
            raise MedtasksError("is no longer on the hub", where=self.source, remedy=OTHERWISE) from None
        except HfHubHTTPError as error:
            raise self._refused(error) from None
        except (
            Exception
        ) as error:  # the hub's client has had several HTTP libraries, each with its own errors
            raise transfer.failed(error, self.source) from None

    def _refused(self, error: Exception) -> MedtasksError:
        response = getattr(error, "response", None)
        code = getattr(response, "status_code", "no answer")
        remedy = _TERMS if code in (401, 403) else f"try again later, or {OTHERWISE}"
        return MedtasksError(f"the hub refused the download ({code})", where=self.source, remedy=remedy)


def remote_files(source: Source) -> list[RemoteFile]:
    """The public files that a dataset is read from; none where it has no download."""
    download, database = source.download, source.database
    if download is None:
        return []
    names = [*download.test, *download.fewshot, *([download.test_ids] if download.test_ids else [])]
    files = list(dict.fromkeys(remote_file(source, name) for name in names))
    if database:
        url = database.url.format(revision=database.revision)
        files.append(RemoteFile(url, database.revision, digest=database.digest))
    return files


def remote_file(source: Source, name: str) -> RemoteFile:
    """The public file that a name of `rows.download` stands for, with or without a member."""
    download = source.download
    assert download is not None
    file = name.partition("!")[0]
    listed = (*download.test, *download.fewshot)
    members = [member for item in listed for whole, _, member in [item.partition("!")] if whole == file]
    patterns = [pattern for layout in source.original for pattern in layout.read]
    return RemoteFile(
        file if download.repo else file.format(revision=download.revision),
        download.revision,
        download.repo,
        digest=download.digests.get(file),
        members=tuple(dict.fromkeys(filter(None, [*members, *patterns]))),
        mirrors=tuple(
            url.format(revision=download.revision, file=file) for url in download.mirrors.get(file, [])
        ),
    )


def is_whole(path: Path) -> bool:
    """Whether a file of the hub's cache is what the hub said that it is.

    The cache names a file's content by its hash: SHA-256 for large files, git's SHA-1 for others
    (huggingface_hub, "Understand caching"). Other files say nothing of themselves and count as whole.
    """
    name = path.resolve().name
    if not all(digit in "0123456789abcdef" for digit in name):
        return True
    if len(name) == _SHA256:
        return sha256_of(path) == name
    return len(name) != _GIT_SHA1 or git_blob(path) == name


def drop(path: Path) -> None:
    """Remove a file, and the content in the hub's cache to which it links."""
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _url_place(url: str) -> str:
    return f"{hashlib.sha256(url.encode()).hexdigest()[:16]}/{Path(url).name}"
