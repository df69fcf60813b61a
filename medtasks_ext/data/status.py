"""What is at hand: where each dataset would be read from now, and whether its rows are as they should be.

Looks at local files and caches alone; nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from medtasks_ext.data.status_cache import RowsLook, cached_look
from medtasks_ext.rows.authors import authors_of
from medtasks_ext.rows.missing import source_of
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import find_origin, local_files, original_folder

if TYPE_CHECKING:
    from pathlib import Path

    from medtasks_ext.errors import MedtasksError
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Source


@dataclass(frozen=True)
class Status:
    """One dataset."""

    dataset: Dataset
    origin: Origin | None  # where rows would be read from; None where there is nothing
    where: str | None = None  # file, folder or download
    revision: str | None = None  # of a download
    pinned: bool = True  # False where a download's content was not known before its first use
    here: bool = False  # whether it can be read without the network
    n_test: int | None = None  # rows that can be evaluated; None where nothing is here
    n_fewshot: int | None = None  # rows of its few-shot pool
    n_questions: int | None = None  # as many are different; one that is asked in several trials counts once
    faults: list[MedtasksError] = field(default_factory=list)  # what is wrong with its rows
    exclusions: str | None = None  # which rows of the source are left out, and why

    def record(self) -> Json:
        """As JSON."""
        return {
            "id": self.dataset.id,
            "access": self.dataset.metadata.access,
            "origin": self.origin,
            "where": self.where,
            "revision": self.revision,
            "pinned": self.pinned,
            "here": self.here,
            "n_test": self.n_test,
            "n_fewshot": self.n_fewshot,
            "n_paper": self.dataset.metadata.n_test,
            "checks": None if not self.here else "failed" if self.faults else "passed",
            "faults": [str(fault) for fault in self.faults],
            "exclusions": self.exclusions,
        }


def status_of(dataset: Dataset, forced: Origin | None) -> Status:
    """The status of one dataset; its rows are read where they are here."""
    source = source_of(dataset)
    origin = find_origin(dataset, source, forced)
    where, revision, here = _place(dataset, source, origin)
    pinned = origin != "hub" or all(file.is_pinned for file in remote_files(source))
    if not here:
        return Status(dataset, origin, where, revision, pinned=pinned)
    files = _files(dataset, source, origin)
    look = cached_look(dataset, str(origin), files, lambda: _look(dataset, origin))
    return Status(
        dataset,
        origin,
        where,
        revision,
        pinned=pinned,
        here=True,
        n_test=look.n_test,
        n_fewshot=look.n_fewshot,
        n_questions=look.n_questions,
        faults=look.errors,
        exclusions=look.exclusions,
    )


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
