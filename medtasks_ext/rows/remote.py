"""Public files: on the Hugging Face hub or at a URL, each at a pinned revision, downloaded once."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.folders import CACHE_REMEDY, FETCHED, data_dir

if TYPE_CHECKING:
    from medtasks_ext.rows.spec import Source

_OTHERWISE = "put the files below MEDTASKS_DATA_DIR"
_TERMS = "accept the terms on the dataset's page and run `hf auth login`"
_SHA256, _GIT_SHA1 = 64, 40  # hexadecimal digits


def is_offline() -> bool:
    """Whether the user forbids downloads (`HF_HUB_OFFLINE`)."""
    return os.environ.get("HF_HUB_OFFLINE", "0").upper() not in ("", "0", "OFF", "NO", "FALSE")


@dataclass(frozen=True)
class RemoteFile:
    """One public file.

    Attributes:
        name: path in the repository, or URL.
        revision: commit or release that is pinned.
        repo: dataset on the hub; None for a URL.
    """

    name: str
    revision: str
    repo: str | None = None

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

    def here(self) -> Path | None:
        """Where it lies on this machine, if it does: carried into the data folder, or in a cache."""
        if carried := _carried(self.carried):
            return carried
        if not self.repo:
            place = cache_dir() / _url_place(self.name)
            return place if place.is_file() else None
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.repo, self.name, revision=self.revision, repo_type="dataset")
        return Path(found) if isinstance(found, str) else None

    def get(self) -> Path:
        """Where it lies, after a download if need be.

        Raises:
            MedtasksError: it cannot be downloaded.
        """
        return hub_file(self.repo, self.revision, self.name) if self.repo else url_file(self.name)


def remote_files(source: Source) -> list[RemoteFile]:
    """The public files that a dataset is read from; none where it has no download."""
    download, database = source.download, source.database
    if download is None:
        return []
    names = [*download.test, *download.fewshot, *([download.test_ids] if download.test_ids else [])]
    files = [
        RemoteFile(name, download.revision, download.repo)
        if download.repo
        else RemoteFile(name.format(revision=download.revision), download.revision)
        for name in dict.fromkeys(name.partition("!")[0] for name in names)
    ]
    if database:
        files.append(RemoteFile(database.url.format(revision=database.revision), database.revision))
    return files


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
    if len(name) == _GIT_SHA1:
        content = path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == name
    return True


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _carried(place: str) -> Path | None:
    root = data_dir()
    path = root / FETCHED / place if root else None
    return path if path and path.is_file() else None


def hub_file(repo: str, revision: str, name: str) -> Path:
    """One file of a hub dataset: carried here, in the hub's cache, or downloaded.

    Raises:
        MedtasksError: it is not there, access is refused, or the hub cannot be reached.
    """
    file = RemoteFile(name, revision, repo)
    if carried := _carried(file.carried):
        return carried
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repo, name, repo_type="dataset", revision=revision))
    except LocalEntryNotFoundError as error:
        if isinstance(error.__cause__, HfHubHTTPError):
            raise _refused(error.__cause__, file) from None
        raise MedtasksError(
            "is not in the local cache and the hub cannot be reached",
            where=file.source,
            remedy=f"run once with internet, HF_HUB_OFFLINE unset, or {_OTHERWISE}",
        ) from None
    except EntryNotFoundError:
        raise MedtasksError("is no longer on the hub", where=file.source, remedy=_OTHERWISE) from None
    except HfHubHTTPError as error:
        raise _refused(error, file) from None
    except Exception as error:  # the hub's client has had several HTTP libraries, each with its own errors
        raise _failed(error, file.source) from None


def _refused(error: Exception, file: RemoteFile) -> MedtasksError:
    response = getattr(error, "response", None)
    code = getattr(response, "status_code", "no answer")
    remedy = _TERMS if code in (401, 403) else f"try again later, or {_OTHERWISE}"
    return MedtasksError(f"the hub refused the download ({code})", where=file.source, remedy=remedy)


def _failed(error: Exception, where: str) -> MedtasksError:
    reason = str(getattr(error, "reason", error)).partition("\n")[0] or type(error).__name__
    return MedtasksError(
        f"download failed ({reason})", where=where, remedy=f"check the connection, or {_OTHERWISE}"
    )


def _url_place(url: str) -> str:
    return f"{hashlib.sha256(url.encode()).hexdigest()[:16]}/{Path(url).name}"


def url_file(url: str) -> Path:
    """One file by its URL: carried here, in the cache, or downloaded.

    Raises:
        MedtasksError: it cannot be fetched.
    """
    target = _carried(f"urls/{_url_place(url)}") or cache_dir() / _url_place(url)
    if target.is_file():
        return target
    if is_offline():
        raise MedtasksError(
            "is not in the local cache and HF_HUB_OFFLINE is set",
            where=url,
            remedy=f"run once with internet, or {_OTHERWISE}",
        )
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        raise _failed(error, url) from None
    with atomic_file(target, remedy=CACHE_REMEDY) as file:
        file.write(content)
    return target
