"""What identifies the content of a pinned file, whoever sends it."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from medtasks_ext.atomic import check_regular


def sha256_of(path: Path) -> str:
    check_regular(path)
    with path.open("rb") as content:
        digest = hashlib.sha256()
        while piece := content.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def git_blob(path: Path) -> str:
    check_regular(path)
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size)
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
    if kind == "git":
        return git_blob(path) == wanted
    if kind == "sha256":
        return sha256_of(path) == wanted
    try:
        return members_digest(path, patterns) == wanted
    except zipfile.BadZipFile:
        return False
