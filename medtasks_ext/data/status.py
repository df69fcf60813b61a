"""What is at hand: where each dataset would be read from now, and whether its rows are as they should be.

Looks at local files and caches alone; nothing is downloaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks_ext.rows.places import authors_of
from medtasks_ext.rows.remote import remote_files
from medtasks_ext.rows.row import Origin
from medtasks_ext.rows.sources import find_origin, local_files, original_folder, source_of

if TYPE_CHECKING:
    from medtasks_ext.jsonfile import Json
    from medtasks_ext.registry import Dataset
    from medtasks_ext.rows.spec import Source


def status_of(dataset: Dataset, forced: Origin | None) -> Json:
    """Where rows would be read from, and, where that needs no network, what a look at them all found.

    `pinned` is False where a download's content was not known before its first use. No text of a row.
    """
    from medtasks_ext.prompts.load import check_rows  # what it imports takes long

    source = source_of(dataset)
    origin = find_origin(dataset, source, forced)
    where, revision, is_here = _place(dataset, source, origin)
    found = check_rows(dataset, origin) if is_here else None
    faults = [str(fault) for fault in found.faults] if found else []
    return {
        "id": dataset.id,
        "access": dataset.metadata.access,
        "origin": origin,
        "where": where,
        "revision": revision,
        "pinned": origin != "hub" or all(file.is_pinned for file in remote_files(source)),
        "here": is_here,
        "n_test": found and len(found.test),
        "n_questions": found and len({item.get("item", item["id"]) for item in found.test}),
        "n_fewshot": found and len(found.fewshot),
        "n_paper": dataset.n_part,
        "checks": None if found is None else "failed" if faults else "passed",
        "faults": faults,
        "exclusions": found.test[0].loaded.exclusions if found and found.test else None,
    }


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
