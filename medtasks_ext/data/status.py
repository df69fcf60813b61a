"""What is at hand: where each dataset would be read from now, and whether its rows are as they should be.

Looks at local files and caches alone; nothing is downloaded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import shows_text
from medtasks_ext.registry.folders import PACKAGE, cache_dir
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.remote import remote_files, sha256_of
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import find_origin, local_files, original_folder, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from medtasks_ext.errors import MedtasksError
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Source


@dataclass(frozen=True)
class RowsLook:
    """What a look at all rows of a dataset found. No text of a row."""

    n_test: int  # documents that can be evaluated
    n_fewshot: int  # rows of the pool
    n_questions: int  # different questions among the documents
    # what is wrong, where, and what mends it
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    exclusions: str | None = None  # which rows of the source are left out, and why

    @property
    def errors(self) -> list[MedtasksError]:
        return [MedtasksError(what, where=where, remedy=remedy) for what, where, remedy in self.faults]


@dataclass(frozen=True)
class Status:
    dataset: Dataset
    origin: Origin | None  # where rows would be read from; None where there is nothing
    where: str | None = None  # file, folder or download
    revision: str | None = None  # of a download
    pinned: bool = True  # False where a download's content was not known before its first use
    look: RowsLook | None = None  # None where its rows cannot be read without the network

    def record(self) -> Json:
        look = self.look
        return {
            "id": self.dataset.id,
            "access": self.dataset.metadata.access,
            "origin": self.origin,
            "where": self.where,
            "revision": self.revision,
            "pinned": self.pinned,
            "here": look is not None,
            "n_test": look and look.n_test,
            "n_fewshot": look and look.n_fewshot,
            "n_paper": self.dataset.n_part,
            "checks": None if look is None else "failed" if look.faults else "passed",
            "faults": [str(fault) for fault in look.errors] if look else [],
            "exclusions": look and look.exclusions,
        }


def status_of(dataset: Dataset, forced: Origin | None) -> Status:
    source = source_of(dataset)
    origin = find_origin(dataset, source, forced)
    where, revision, here = _place(dataset, source, origin)
    pinned = origin != "hub" or all(file.is_pinned for file in remote_files(source))
    look = None
    if here:
        look = cached_look(
            dataset, str(origin), _files(dataset, source, origin), lambda: _look(dataset, origin)
        )
    return Status(dataset, origin, where, revision, pinned, look)


def _look(dataset: Dataset, origin: Origin | None) -> RowsLook:
    from medtasks_ext.prompts.load import check_rows  # what it imports takes longer than a look at the cache

    rows = check_rows(dataset, origin)
    return RowsLook(
        n_test=len(rows.test),
        n_fewshot=len(rows.fewshot),
        n_questions=len({item.get("item", item["id"]) for item in rows.test}),
        faults=[(fault.what, str(fault.where), fault.remedy) for fault in rows.faults],
        exclusions=rows.test[0].loaded.exclusions if rows.test else None,
    )


def _files(dataset: Dataset, source: Source, origin: Origin | None) -> list[Path]:
    """All files that are read for the rows; none where they are not files alone."""
    if source.database or origin == "release":
        return []
    if origin == "sample":
        return [dataset.sample_file]
    if origin == "local":
        if files := local_files(dataset, source):
            return [file for file in (files.test, files.fewshot, files.instruction) if file]
        folder = original_folder(dataset, source)
        return sorted(file for file in folder.rglob("*") if file.is_file()) if folder else []
    return [path for file in remote_files(source) if (path := file.here())]


def _place(dataset: Dataset, source: Source, origin: Origin | None) -> tuple[str | None, str | None, bool]:
    """File, folder or download; its revision; whether it is on this machine."""
    if origin is None:
        return None, None, False
    if origin == "sample":
        return str(dataset.sample_file), None, True
    if origin == "local":
        files = local_files(dataset, source)
        return str(files.test if files else original_folder(dataset, source)), None, True
    if origin == "release":
        authors = authors_of(dataset, source)
        assert authors is not None  # find_origin said so
        return authors.repo, None, True
    assert source.download is not None  # find_origin said so
    files_there = remote_files(source)
    here = all(file.here() for file in files_there)
    return files_there[0].source, source.download.revision, here


# ---------------------------------------------------------------------- what was found out, kept by content


def cached_look(
    dataset: Dataset, origin: str, files: Sequence[Path], look: Callable[[], RowsLook]
) -> RowsLook:
    """What was found for files of this content, task file and program; else what is found now."""
    if not files or shows_text():
        return look()
    said = [dataset.id, dataset.blocks, dataset.record, origin, _program()]
    contents = [(str(file), sha256_of(file)) for file in files]
    key = sha256(json.dumps([said, contents], default=str).encode()).hexdigest()[:32]
    path = cache_dir() / "status" / f"{key}.json"
    try:
        return RowsLook(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        found = look()
    try:
        with atomic_file(path) as file:
            file.write(json.dumps(asdict(found)).encode())
    except MedtasksError:
        pass  # a cache that cannot be written costs time alone
    return found


def _program() -> int:
    return max(file.stat().st_mtime_ns for file in PACKAGE.rglob("*.py"))
