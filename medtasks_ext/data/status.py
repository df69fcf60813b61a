"""What is at hand: where each dataset would be read from now, and whether its rows are as they should be.

Looks at local files and caches alone; nothing is downloaded.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from medtasks_ext.atomic import atomic_file
from medtasks_ext.errors import MedtasksError
from medtasks_ext.privacy import shows_text
from medtasks_ext.registry.folders import PACKAGE, cache_dir
from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.remote import remote_files, sha256_of
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import find_origin, local_files, original_folder, source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    where, revision, files = _place(dataset, source, origin)
    pinned = origin != "hub" or all(file.is_pinned for file in remote_files(source))
    # a database is read beside the files
    look = None if files is None else _look(dataset, str(origin), [] if source.database else files)
    return Status(dataset, origin, where, revision, pinned, look)


def _place(
    dataset: Dataset, source: Source, origin: Origin | None
) -> tuple[str | None, str | None, list[Path] | None]:
    """File, folder or download; its revision; the files on this machine that rows are read from, if any are.

    No files are named where rows are not read from files alone.
    """
    if origin == "sample":
        return str(dataset.sample_file), None, [dataset.sample_file]
    if origin == "local":
        if files := local_files(dataset, source):
            paths = (files.test, files.fewshot, files.instruction)
            return str(files.test), None, [file for file in paths if file]
        folder = original_folder(dataset, source)
        assert folder is not None  # find_origin said so
        return str(folder), None, sorted(file for file in folder.rglob("*") if file.is_file())
    if origin == "release" and (authors := authors_of(dataset, source)):
        return authors.repo, None, []
    if origin == "hub" and source.download:
        remote = remote_files(source)
        here = [file.here() for file in remote]
        return remote[0].source, source.download.revision, [*filter(None, here)] if all(here) else None
    return None, None, None


def _look(dataset: Dataset, origin: str, files: Sequence[Path]) -> RowsLook:
    """What was found for files of this content, task file and program; else what is found now."""
    kept = bool(files) and not shows_text()
    if kept:
        program = max(file.stat().st_mtime_ns for file in PACKAGE.rglob("*.py"))
        said = [dataset.id, dataset.blocks, dataset.record, origin, program]
        contents = [(str(file), sha256_of(file)) for file in files]
        key = sha256(json.dumps([said, contents], default=str).encode()).hexdigest()[:32]
        path = cache_dir() / "status" / f"{key}.json"
        with suppress(OSError, ValueError, TypeError):
            return RowsLook(**json.loads(path.read_bytes()))
    from medtasks_ext.prompts.load import check_rows  # what it imports takes longer than a look at the cache

    rows = check_rows(dataset, cast("Origin", origin))
    found = RowsLook(
        n_test=len(rows.test),
        n_fewshot=len(rows.fewshot),
        n_questions=len({item.get("item", item["id"]) for item in rows.test}),
        faults=[str(fault) for fault in rows.faults],
        exclusions=rows.test[0].loaded.exclusions if rows.test else None,
    )
    if kept:
        with suppress(MedtasksError), atomic_file(path) as file:  # without the cache it takes time alone
            file.write(json.dumps(asdict(found)).encode())
    return found
