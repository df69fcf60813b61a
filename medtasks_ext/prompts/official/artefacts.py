"""Released files that hold official words: where they lie, whether they are the pinned ones, how they come.

An artefact at hand lies in the cache, in `official/` below `MEDTASKS_CACHE`. It is used only if its SHA-256
is the pinned one.
"""

from __future__ import annotations

import configparser
import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows.digests import sha256_of
from medtasks_ext.rows.folders import CACHE_REMEDY
from medtasks_ext.rows.remote import is_offline

if TYPE_CHECKING:
    from medtasks_ext.registry.official import Artefact

FOLDER = "official"
_INDEX = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"
_TIMEOUT = 60  # seconds
_FROM = "or carry the file here: medtasks prompts fetch --from DIR"


class NotHereError(MedtasksError):
    """An artefact that is not on this machine and cannot be fetched now."""


def place_of(artefact: Artefact) -> Path:
    """Where an artefact is kept."""
    return cache_dir() / FOLDER / (artefact.sha256 or "text")[:16] / artefact.file


def at_hand(artefact: Artefact) -> Path | None:
    """The artefact on this machine, checked; None where it is not there.

    Raises:
        MedtasksError: a file of its name is there and is another one.
    """
    path = place_of(artefact)
    try:
        facts = path.stat()
    except OSError:
        return None
    _check(path, artefact, facts.st_mtime_ns, facts.st_size)
    return path


@lru_cache(maxsize=64)
def _check(path: Path, artefact: Artefact, _time: int, _size: int) -> None:
    if artefact.sha256 and (found := sha256_of(path)) != artefact.sha256:
        raise MedtasksError(
            f"is not {artefact.file} of {artefact.revision}: SHA-256 {found[:16]}…,"
            f" not {artefact.sha256[:16]}…",
            where=path,
            remedy="delete it and run `medtasks prompts fetch`, or ask in our own words: --prompts own",
        )


def fetched(artefact: Artefact, folder: Path | None = None) -> Path:
    """The artefact on this machine, after a download or a copy if need be.

    Args:
        folder: that holds it under its own name, for machines without internet.

    Raises:
        MedtasksError: it cannot be had, or what was had is another file.
    """
    if path := at_hand(artefact):
        return path
    if folder is not None:
        source = folder / artefact.file
        if not source.is_file():
            raise MedtasksError(
                f"holds no {artefact.file}", where=folder, remedy=f"put it there: {source_of(artefact)}"
            )
        content, where = source.read_bytes(), str(source)
    elif artefact.package or artefact.url:
        if is_offline():
            raise NotHereError(
                f"{artefact.file} is not on this machine and HF_HUB_OFFLINE is set",
                where=source_of(artefact),
                remedy=f"run once with internet, HF_HUB_OFFLINE unset, {_FROM}",
            )
        where = _in_index(artefact) if artefact.package else str(artefact.url)
        content = _downloaded(where)
    else:
        raise NotHereError(
            f"{artefact.file} is a file that each user makes", where=source_of(artefact), remedy=_FROM[3:]
        )
    with atomic_file(place_of(artefact), remedy=CACHE_REMEDY) as file:
        file.write(content)
    try:
        path = at_hand(artefact)
    except MedtasksError as error:
        place_of(artefact).unlink()
        raise MedtasksError(
            error.what, where=where, remedy=f"get {artefact.revision}: {source_of(artefact)}"
        ) from None
    assert path is not None  # it was written
    return path


def source_of(artefact: Artefact) -> str:
    """Where an artefact is had, for people."""
    if artefact.package:
        return f"{artefact.package} {artefact.revision} on the package index"
    return artefact.url or artefact.how


def read(artefact: Artefact, path: Path, member: str | None) -> str:
    """The text of an artefact, or of a file inside it.

    Raises:
        MedtasksError: there is no such file, or it is no UTF-8 text.
    """
    where = f"{path}!{member}" if member else str(path)
    try:
        content = _archive(path).read(member) if member else path.read_bytes()
        return content.decode("utf-8-sig")
    except KeyError:
        what = "has no such file"
    except UnicodeDecodeError as error:
        what = f"is no UTF-8 text (byte {error.start})"
    except (OSError, zipfile.BadZipFile) as error:
        what = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    raise MedtasksError(what, where=where, remedy=f"get it anew: {source_of(artefact)}")


@lru_cache(maxsize=4)
def _archive(path: Path) -> zipfile.ZipFile:
    """An archive whose list of members is read once. Its path holds its hash, so it never changes."""
    return zipfile.ZipFile(path)


def _in_index(artefact: Artefact) -> str:
    """The address of a package's file, by the index's JSON (PEP 691)."""
    page = f"{_index()}/{artefact.package}/"
    content = _downloaded(page, _JSON)
    try:
        files = {item["filename"]: item for item in json.loads(content)["files"]}
    except (ValueError, KeyError, TypeError):
        raise MedtasksError(
            "does not speak JSON (PEP 691)", where=page, remedy=f"name another index, {_FROM}"
        ) from None
    item = files.get(artefact.file)
    if item is None:
        raise MedtasksError(f"has no {artefact.file}", where=page, remedy=f"name another index, {_FROM}")
    said = item.get("hashes", {}).get("sha256")
    if said and said != artefact.sha256:
        raise MedtasksError(
            f"{artefact.file} there is another file: SHA-256 {said[:16]}…, not {str(artefact.sha256)[:16]}…",
            where=page,
            remedy=f"name another index, {_FROM}",
        )
    return urllib.parse.urljoin(page, str(item["url"]))


def _index() -> str:
    """The package index that pip or uv is configured for."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if named := os.environ.get(name):
            return named.rstrip("/")
    home = Path.home()
    files = [
        *([Path(os.environ["PIP_CONFIG_FILE"])] if os.environ.get("PIP_CONFIG_FILE") else []),
        Path(sys.prefix, "pip.conf"),
        home / ".config" / "pip" / "pip.conf",
        home / ".pip" / "pip.conf",
        Path("/etc/pip.conf"),
    ]
    for file in files:
        said = configparser.ConfigParser(interpolation=None)
        try:
            said.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        if named := said.get("global", "index-url", fallback=None):
            return named.strip().rstrip("/")
    return _INDEX


#: Bytes of an artefact; the largest wheel has a tenth of it.
_LARGEST = 256 << 20


def _downloaded(url: str, accept: str = "*/*") -> bytes:
    try:
        asked = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(asked, timeout=_TIMEOUT) as answer:
            content = bytes(answer.read(_LARGEST + 1))
            if len(content) > _LARGEST:
                raise ValueError(f"more than {_LARGEST >> 20} MB")
            return content
    except (OSError, ValueError, http.client.HTTPException) as error:  # URLError is an OSError
        reason = str(getattr(error, "reason", error)).partition("\n")[0] or type(error).__name__
        raise NotHereError(
            f"download failed ({reason})", where=_public(url), remedy=f"check the connection, {_FROM}"
        ) from None


def _public(url: str) -> str:
    """An address without the password that it may hold."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
