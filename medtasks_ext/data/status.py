"""What is at hand: where each dataset would be read from now, and whether its rows are as they should be.

Looks at local files and caches alone; nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import find_origin, local_files, original_folder, source_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Source


@dataclass(frozen=True)
class RowsLook:
    """What a look at all rows of a dataset found. No text of a row."""

    n_test: int  # documents that can be evaluated
    n_fewshot: int  # rows of the pool
    n_questions: int  # different questions among the documents
    faults: list[str]  # what is wrong, where, and what mends it
    exclusions: str | None  # which rows of the source are left out, and why


@dataclass(frozen=True)
class Status:
    dataset: Dataset
    origin: Origin | None  # where rows would be read from; None where there is nothing
    where: str | None  # file, folder or download
    revision: str | None  # of a download
    pinned: bool  # False where a download's content was not known before its first use
    look: RowsLook | None  # None where its rows cannot be read without the network

    def record(self) -> Json:
        look = self.look
        return {
            "id": self.dataset.id,
            "access": self.dataset.metadata.access,
            **{name: getattr(self, name) for name in ("origin", "where", "revision", "pinned")},
            "here": look is not None,
            "n_test": look and look.n_test,
            "n_fewshot": look and look.n_fewshot,
            "n_paper": self.dataset.n_part,
            "checks": None if look is None else "failed" if look.faults else "passed",
            "faults": look.faults if look else [],
            "exclusions": look and look.exclusions,
        }


def status_of(dataset: Dataset, forced: Origin | None) -> Status:
    source = source_of(dataset)
    origin = find_origin(dataset, source, forced)
    where, revision, is_here = _place(dataset, source, origin)
    pinned = origin != "hub" or all(file.is_pinned for file in remote_files(source))
    return Status(
        dataset, origin, where, revision, pinned, _look(dataset, origin) if origin and is_here else None
    )


def _place(dataset: Dataset, source: Source, origin: Origin | None) -> tuple[str | None, str | None, bool]:
    """File, folder or download; its revision; whether rows can be read without the network."""
    if origin == "sample":
        return str(dataset.sample_file), None, True
    if origin == "local":
        files = local_files(dataset, source)
        return str(files.test if files else original_folder(dataset, source)), None, True
    if origin == "release" and (authors := authors_of(dataset, source)):
        return authors.repo, None, True
    if origin == "hub" and source.download:
        remote = remote_files(source)
        return remote[0].source, source.download.revision, all(file.here() for file in remote)
    return None, None, False


def _look(dataset: Dataset, origin: Origin) -> RowsLook:
    from medtasks_ext.prompts.load import check_rows  # what it imports takes long

    rows = check_rows(dataset, origin)
    return RowsLook(
        n_test=len(rows.test),
        n_fewshot=len(rows.fewshot),
        n_questions=len({item.get("item", item["id"]) for item in rows.test}),
        faults=[str(fault) for fault in rows.faults],
        exclusions=rows.test[0].loaded.exclusions if rows.test else None,
    )
