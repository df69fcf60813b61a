"""Released files that hold official words: where they lie, whether they are the pinned ones, how they come.

An artefact at hand lies in the cache, in `official/` below `MEDTASKS_CACHE`. It is used only if its SHA-256
is the pinned one. A package that is installed is a folder; of it each passage is recognised by its own hash.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.registry.blocks import Artefact
from medtasks_ext.registry.folders import cache_dir
from medtasks_ext.rows import transfer
from medtasks_ext.rows.places import CACHE_REMEDY
from medtasks_ext.rows.remote import is_offline, sha256_of
from medtasks_ext.rows.transfer import NotHereError

FOLDER = "official"
_INDEX = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"
_OTHERWISE = "carry the file here: medtasks data fetch official DIR"
#: The largest wheel has a tenth of it. A run that may ask in other words does not wait long.
_EXPECTED = transfer.Expected(otherwise=_OTHERWISE, largest=256 << 20, attempts=2)


def place_of(artefact: Artefact) -> Path:
    if artefact.installed:
        found = find_spec(artefact.installed)
        if found is None or not found.submodule_search_locations:
            raise MedtasksError("is not installed", where=artefact.installed, remedy=source_of(artefact))
        return Path(found.submodule_search_locations[0])
    return cache_dir() / FOLDER / (artefact.sha256 or "text")[:16] / artefact.file


def local_artefact(artefact: Artefact) -> Path | None:
    """The artefact on this machine, checked; None where it is not there."""
    if artefact.installed:
        return place_of(artefact)
    path = place_of(artefact)
    try:
        facts = path.stat()
    except OSError:
        return None
    _check(path, artefact, facts.st_mtime_ns, facts.st_size)
    return path


@lru_cache(maxsize=64)
def _check(path: Path, artefact: Artefact, _time: int, _size: int) -> None:
    """Check the content of a file that was not looked at since it was written."""
    remedy = "delete it and run `medtasks data fetch official`, or use our prompts: --prompts own"
    _check_hash(path, artefact, path, remedy)


def _check_hash(path: Path, artefact: Artefact, where: object, remedy: str) -> None:
    if artefact.sha256 and (digest := sha256_of(path)) != artefact.sha256:
        hashes = f"SHA-256 {digest[:16]}…, not {artefact.sha256[:16]}…"
        what = f"is not {artefact.file} of {artefact.revision}: {hashes}"
        raise MedtasksError(what, where=where, remedy=remedy)


def fetched_artefact(artefact: Artefact, folder: Path | None = None) -> Path:
    """After a download, or a copy from `folder`, which holds it under its own name, if need be."""
    if path := local_artefact(artefact):
        return path
    target, where = place_of(artefact), source_of(artefact)
    remedy = f"get {artefact.revision}: {where}"
    names = [artefact.file, *([where.rpartition("/")[2]] if artefact.is_paper else [])]
    if folder is not None:
        source = next((folder / name for name in names if (folder / name).is_file()), None)
        if source is None:
            what = f"holds no {' or '.join(names)}"
            raise MedtasksError(what, where=folder, remedy=f"put it there: {where}")
        _check_hash(source, artefact, source, remedy)
        return _kept(source, target)
    if is_offline():
        what = f"{artefact.file} is not on this machine and HF_HUB_OFFLINE is set"
        unset = f"run once with internet, HF_HUB_OFFLINE unset, or {_OTHERWISE}"
        raise NotHereError(what, where=where, remedy=unset)
    url = _in_index(artefact) if artefact.package else str(artefact.url)
    if artefact.is_paper:
        with tempfile.TemporaryDirectory() as made:
            paper = Path(made, names[-1])
            transfer.download(url, paper, replace(_EXPECTED, known=False))
            return _kept(paper, target)
    return transfer.fetch(url, target, lambda part: _check_hash(part, artefact, where, remedy), _EXPECTED)


def _kept(source: Path, target: Path) -> Path:
    """A file in its place in the cache; of a PDF its text, whose passages prove it by their own hashes."""
    content = source.read_bytes()
    if source.suffix == ".pdf":
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError

        try:
            content = "\n".join(page.extract_text() for page in PdfReader(source).pages).encode()
        except (PyPdfError, ValueError, KeyError, TypeError, RecursionError) as error:
            what = f"no text can be read from the PDF ({type(error).__name__})"
            raise NotHereError(what, where=source.name, remedy=_OTHERWISE) from None
    with atomic_file(target, remedy=CACHE_REMEDY) as file:
        file.write(content)
    return target


def source_of(artefact: Artefact) -> str:
    if artefact.installed:
        return f"{artefact.revision}, which is installed with medtasks"
    if artefact.package:
        return f"{artefact.package} {artefact.revision} on the package index"
    return str(artefact.url)


def read(artefact: Artefact, path: Path, member: str | None) -> str:
    where = f"{path}!{member}" if member else str(path)
    try:
        if path.is_dir():
            content = (path / (member or "")).read_bytes()
        else:
            content = _archive(path).read(member) if member else path.read_bytes()
        return content.decode("utf-8-sig")
    except (KeyError, FileNotFoundError):
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
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder, "page.json")
        transfer.download(page, listing, replace(_EXPECTED, accept=_JSON))
        content = listing.read_bytes()
    what = f"has no {artefact.file}"
    try:
        for item in json.loads(content)["files"]:
            if item["filename"] == artefact.file:
                said = item.get("hashes", {}).get("sha256")
                if said in (None, artefact.sha256):
                    return urllib.parse.urljoin(page, str(item["url"]))
                hashes = f"SHA-256 {said[:16]}…, not {str(artefact.sha256)[:16]}…"
                what = f"{artefact.file} there is another file: {hashes}"
    except (ValueError, KeyError, TypeError):
        what = "does not speak JSON (PEP 691)"
    remedy = f"name another index, or {_OTHERWISE}"
    raise MedtasksError(what, where=transfer.public(page), remedy=remedy)


def _index() -> str:
    """The package index that pip or uv is configured for."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if url := os.environ.get(name):
            return url.rstrip("/")
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)
    return (said.stdout.strip() or _INDEX).rstrip("/")
