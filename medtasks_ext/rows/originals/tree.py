"""The files of a source, in folders or in zip archives as they were downloaded, gzipped or not."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO

from medtasks_ext.errors import MedtasksError
from medtasks_ext.rows.files import open_archive

#: What helps where a file is not in its form, where one is missing, and where a download is damaged.
UNCHANGED = "put the authors' files there, unchanged"
WHOLE, AGAIN = "put the complete source there", "download it again"


@dataclass(frozen=True)
class SourceFile:
    name: str  # its path inside the source, with forward slashes; gzipped files are named without `.gz`
    where: str  # its place for messages
    opener: Callable[[], IO[bytes]]  # opens its content, unzipped

    @cached_property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.name)

    def read(self) -> bytes:
        with self.stream() as content:
            return content.read()

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        try:
            with self.opener() as content:
                yield content
        except (
            OSError,
            EOFError,  # a gzip file that ends too early
            zipfile.BadZipFile,
            zlib.error,
            RuntimeError,  # encrypted members
        ) as error:
            raise MedtasksError(
                f"cannot be read ({error})", where=self.where, remedy="check permissions or download it again"
            ) from None

    def text(self, encoding: str = "utf-8-sig") -> str:
        """The content as text, its line ends as they are, since annotations count characters."""
        try:
            return self.read().decode(encoding)
        except UnicodeDecodeError as error:
            what = f"is not {encoding} text (byte {error.start})"
            remedy = "put the authors' file there, not converted"
            raise MedtasksError(what, where=self.where, remedy=remedy) from None


def files_below(places: Iterable[Path], *, names: Iterable[str] = ()) -> list[SourceFile]:
    """All files in folders and zip archives, sorted by name; `names`: of single files in the source."""
    called = dict(zip(places, names, strict=False))
    files: list[SourceFile] = []
    for place in places:
        if place.is_file():
            files += _opened(place, called.get(place, place.name))
        else:
            for path in place.rglob("*"):
                if path.is_file():
                    files += _opened(path, path.relative_to(place).as_posix())
    # what a desktop leaves in archives and folders is no file of the source
    ours = (file for file in files if not ("__MACOSX" in file.path.parts or file.path.name.startswith(".")))
    return sorted(ours, key=lambda file: file.name)


def missing_files(files: Iterable[SourceFile], patterns: Iterable[str]) -> list[str]:
    listed = list(files)
    return [pattern for pattern in patterns if not any(file.path.match(pattern) for file in listed)]


def matching(files: Iterable[SourceFile], patterns: Iterable[str]) -> list[SourceFile]:
    """The files that one of the patterns names, in the order of the patterns.

    A pattern is compared with the last parts of a path, so it holds wherever the archive was unpacked.
    """
    listed = list(files)
    by_name = {file.name: file for pattern in patterns for file in listed if file.path.match(pattern)}
    return list(by_name.values())


def only(files: Iterable[SourceFile], pattern: str) -> SourceFile:
    """The one file that the pattern names; MedtasksError of none, or of more than one."""
    matched = matching(files, [pattern])
    if len(matched) != 1:
        raise MedtasksError(
            f"{len(matched)} files are named {pattern}, there must be one",
            where=", ".join(file.where for file in matched) or "the source's folder",
            remedy="put the files of this dataset there, and of no other",
        )
    return matched[0]


def _opened(path: Path, name: str) -> list[SourceFile]:
    if Path(name).suffix.lower() != ".zip":
        return [_file(name, str(path), lambda: path.open("rb"))]
    archive = open_archive(path)
    return [
        _file(member, f"{path}!{member}", lambda member=member: archive.open(member))  # type: ignore[misc]
        for member in archive.namelist()
        if not member.endswith("/")
    ]


def _file(name: str, where: str, opener: Callable[[], IO[bytes]]) -> SourceFile:
    if not name.lower().endswith(".gz"):
        return SourceFile(name, where, opener)
    return SourceFile(name[:-3], where, lambda: gzip.open(opener()))  # type: ignore[arg-type, return-value]
